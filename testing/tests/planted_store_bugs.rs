//! Does the suite of the stores find what it should? Each bug is planted in the shipped stores, and the case that is
//! named for it must then fail. Without the bug the same case passes.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "these are tests: one fails by panicking"
)]

use std::{panic, sync::Arc, sync::Once, thread, time::Duration};

use ostler_kernel::runtime::BoxFuture;
use ostler_store::{
    SqliteStore,
    conformance::{Finding, Planting, cases, world::World},
    planted::{Bug, Planted},
    sqlite::Options,
};
use ostler_testing::{postgres::Place, several_servers::stories};
use tempfile::TempDir;
use tokio::{task::JoinSet, time::timeout};

ostler_store::planted_bugs!(is_found);

/// No case takes so long unless it hangs, and that is a failure too.
const PATIENCE: Duration = Duration::from_secs(60);

async fn is_found(Finding { bug, stores, case }: Finding) {
    keep_panics_of_cases_quiet();
    for store in stores {
        if let Err(why) = play(case, *store, None).await {
            panic!("{case} fails on {store:?} without a bug: {why}");
        }
        match play(case, *store, Some(bug)).await {
            Err(why) => println!("{bug:?} on {store:?}: {case}: {why}"),
            Ok(()) => panic!("{case} does not find {bug:?} on {store:?}"),
        }
    }
}

/// Plays a case on a store of its own. The error is what it failed with.
async fn play(case: &'static str, store: Planting, bug: Option<Bug>) -> Result<(), String> {
    let mut playing = JoinSet::new();
    playing.spawn(async move {
        match store {
            Planting::Sqlite => on_sqlite(case, bug).await,
            Planting::Postgres => on_postgres(case, bug).await,
        }
    });
    match timeout(PATIENCE, playing.join_next()).await {
        Ok(Some(Ok(()))) => Ok(()),
        Ok(Some(Err(failed))) => Err(failed.to_string()),
        Ok(None) | Err(_) => Err("it did not end".to_owned()),
    }
}

async fn on_sqlite(case: &str, bug: Option<Bug>) {
    let folder = TempDir::new().expect("a folder");
    let planted = bug.map_or(Planted::default(), Planted::with);
    let options = Options { planted, reserve_log: false, ..Options::at(&folder.path().join("store.db")) };
    let store = SqliteStore::open_with(options).expect("a store");
    let play = of_suite(case).unwrap_or_else(|| panic!("there is no case {case}"));
    play(World::new(Arc::new(store))).await;
}

async fn on_postgres(case: &str, bug: Option<Bug>) {
    let place = Place::fresh().expect("PostgreSQL");
    let place = match bug {
        Some(bug) => place.planted(bug),
        None => place,
    };
    match of_suite(case) {
        Some(play) => play(World::new(Arc::new(place.open().await.expect("PostgreSQL")))).await,
        None => {
            let story = stories().into_iter().find(|story| story.name == case);
            (story.unwrap_or_else(|| panic!("there is no case {case}")).play)(place).await;
        }
    }
}

fn of_suite(name: &str) -> Option<fn(World) -> BoxFuture<'static, ()>> {
    cases().into_iter().find(|case| case.name == name).map(|case| case.play)
}

/// Cases run on the threads of tokio, where failing is what they are here for. Tests have threads of their own.
fn keep_panics_of_cases_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !thread::current().name().is_some_and(|name| name.starts_with("tokio")) {
                usual(info);
            }
        }));
    });
}
