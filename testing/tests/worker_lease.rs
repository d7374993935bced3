//! The lease as a worker and its servers see it: servers that come back with a shorter one, and a worker that is told to stop
//! while nobody hears it, or while it is heard late. Real control, store and workers; only the road between them is ours.

#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

mod stack;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use ostler_control::Control;
use ostler_kernel::{
    Event, EventBody, Runtime, TaskState, Timestamp,
    run::AttemptEnd,
    runtime::{BoxFuture, Spawned, timeout},
};
use ostler_link::{LinkError, Request, Response, WorkerPort};
use ostler_store::{SqliteStore, Store};
use ostler_testing::model_server::{ModelServer, Script, Settings};
use ostler_worker::{End, Equipment, WorkerHandle};
use serde_json::json;
use stack::Stack;

const PATIENCE: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_come_back_with_a_shorter_lease_take_no_run_from_who_lives() {
    let (long, short) = (Duration::from_secs(8), Duration::from_secs(1));
    let model = model_that_takes(Duration::from_secs(4)).await;
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&folder.path().join("store.db")).expect("a store"));
    let before = Stack::on(Arc::clone(&store), long);
    declare(&before, &model).await;
    let road = Road::to(&before, Duration::ZERO);
    let worker = before.worker("a", 1, Arc::clone(&road) as _);
    let task = before.create("first", plan()).await;
    wait_until(&before, async || model.desk().all().inflight == 1).await;
    drop(before);

    let after = Stack::on(store, short);
    road.lead_to(Some(&after));
    let watched = after.watch(task.id).await;
    assert_eq!(
        attempts(&watched.events),
        ["a: -"],
        "it renews as seldom as it was told, and that is no silence"
    );

    // It has heard of the new length by now: who is cut off is found out soon, and not after the former one.
    after.create("second", plan()).await;
    wait_until(&after, async || model.desk().all().inflight == 1).await;
    let other = after.worker("b", 1, Arc::clone(&after.control) as _);
    road.lead_to(None);
    let cut_at = after.runtime.monotonic();
    wait_until(&after, async || model.desk().all().received == 3).await;
    let found_after = after.runtime.monotonic().saturating_sub(cut_at);
    assert!(found_after < long, "its run was taken over after {found_after:?}");
    [worker, other].iter().for_each(WorkerHandle::abort);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_nobody_hears_ends_when_it_is_told_to() {
    // The lease ends while it waits; and long after nobody waits any more.
    for lease in [Duration::from_millis(300), Duration::from_secs(300)] {
        let model = model_that_takes(Duration::from_secs(60)).await;
        let stack = Stack::start(lease);
        declare(&stack, &model).await;
        let road = Road::to(&stack, Duration::ZERO);
        let worker = Stack::worker_with("a", 2, hasty(&stack, &road, 20));
        for name in ["one", "two"] {
            stack.create(name, plan()).await;
        }
        wait_until(&stack, async || model.desk().all().inflight == 2).await;
        road.lead_to(None);
        let ended = timeout(&*stack.runtime, PATIENCE, worker.stop()).await;
        assert_eq!(ended.expect("it goes on trying for ever"), Some(End::Stopped), "a lease of {lease:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_back_to_a_slow_server_is_not_lost() {
    const N_TASKS: u32 = 4;
    let model = model_that_takes(Duration::from_secs(3)).await;
    let stack = Stack::start(Duration::from_secs(1));
    declare(&stack, &model).await;
    // One after another they would take longer than the lease.
    let road = Road::to(&stack, Duration::from_millis(600));
    let worker = Stack::worker_with("a", N_TASKS, hasty(&stack, &road, 10));
    let mut tasks = Vec::new();
    for n in 0..N_TASKS {
        tasks.push(stack.create(&format!("task-{n}"), plan()).await);
    }
    wait_until(&stack, async || model.desk().all().inflight == u64::from(N_TASKS)).await;
    assert_eq!(worker.stop().await, Some(End::Stopped));
    let other = stack.worker("b", N_TASKS, Arc::clone(&stack.control) as _);
    for task in tasks {
        let watched = stack.watch(task.id).await;
        assert_eq!(watched.task.task.state, TaskState::Succeeded);
        assert_eq!(attempts(&watched.events), ["a: given back", "b: -"]);
    }
    other.stop().await;
}

async fn model_that_takes(latency: Duration) -> ModelServer {
    let settings = Settings { latency, ..Settings::default() };
    ModelServer::start_with(Script::Plan, settings).await.expect("a model")
}

async fn declare(stack: &Stack, model: &ModelServer) {
    let endpoint = json!({
        "provider": "openai", "base_url": model.base_url(), "default_model": "scripted", "allowPrivate": true,
    });
    stack.apply("ModelEndpoint", "scripted", endpoint).await;
    stack.apply("Agent", "helper", json!({ "model_ref": "scripted", "prompt": "Help." })).await;
}

fn plan() -> serde_json::Value {
    json!({ "agent": "helper", "input": { "message": "plan: text=\"done\"" } })
}

/// Who tried, and how it ended if it wasn't with the run.
fn attempts(events: &[Event]) -> Vec<String> {
    let mut attempts: Vec<String> = Vec::new();
    for event in events {
        match &event.body {
            EventBody::AttemptStarted { worker, .. } => attempts.push(format!("{worker}: -")),
            EventBody::AttemptEnded { end, .. } => {
                let last = attempts.last_mut().expect("an attempt began");
                let how = if *end == AttemptEnd::Yielded { "given back" } else { "lost" };
                *last = last.replace('-', how);
            }
            _ => {}
        }
    }
    attempts
}

async fn wait_until(stack: &Stack, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            stack.runtime.sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(&*stack.runtime, PATIENCE, waiting).await.expect("it never came");
}

/// A worker's way to a server: to this one, to another one, or to nobody.
struct Road {
    runtime: Arc<dyn Runtime>,
    leads_to: Mutex<Option<Arc<Control>>>,
    /// So long it takes until who leaves a run hears that it counted.
    delay: Duration,
}

impl Road {
    fn to(stack: &Stack, delay: Duration) -> Arc<Self> {
        let leads_to = Mutex::new(Some(Arc::clone(&stack.control)));
        Arc::new(Self { runtime: Arc::clone(&stack.runtime), leads_to, delay })
    }

    fn lead_to(&self, stack: Option<&Stack>) {
        let control = stack.map(|stack| Arc::clone(&stack.control));
        *self.leads_to.lock().unwrap_or_else(PoisonError::into_inner) = control;
    }
}

#[async_trait]
impl WorkerPort for Road {
    async fn call(&self, request: Request) -> Result<Response, LinkError> {
        let leads_to = self.leads_to.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let nobody = || LinkError::Unavailable { message: "the road leads nowhere".into() };
        let control = leads_to.ok_or_else(nobody)?;
        let is_leaving = matches!(request, Request::Leave(_));
        let answer = control.call(request).await;
        if is_leaving {
            self.runtime.sleep(self.delay).await;
        }
        answer
    }
}

/// What a worker works with for whom waiting takes a part of the time.
fn hasty(stack: &Stack, road: &Arc<Road>, times: u32) -> Equipment {
    let runtime = Arc::new(Hasty { runtime: Arc::clone(&stack.runtime), times });
    Equipment { runtime, ..stack.equipment(Arc::clone(road) as _) }
}

struct Hasty {
    runtime: Arc<dyn Runtime>,
    times: u32,
}

impl Runtime for Hasty {
    fn now(&self) -> Timestamp {
        self.runtime.now()
    }

    fn monotonic(&self) -> Duration {
        self.runtime.monotonic()
    }

    fn random(&self) -> u64 {
        self.runtime.random()
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        self.runtime.sleep(delay / self.times)
    }

    fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) -> Spawned {
        self.runtime.spawn(name, future)
    }
}
