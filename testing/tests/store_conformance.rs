//! Every store runs the same suite, and the reference store equals SQLite on random histories.
//! `HISTORIES=10000` compares so many of them; `SEED=7` only that one.

#![allow(clippy::expect_used, reason = "these are tests: one fails by panicking")]

#[path = "store_conformance/dense.rs"]
mod dense;
#[path = "store_conformance/noting.rs"]
mod noting;

use std::{collections::BTreeSet, env, path::Path, sync::Arc};

use dense::Dense;
use noting::{Noting, Outcome};
use ostler_kernel::Command;
use ostler_store::{
    PostgresStore, SqliteStore, Store,
    conformance::histories::compare,
    sqlite::{Options, Synchronous},
};
use ostler_testing::{postgres::Place, reference_store::ReferenceStore};
use tempfile::TempDir;
use tokio::task::JoinSet;

const N_OPS: usize = 150;

mod reference {
    async fn make() -> (super::Arc<dyn super::Store>, ()) {
        (super::Arc::new(super::ReferenceStore::new()), ())
    }

    ostler_store::store_conformance!(make);
}

mod sqlite {
    async fn make() -> (super::Arc<dyn super::Store>, super::TempDir) {
        super::in_a_folder(super::SqliteStore::open)
    }

    ostler_store::store_conformance!(make);
}

mod postgres {
    async fn make() -> (super::Arc<dyn super::Store>, ()) {
        (super::Arc::new(super::postgres_store().await), ())
    }

    ostler_store::store_conformance!(make);
}

mod sqlite_inline {
    async fn make() -> (super::Arc<dyn super::Store>, super::TempDir) {
        super::in_a_folder(super::SqliteStore::open_inline)
    }

    ostler_store::store_conformance!(make);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_equals_the_reference_on_random_histories() {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds: Vec<u64> = match number("SEED") {
        Some(seed) => vec![seed],
        None => (0..number("HISTORIES").unwrap_or(300)).collect(),
    };
    let halves = seeds.chunks(seeds.len().div_ceil(2).max(1)).map(|seeds| compare_all(seeds.to_vec()));
    let mut comparing: JoinSet<Result<(), String>> = halves.collect();
    while let Some(compared) = comparing.join_next().await {
        if let Err(difference) = compared.expect("nothing panics") {
            panic!("{difference}");
        }
    }
    println!("{} histories of {N_OPS} operations: the reference store and SQLite agree", seeds.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_equals_the_reference_on_random_histories() {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("HISTORIES").unwrap_or(300) / 10,
    };
    for seed in seeds.clone() {
        let postgres = Dense::new(postgres_store().await);
        let compared = compare(&ReferenceStore::new(), &postgres, seed, N_OPS).await;
        assert_eq!(compared, Ok(()), "again with SEED={seed}");
    }
    println!("{} histories of {N_OPS} operations: the reference store and PostgreSQL agree", seeds.count());
}

#[tokio::test]
async fn histories_come_to_every_command_and_every_outcome() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let store = Noting::default();
        let compared = compare(&store, &ReferenceStore::new(), seed, N_OPS).await;
        assert_eq!(compared, Ok(()), "a store agrees with itself");
        seen.extend(store.into_notes());
    }
    let all = [
        Command::Accept,
        Command::AcceptInput,
        Command::Journal,
        Command::Finish,
        Command::Yield,
        Command::TakeOver,
        Command::Wake,
        Command::Resolve,
        Command::Cancel,
        Command::Expire,
        Command::Archive,
        Command::Register,
        Command::Renew,
        Command::Apply,
        Command::Delete,
        Command::PutBlob,
    ];
    let came_to = |command, outcome| {
        assert!(seen.contains(&(command, outcome)), "no history came to {command:?}, {outcome:?}");
    };
    for command in all {
        came_to(command, Outcome::Applied);
        if !matches!(command, Command::Archive | Command::PutBlob) {
            came_to(command, Outcome::Refused);
        }
    }
    for command in [Command::Journal, Command::Finish, Command::Yield] {
        came_to(command, Outcome::Duplicate);
        came_to(command, Outcome::KeptOut);
        came_to(command, Outcome::TookWrongly);
    }
}

/// One after the other, each on stores of their own. What is compared doesn't depend on syncing, and most of
/// the time would go there: in memory it takes half as long.
async fn compare_all(seeds: Vec<u64>) -> Result<(), String> {
    for seed in seeds {
        let in_memory = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
        let folder = in_memory.expect("a folder");
        let options = Options::at(&folder.path().join("store.db"));
        let options =
            Options { inline: true, synchronous: Synchronous::Normal, reserve_log: false, ..options };
        let sqlite = SqliteStore::open_with(options).expect("a store");
        let compared = compare(&ReferenceStore::new(), &sqlite, seed, N_OPS).await;
        compared.map_err(|difference| format!("{difference}\nagain with SEED={seed}"))?;
    }
    Ok(())
}

async fn postgres_store() -> PostgresStore {
    let place = Place::fresh().expect("PostgreSQL");
    place.open().await.expect("a store in PostgreSQL")
}

fn in_a_folder<E: std::fmt::Debug>(
    open: impl FnOnce(&Path) -> Result<SqliteStore, E>,
) -> (Arc<dyn Store>, TempDir) {
    let folder = TempDir::new().expect("a folder");
    let store = open(&folder.path().join("store.db")).expect("a store");
    (Arc::new(store), folder)
}
