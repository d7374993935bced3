//! A prefilled store is one that a server could have left.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ostler_kernel::TaskState;
use ostler_kernel::bundle::WriteKey;
use ostler_kernel::run::end::Leave;
use ostler_kernel::run::journal::Progress;
use ostler_link::{LeaveRequest, WorkerPortExt};
use ostler_store::{SqliteStore, StoreExt, TaskFilter, TaskRow};

use super::*;
use crate::office::Office;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

/// With its runtime, everything that holds the store goes; the last one to close it removes its log.
fn finish_one_task(folder: &Path) {
    runtime().block_on(async {
        let mut office = Office::open(folder, 1).await.expect("an office");
        let run = office.assignments.pop().expect("a run").run;
        let key = WriteKey { run: run.id, epoch: run.epoch, number: run.journal + 1 };
        let leave = Leave::Ok { output: "forty-two".to_owned() };
        let caller = office.caller.clone();
        let request = LeaveRequest { caller, key, progress: Progress::default(), leave };
        office.port.leave(request).await.expect("left");
    });
    let began = Instant::now();
    while folder.join("store.db-wal").exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "someone keeps the store open");
        std::thread::yield_now();
    }
}

async fn check_readable(store: &SqliteStore, row: &TaskRow) {
    assert_eq!(row.task.state, TaskState::Succeeded);
    let view = store.run_view(row.task.run).await.expect("readable").expect("a run");
    assert_eq!((view.task.id, view.session.id), (row.task.id, row.task.session));
    assert!(view.run.is_terminal() && view.open_steps.is_empty());
    assert!(!store.steps(row.task.run).await.expect("readable").is_empty());
    let entries = store.entries(row.task.session, 0, None).await.expect("readable");
    assert!(entries.iter().all(|(_, entry)| entry.run == row.task.run) && !entries.is_empty());
    let events = store.events(row.task.id, 0, 100).await.expect("readable");
    let places: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(places, (1..=row.last_seq).collect::<Vec<_>>());
    assert!(events.last().is_some_and(|event| event.body.is_last()));
}

#[test]
fn every_copy_is_a_task_of_its_own_that_the_store_can_read() {
    let folder = tempfile::tempdir().expect("a folder");
    finish_one_task(folder.path());
    let path = folder.path().join("store.db");
    prefill(&path, 50).expect("prefilled");
    runtime().block_on(async {
        let store = SqliteStore::open(&path).expect("opens");
        let filter = TaskFilter { limit: 100, ..TaskFilter::default() };
        let rows = store.tasks(filter).await.expect("readable");
        assert_eq!(rows.len(), 51);
        let names: BTreeSet<_> = rows.iter().map(|row| &row.task.name).collect();
        assert_eq!(names.len(), 51);
        for row in &rows {
            check_readable(&store, row).await;
        }
    });
}
