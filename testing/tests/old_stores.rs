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

use ostler_kernel::{Bundle, Command, EventBody, TaskId, TaskState, run::AttemptEnd};
use ostler_link::{Caller, ClaimRequest, RegisterRequest, Registered, WorkerPortExt};
use ostler_store::{PostgresStore, SqliteStore, Store};
use ostler_testing::postgres::{self, Postgres};
use ostler_worker::Offer;
use rusqlite::Connection;
use serde_json::json;
use stack::Stack;
use tempfile::TempDir;
use tokio::task::JoinSet;

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

/// There is no way back but a backup: what is in it may mean something else by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_newer_version_is_refused_and_left_as_it_is() {
    let database = Postgres::start(&["fsync=off"]).unwrap();
    drop(open(&database).await);
    let version =
        || -> i64 { database.ask("SELECT max(version) FROM ostler.migrations").unwrap().parse().unwrap() };
    let known = version();
    let newer = known + 1;
    database.ask(&format!("INSERT INTO ostler.migrations VALUES ({newer})")).unwrap();
    let before = database.dump("ostler").unwrap();
    let refused = postgres::open(&database.url()).await.err().expect("it can't know what is in there");
    let said = format!(
        "the store was written by a newer version of ostler (schema {newer}, this one knows {known})"
    );
    assert_eq!(refused.to_string(), said);
    assert_eq!(database.dump("ostler").unwrap(), before);
    assert_eq!(version(), newer);
}

/// Someone reads for long, such as a backup; what has to be changed can't be, and nobody is to wait behind that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_has_to_wait_holds_up_nobody() {
    let database = Postgres::start(&["fsync=off"]).unwrap();
    let (version, dump) = fixtures("postgres").remove(0);
    database.ask(&dump).unwrap();
    let mut working = JoinSet::new();
    let reader = connect(&database, &mut working).await;
    let server = connect(&database, &mut working).await;
    reader.batch_execute("BEGIN; SELECT 1 FROM ostler.blobs; SELECT 1 FROM ostler.tasks").await.unwrap();
    let url = database.url();
    let mut opening = JoinSet::new();
    let new = opening.spawn(async move { postgres::open(&url).await.unwrap() });
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IS NOT NULL";
    let count = async || server.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0);
    while count().await == 0 {}
    // As long as a server waits for anything.
    server.batch_execute("SET lock_timeout = '3s'").await.unwrap();
    for table in ["blobs", "tasks"] {
        server.batch_execute(&format!("SELECT count(*) FROM ostler.{table}")).await.unwrap();
    }
    while count().await > 0 {}
    let found = server.query_one("SELECT max(version) FROM ostler.migrations", &[]).await.unwrap();
    assert_eq!(found.get::<_, i64>(0), i64::from(version), "nothing is done by half");
    assert!(!new.is_finished());
    reader.batch_execute("COMMIT").await.unwrap();
    let opened = tokio::time::timeout(Duration::from_secs(60), opening.join_next()).await;
    let store = opened.expect("nobody is in the way any more").unwrap().unwrap();
    go_on(Arc::new(store)).await;
}

async fn connect(database: &Postgres, working: &mut JoinSet<()>) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&database.url(), tokio_postgres::NoTls).await.unwrap();
    working.spawn(async move { drop(connection.await) });
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_a_newer_version_are_passed_on() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let task = tell_of_news(Arc::new(SqliteStore::open(&path).unwrap())).await;
    let store = loop {
        // Those who had it open may be about to let it go.
        match SqliteStore::open(&path) {
            Ok(store) => break store,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    read_news(Arc::new(store), task).await;
    let database = Postgres::start(&["fsync=off"]).unwrap();
    let task = tell_of_news(Arc::new(open(&database).await)).await;
    read_news(Arc::new(open(&database).await), task).await;
}

/// What a newer version may write to a task's log, while this one runs beside it.
async fn tell_of_news(store: Arc<dyn Store>) -> TaskId {
    let stack = Stack::on(Arc::clone(&store), LEASE);
    stack.apply("ModelEndpoint", "mock", json!({ "provider": "mock", "default_model": "mock-1" })).await;
    stack.apply("Agent", "helper", json!({ "model_ref": "mock", "prompt": "Help." })).await;
    let task = stack.create("task", json!({ "agent": "helper", "input": { "message": "do it" } })).await;
    for news in
        [json!({ "type": "run_pondered", "about": ["this"] }), json!({ "type": "run_ready", "run": 7 })]
    {
        let body: EventBody = serde_json::from_value(news).unwrap();
        let bundle = Bundle::new(Command::Archive).event(task.id, task.created_at, body);
        assert!(store.commit(vec![bundle]).await.unwrap()[0].is_ok());
    }
    task.id
}

async fn read_news(store: Arc<dyn Store>, task: TaskId) {
    let stack = Stack::on(store, LEASE);
    let mut all = stack.control.watch_events(Some(0)).await.unwrap();
    let worker = stack.worker("w", 1, Arc::clone(&stack.control) as _);
    let watched = stack.watch(task).await;
    assert_eq!(watched.task.task.state, TaskState::Succeeded);
    assert!(watched.events.iter().map(|event| event.seq).eq(1..=watched.task.last_seq));
    let of_task = watched.events.iter().map(|event| serde_json::to_value(&event.body).unwrap());
    let unknown: Vec<_> = of_task.filter(|body| body["about"][0] == "this" || body["run"] == 7).collect();
    assert_eq!(unknown.len(), 2, "they are shown as they are: {:?}", watched.events);
    let last = watched.events.last().unwrap().position;
    let mut seen = Vec::new();
    while seen.last() != Some(&last) {
        seen.push(tokio::time::timeout(LEASE * 20, all.next()).await.unwrap().unwrap().0.position);
    }
    assert!(watched.events.iter().all(|event| seen.contains(&event.position)));
    worker.stop().await;
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
