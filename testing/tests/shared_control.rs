//! Two servers on one PostgreSQL, each with a control of its own: what is asked of one reaches the worker of the other.

#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

mod stack;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use ostler_kernel::{Bundle, Refusal, TaskState, runtime::timeout};
use ostler_store::{
    Answer, Claim, Claimed, Committed, Hint, Query, Store, StoreError, StoreExt, planted::Bug,
};
use ostler_testing::{
    model_server::{ModelServer, Script, Settings},
    postgres::Place,
};
use serde_json::{Value, json};
use stack::Stack;
use tokio::sync::watch;

/// So long that nobody learns of anything by a renewal.
const LEASE: Duration = Duration::from_secs(3600);

/// Longer than any test waits.
const FOR_EVER: Duration = Duration::from_secs(600);

async fn two_servers() -> (Stack, Stack) {
    two_servers_at(&Place::fresh().expect("PostgreSQL")).await
}

async fn two_servers_at(place: &Place) -> (Stack, Stack) {
    let mut stores = place.servers(2).await.expect("PostgreSQL");
    let (two, one) = (stores.pop().expect("two"), stores.pop().expect("one"));
    (Stack::on(one, LEASE), Stack::on(two, LEASE))
}

async fn declare(stack: &Stack, model: &ModelServer, prompt: &str) {
    let endpoint = json!({
        "provider": "openai", "base_url": model.base_url(), "default_model": "scripted", "allowPrivate": true,
    });
    stack.apply("ModelEndpoint", "scripted", endpoint).await;
    stack.apply("Agent", "helper", json!({ "model_ref": "scripted", "prompt": prompt })).await;
}

fn asks(message: &str) -> Value {
    json!({ "agent": "helper", "input": { "message": message } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_accepts_shows_live_what_the_other_runs() {
    let model = ModelServer::start(Script::Plan).await.expect("a model");
    let (one, two) = two_servers().await;
    declare(&one, &model, "Help.").await;
    let worker = one.worker("w", 4, Arc::clone(&one.control) as _);
    for round in 0..5 {
        let task = two.create(&format!("task-{round}"), asks("plan: text=\"done\"")).await;
        let watched = two.watch(task.id).await;
        assert_eq!(watched.task.task.state, TaskState::Succeeded);
        assert!(watched.events.last().is_some_and(|event| event.body.is_last()));
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_one_server_stops_the_work_at_the_other() {
    let settings = Settings { latency: FOR_EVER, ..Settings::default() };
    let stuck = ModelServer::start_with(Script::Plan, settings).await.expect("a model");
    let quick = ModelServer::start(Script::Plan).await.expect("a model");
    let (one, two) = two_servers().await;
    declare(&one, &stuck, "Help.").await;
    // It has room for one run, and the model it asks never answers.
    let worker = one.worker("w", 1, Arc::clone(&one.control) as _);
    let first = two.create("first", asks("anything")).await;
    while stuck.desk().all().received == 0 {
        one.runtime.sleep(Duration::from_millis(5)).await;
    }
    declare(&two, &quick, "Help.").await;
    let second = one.create("second", asks("plan: text=\"done\"")).await;
    two.control.cancel(first.id, "not wanted").await.expect("it runs");
    let watched = one.watch(second.id).await;
    assert_eq!(watched.task.task.state, TaskState::Succeeded, "its worker has room again");
    worker.stop().await;
}

/// Someone else in the same database writes, and does not end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_a_task_sees_its_end_though_the_log_of_all_is_held_up() {
    let model = ModelServer::start(Script::Plan).await.expect("a model");
    let place = Place::fresh().expect("PostgreSQL");
    let (one, two) = two_servers_at(&place).await;
    declare(&one, &model, "Help.").await;
    let worker = one.worker("w", 4, Arc::clone(&one.control) as _);
    let visitor = place.visitor().await.expect("PostgreSQL");
    visitor.execute("BEGIN; CREATE TABLE held_up ()").await.expect("PostgreSQL");
    let here = "SELECT (base + pg_current_xact_id()::text::bigint) << 16 FROM origin";
    let here = visitor.number(here).await.expect("a number") as u64;
    for round in 0..2 {
        let task = two.create(&format!("task-{round}"), asks("plan: text=\"done\"")).await;
        for server in [&one, &two] {
            let watched = server.watch(task.id).await;
            assert_eq!(watched.task.task.state, TaskState::Succeeded);
            assert!(watched.events.iter().map(|event| event.seq).eq(1..=watched.task.last_seq));
        }
    }
    let upto = one.control.store().firm_log(0, 0).await.expect("a log").upto;
    assert!(upto < here, "it was held up all the time");
    visitor.let_go().await.expect("PostgreSQL");
    worker.stop().await;
}

/// What a server was told of is gone, as after a standby that had not got all of it took over. Positions begin below.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_goes_on_when_its_store_is_put_back() {
    let model = ModelServer::start(Script::Plan).await.expect("a model");
    let place = Place::fresh().expect("PostgreSQL");
    let (one, two) = two_servers_at(&place).await;
    declare(&one, &model, "Help.").await;
    let visitor = place.visitor().await.expect("PostgreSQL");
    let ahead = "INSERT INTO events (task, seq, position, at, body) SELECT gen_random_uuid(), 1, \
        (base + pg_current_xact_id()::text::bigint + 1000000) << 16, 0, '' FROM origin";
    visitor.execute(ahead).await.expect("PostgreSQL");
    let last = visitor.number("SELECT max(position) FROM events").await.expect("a number") as u64;
    for server in [&one, &two] {
        hinted(server, |hint| hint.position >= last).await;
    }
    let mut all = one.control.watch_events(None).await.expect("a watch");
    visitor.execute(&format!("DELETE FROM events WHERE position = {last}")).await.expect("PostgreSQL");
    for server in [&one, &two] {
        hinted(server, |hint| hint.position < last).await;
    }
    let worker = one.worker("w", 4, Arc::clone(&one.control) as _);
    let task = two.create("task", asks("plan: text=\"done\"")).await;
    for server in [&one, &two] {
        let watched = server.watch(task.id).await;
        assert_eq!(watched.task.task.state, TaskState::Succeeded);
    }
    assert!(all.next().await.is_err(), "who watches everything has to begin anew");
    let mut all = one.control.watch_events(Some(last)).await.expect("a watch");
    two.create("another", asks("plan: text=\"done\"")).await;
    assert!(all.next().await.expect("an event").0.position < last, "and is told of what comes");
    worker.stop().await;
}

/// Plans, credentials and quotas are made anew where resources have changed, though nobody tells of it (decision 39).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_tells_of_resources_that_changed() {
    let place = Place::fresh().expect("PostgreSQL");
    let (one, two) = two_servers_at(&place).await;
    let resources = |server: &Stack| server.control.store().watch().borrow().resources;
    // A server that has just come up tells of them for a while, since there may be changes that are on their way.
    let mut quiet_since = one.runtime.monotonic();
    let mut before = resources(&one);
    while one.runtime.monotonic() < quiet_since + Duration::from_secs(5) {
        let ready = one.control.store().watch().borrow().ready;
        hinted(&one, |hint| hint.ready > ready).await;
        if resources(&one) != before {
            (before, quiet_since) = (resources(&one), one.runtime.monotonic());
        }
    }
    let before = [&one, &two].map(resources);
    // As a server does that is older, or whose notification is lost.
    let visitor = place.visitor().await.expect("PostgreSQL");
    visitor.execute("UPDATE resources SET version = version").await.expect("PostgreSQL");
    for (server, before) in [&one, &two].into_iter().zip(before) {
        hinted(server, |hint| hint.resources > before).await;
    }
}

async fn hinted(server: &Stack, is_so: impl FnMut(&Hint) -> bool) {
    let mut hints = server.control.store().watch();
    let hinted = timeout(&*server.runtime, Duration::from_secs(60), hints.wait_for(is_so)).await;
    drop(hinted.expect("it is noticed").expect("the store is open"));
}

/// A task that comes while a worker waits costs one claim, in the transaction that accepts it. In one thread, so that the
/// store sees both at once; and without the sweep, which has everybody look.
#[tokio::test]
async fn who_is_given_what_comes_does_not_ask_in_between() {
    const N_TASKS: usize = 5;
    let model = ModelServer::start(Script::Plan).await.expect("a model");
    let place = Place::fresh().expect("PostgreSQL").planted(Bug::NoticesLost);
    let (store, stack) = Counting::on(&place).await;
    declare(&stack, &model, "Help.").await;
    let worker = stack.worker("w", 4, Arc::clone(&stack.control) as _);
    store.first_claim(&stack).await;
    let before = store.watch().borrow().ready;
    for round in 0..N_TASKS {
        let task = stack.create(&format!("task-{round}"), asks("plan: text=\"done\"")).await;
        assert_eq!(stack.watch(task.id).await.task.task.state, TaskState::Succeeded);
    }
    assert_eq!(store.n_claims.load(Ordering::Relaxed), 1 + N_TASKS);
    assert_eq!(store.watch().borrow().ready, before, "nobody else is woken");
    worker.stop().await;
}

/// Each row at the first place of its table: had it been changed behind its beginning, it would stand at another.
#[tokio::test]
async fn what_is_accepted_and_given_at_once_is_written_once() {
    let settings = Settings { latency: FOR_EVER, ..Settings::default() };
    let stuck = ModelServer::start_with(Script::Plan, settings).await.expect("a model");
    let place = Place::fresh().expect("PostgreSQL").planted(Bug::NoticesLost);
    let (store, stack) = Counting::on(&place).await;
    declare(&stack, &stuck, "Help.").await;
    let _worker = stack.worker("w", 4, Arc::clone(&stack.control) as _);
    store.first_claim(&stack).await;
    stack.create("task", asks("anything")).await;
    while stuck.desk().all().received == 0 {
        stack.runtime.sleep(Duration::from_millis(5)).await;
    }
    let visitor = place.visitor().await.expect("PostgreSQL");
    for table in ["tasks", "runs", "sessions"] {
        let first = format!("SELECT count(*) FROM {table} WHERE ctid = '(0,1)'");
        assert_eq!(visitor.number(&first).await.expect("a number"), 1, "{table}");
    }
    let running = "SELECT count(*) FROM runs WHERE live AND worker = 'w' AND rank IS NULL";
    assert_eq!(visitor.number(running).await.expect("a number"), 1);
}

struct Counting {
    inner: Box<dyn Store>,
    n_claims: AtomicUsize,
}

impl Counting {
    async fn on(place: &Place) -> (Arc<Self>, Stack) {
        let inner = Box::new(place.open().await.expect("a store in PostgreSQL"));
        let store = Arc::new(Self { inner, n_claims: AtomicUsize::new(0) });
        (Arc::clone(&store), Stack::on(store, LEASE))
    }

    /// Behind it the worker waits.
    async fn first_claim(&self, stack: &Stack) {
        while self.n_claims.load(Ordering::Relaxed) == 0 {
            stack.runtime.sleep(Duration::from_millis(5)).await;
        }
    }
}

#[async_trait]
impl Store for Counting {
    async fn commit(&self, bundles: Vec<Bundle>) -> Result<Vec<Result<Committed, Refusal>>, StoreError> {
        self.inner.commit(bundles).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        let claimed = self.inner.claim(claim).await;
        self.n_claims.fetch_add(1, Ordering::Relaxed);
        claimed
    }

    async fn read(&self, query: Query) -> Result<Answer, StoreError> {
        self.inner.read(query).await
    }

    fn watch(&self) -> watch::Receiver<Hint> {
        self.inner.watch()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }
}
