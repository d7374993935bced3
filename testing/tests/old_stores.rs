//! Stores that an older version left behind, with work in them, open and work: one file for each schema that was ever
//! released, in `fixtures/stores`, as SQL.
//!
//! A new migration: `WRITE_FIXTURES=1 cargo test -p ostler-testing --test old_stores` keeps a store of the new schema
//! beside the others. Those that are there stay as they are.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod stack;

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ostler_kernel::{EventBody, TaskState, run::AttemptEnd};
use ostler_link::{Caller, ClaimRequest, RegisterRequest, Registered, WorkerPortExt};
use ostler_store::{PostgresStore, SqliteStore, Store};
use ostler_testing::postgres::{self, Postgres};
use ostler_worker::Offer;
use rusqlite::Connection;
use serde_json::json;
use stack::Stack;
use tempfile::TempDir;

const LEASE: Duration = Duration::from_millis(500);

/// One that ended, one that someone held who is gone, one behind it in the same conversation, one that nobody began.
const TASKS: [&str; 4] = ["ended", "held", "behind", "waiting"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_files_open_and_their_work_goes_on() {
    if env::var_os("WRITE_FIXTURES").is_some() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        leave_work_behind(Arc::new(SqliteStore::open(&path).unwrap())).await;
        let (version, dump) = dump_file(&path);
        keep("sqlite", version, &dump);
    }
    for (version, dump) in fixtures("sqlite") {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        Connection::open(&path).unwrap().execute_batch(&dump).unwrap();
        go_on(Arc::new(SqliteStore::open(&path).unwrap())).await;
        assert!(dump_file(&path).0 >= version, "it was not brought up to date");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_databases_open_and_their_work_goes_on() {
    if env::var_os("WRITE_FIXTURES").is_some() {
        let database = Postgres::start(&["fsync=off"]).unwrap();
        leave_work_behind(Arc::new(open(&database).await)).await;
        let version = database.ask("SELECT max(version) FROM ostler.migrations").unwrap();
        keep("postgres", version.parse().unwrap(), &database.dump("ostler").unwrap());
    }
    for (_, dump) in fixtures("postgres") {
        let database = Postgres::start(&["fsync=off"]).unwrap();
        database.ask(&dump).unwrap();
        go_on(Arc::new(open(&database).await)).await;
    }
}

async fn open(database: &Postgres) -> PostgresStore {
    postgres::open(&database.url()).await.unwrap()
}

/// The work of an older version, up to where it stopped.
async fn leave_work_behind(store: Arc<dyn Store>) {
    let stack = Stack::on(store, Duration::from_secs(3600));
    stack.apply("ModelEndpoint", "mock", json!({ "provider": "mock", "default_model": "mock-1" })).await;
    stack.apply("Agent", "helper", json!({ "model_ref": "mock", "prompt": "Help." })).await;
    let spec = |task: &str| {
        let mut spec = json!({ "agent": "helper", "idempotency_key": task, "input": { "message": format!("do {task}") } });
        if ["held", "behind"].contains(&task) {
            spec["session"] = json!("talk");
        }
        spec
    };
    let worker = stack.worker("busy", 1, Arc::clone(&stack.control) as _);
    let ended = stack.create("ended", spec("ended")).await;
    stack.watch(ended.id).await;
    worker.stop().await;
    stack.create("held", spec("held")).await;
    let register = RegisterRequest { name: "gone".into(), instance: 1, former: 0, offer: Offer::of_slots(1) };
    let Registered::As { incarnation, .. } = stack.control.register(register).await.unwrap() else {
        panic!("someone has that name")
    };
    let caller = Caller { worker: "gone".into(), incarnation };
    let claim = ClaimRequest { caller, number: 1, slots: 1, wait_ms: 0 };
    assert_eq!(WorkerPortExt::claim(&*stack.control, claim).await.unwrap().len(), 1);
    stack.create("behind", spec("behind")).await;
    stack.create("waiting", spec("waiting")).await;
}

/// What this version does with it.
async fn go_on(store: Arc<dyn Store>) {
    let stack = Stack::on(store, LEASE);
    let worker = stack.worker("new", 4, Arc::clone(&stack.control) as _);
    for name in TASKS {
        let row = stack.control.task("default", name).await.unwrap();
        let watched = stack.watch(row.task.id).await;
        assert_eq!(watched.task.task.state, TaskState::Succeeded, "{name}");
        assert!(
            watched.events.iter().map(|event| event.seq).eq(1..=watched.task.last_seq),
            "{name} has gaps"
        );
        let is_lost =
            |body: &EventBody| matches!(body, EventBody::AttemptEnded { end: AttemptEnd::Lost, .. });
        let n_lost = watched.events.iter().filter(|event| is_lost(&event.body)).count();
        assert_eq!(n_lost, usize::from(name == "held"), "{name}");
    }
    // And what it is told anew.
    let again = stack.create("new", json!({ "agent": "helper", "input": { "message": "do it" } })).await;
    assert_eq!(stack.watch(again.id).await.task.task.state, TaskState::Succeeded);
    worker.stop().await;
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stores")
}

/// Each by the version of its schema.
fn fixtures(kind: &str) -> Vec<(u32, String)> {
    let mut fixtures = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if let Some(version) = name.strip_prefix(&format!("{kind}-")) {
            fixtures.push((version.parse().unwrap(), fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(!fixtures.is_empty(), "no old store of {kind} is kept; see the top of this file");
    fixtures.sort();
    fixtures
}

fn keep(kind: &str, version: u32, dump: &str) {
    let path = folder().join(format!("{kind}-{version}.sql"));
    if !path.exists() || env::var("WRITE_FIXTURES").is_ok_and(|what| what == "release") {
        fs::write(path, dump).unwrap();
    }
}

/// The version of the schema, and SQL that makes the same file again.
fn dump_file(path: &Path) -> (u32, String) {
    let file = Connection::open(path).unwrap();
    let version: u32 = file.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    let mut dump = format!("PRAGMA user_version = {version};\n");
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = file.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let made = texts("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'index', rowid");
    made.iter().for_each(|sql| dump.push_str(&format!("{sql};\n")));
    for table in texts("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid") {
        let columns = texts(&format!("SELECT 'quote(' || name || ')' FROM pragma_table_info('{table}')"));
        let values = columns.join(" || ', ' || ");
        for row in texts(&format!("SELECT {values} FROM {table}")) {
            dump.push_str(&format!("INSERT INTO {table} VALUES ({row});\n"));
        }
    }
    (version, dump)
}
