//! Every store runs the same suite, and SQLite and PostgreSQL equal the reference store on random histories.
//! `HISTORIES=10000` compares so many of them; `SEED=7` only that one.

#![allow(clippy::expect_used, reason = "these are tests: one fails by panicking")]

#[path = "store_conformance/dense.rs"]
mod dense;
#[path = "store_conformance/histories.rs"]
mod histories;
#[path = "store_conformance/noting.rs"]
mod noting;

use std::{collections::BTreeSet, path::Path, sync::Arc};

use histories::{N_OPS, Seeds, compare_with_postgres, compare_with_sqlite, on_threads};
use noting::{Noting, Outcome};
use ostler_kernel::Command;
use ostler_store::{PostgresStore, SqliteStore, Store, conformance::histories::compare};
use ostler_testing::{postgres::Place, reference_store::ReferenceStore};
use tempfile::TempDir;

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

#[test]
fn sqlite_equals_the_reference_on_random_histories() {
    let seeds = Seeds::chosen(300);
    assert_eq!(on_threads(&seeds, compare_with_sqlite), Ok(()));
    println!("{} histories of {N_OPS} operations: the reference store and SQLite agree", seeds.count());
}

#[test]
fn postgres_equals_the_reference_on_random_histories() {
    let seeds = Seeds::chosen(100);
    assert_eq!(on_threads(&seeds, compare_with_postgres), Ok(()));
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
