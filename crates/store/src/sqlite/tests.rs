//! What is on disk before, while and after a store is open, and what it costs to look into a full one.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use ostler_kernel::{
    Lease, Timestamp,
    resource::{ResourceKey, StoredResource, put},
};
use tempfile::TempDir;

use super::*;
use crate::{ResourceFilter, StoreExt, TaskFilter, planted::Planted, query::DuePlace};

#[tokio::test]
async fn a_store_that_was_closed_is_one_file_and_can_be_opened_at_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    for (round, inline) in [false, true, false, true, false].into_iter().enumerate() {
        let store = SqliteStore::open_with(Options { inline, ..Options::at(&path) }).unwrap();
        assert_eq!(names(&store).await.len(), round, "what was written before is there");
        write(&store, &format!("agent-{round}")).await;
        assert!(fs::metadata(beside(&path, "-wal")).unwrap().len() > 0, "what was written is in the log");
        assert_eq!(names(&store).await.len(), round + 1, "a reader has been at it too");
        drop(store);
        assert_eq!(fs::metadata(beside(&path, "-wal")).map_or(0, |log| log.len()), 0, "the log is folded");
    }
}

#[tokio::test]
async fn a_store_stays_shut_until_its_last_write_is_in_the_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    // Sent, and nobody waits for the answer.
    let (sender, _) = oneshot::channel();
    let Writer::Thread(writer) = &store.writer else { panic!("it has a thread") };
    writer.send(Job::Commit(vec![Prepared::of(bundle("late")).unwrap()], sender)).await.unwrap();
    drop(store);
    let copy = folder.path().join("copy.db");
    fs::copy(&path, &copy).unwrap();
    assert_eq!(names(&SqliteStore::open(&copy).unwrap()).await, ["late"], "without the log beside it");
}

#[tokio::test]
async fn nobody_else_can_read_what_is_stored() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    write(&store, "secretive").await;
    let backup = store.backup(&folder.path().join("backup.db")).unwrap();
    let restored = folder.path().join("restored.db");
    restore(&backup, &restored, false).unwrap();
    for file in [path.clone(), beside(&path, "-wal"), beside(&path, "-shm"), backup, restored] {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn the_log_has_its_room_before_it_is_written() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    let size = || fs::metadata(beside(&path, "-wal")).unwrap().len();
    let before = size();
    for number in 0..100 {
        write(&store, &format!("agent-{number}")).await;
    }
    assert_eq!(size(), before, "a sync need not bring a new size to disk");
    drop(store);
    assert_eq!(names(&SqliteStore::open(&path).unwrap()).await.len(), 100);
}

#[test]
fn who_looks_for_the_living_does_not_pass_by_those_who_ended() {
    const ENDED: usize = 5000;
    const STEPS_PER_TICK: usize = 100;
    let folder = TempDir::new().unwrap();
    let mut connection = open::writer(&Options::at(&folder.path().join("store.db"))).unwrap();
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ENDED}) \
         INSERT INTO runs (id, task, session, place, lane, state, epoch, journal, ended, body) \
         SELECT randomblob(16), randomblob(16), randomblob(16), 0, 1, 'succeeded', 1, 1, 1, '{{}}' FROM n; \
         INSERT INTO workers VALUES ('w', 1, 0, 0, 0, 0, '{{}}', 'open'); \
         INSERT INTO tasks (id, namespace, name, state, request, body) \
         SELECT task, 'default', hex(task), 'succeeded', '{{}}', '{{}}' FROM runs;"
    );
    connection.execute_batch(&fill).unwrap();
    let ticks = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&ticks);
    let tick = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        false
    };
    connection.progress_handler(STEPS_PER_TICK as i32, Some(tick)).unwrap();

    let now = Timestamp::from_millis(1);
    let queries = [
        Query::Leased { worker: None },
        Query::Leased { worker: Some("w".into()) },
        Query::Due { after: DuePlace::FIRST, now, limit: 100 },
        Query::NextDue,
        Query::Workers,
        list(&["running", "waiting"], None),
        list(&["queued"], Some("default")),
        list(&["failed", "cancelled"], None),
        list(&["dead_letter"], Some("default")),
        list(&[], Some("team")),
    ];
    for query in queries {
        read::read(&connection, &query).unwrap();
        assert!(
            ticks.swap(0, Ordering::Relaxed) * STEPS_PER_TICK < ENDED,
            "{query:?} passes by all that ended"
        );
    }
    let lease = Lease { worker: "w".into(), incarnation: 1, claim: 1 };
    let request = Claim::new(lease, 10, now);
    let (turns, effects) = (&mut Turns::default(), &mut Default::default());
    claim::claim_runs(&connection, &request, turns, effects, Planted::default()).unwrap();
    assert!(ticks.load(Ordering::Relaxed) * STEPS_PER_TICK < ENDED, "a claim passes by every run");
}

fn list(states: &[&str], namespace: Option<&str>) -> Query {
    let (states, namespace) =
        (states.iter().map(ToString::to_string).collect(), namespace.map(str::to_owned));
    Query::Tasks(TaskFilter { states, namespace, limit: 50, ..TaskFilter::default() })
}

async fn write(store: &SqliteStore, name: &str) {
    store.commit(vec![bundle(name)]).await.unwrap().remove(0).unwrap();
}

fn bundle(name: &str) -> Bundle {
    let key = ResourceKey { kind: "Agent".into(), namespace: "default".into(), name: name.into() };
    let (created_at, document) = (Timestamp::from_millis(1), serde_json::json!({}));
    put(StoredResource { key, version: 1, generation: 1, created_at, document }, None)
}

async fn names(store: &SqliteStore) -> Vec<String> {
    let resources = store
        .resources(ResourceFilter { kind: "Agent".into(), limit: 100, ..ResourceFilter::default() })
        .await
        .unwrap();
    resources.into_iter().map(|resource| resource.key.name).collect()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
