//! A worker that is paused past its lease and then goes on can't write: what it sends late is refused, it has
//! stopped by itself, and it registers anew. Real control, store and workers; only the link between them
//! hangs.

#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

mod stack;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use ostler_control::Control;
use ostler_kernel::{Event, EventBody, Runtime, TaskState, run::AttemptEnd, runtime::timeout};
use ostler_link::{LinkError, Request, Response, WorkerPort};
use ostler_store::StoreExt;
use ostler_testing::model_server::{ModelServer, Script};
use serde_json::json;
use stack::Stack;
use tokio::sync::{oneshot, watch};

const LEASE: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_paused_past_its_lease_cannot_write_and_starts_over() {
    let model = ModelServer::start(Script::Plan).await.expect("a model");
    let stack = Stack::start(LEASE);
    declare(&stack, &model).await;
    let gate = Arc::new(Gate::new(&stack));
    let paused = stack.worker("a", 1, Arc::clone(&gate) as _);

    // `a` has its first answer and wants to write it down: from here on it is cut off.
    let task = stack.create("first", plan("tool nowhere {}, text=\"done\"")).await;
    gate.wait_until_frozen().await;
    let other = stack.worker("b", 1, Arc::clone(&stack.control) as _);
    let watched = stack.watch(task.id).await;
    assert_eq!(watched.task.task.state, TaskState::Succeeded);
    assert_eq!(attempts(&watched.events), ["a: lost", "b: -"]);
    assert_eq!(finished_steps(&watched.events), [0, 1, 2]);
    let calls = model.desk().all().received;

    gate.thaw();
    let answers = gate.late_journal_answers().await;
    for answer in &answers {
        assert!(matches!(answer, Err(LinkError::Fenced { .. })), "a late write was answered {answer:?}");
    }
    assert_eq!(stack.row(task.id).await.last_seq, watched.task.last_seq, "a late write is in the log");

    // It stopped by itself, and is a worker again.
    wait_until(&stack, async || incarnation(&stack, "a").await == 2).await;
    other.stop().await;
    let task = stack.create("second", plan("text=\"done too\"")).await;
    let watched = stack.watch(task.id).await;
    assert_eq!(
        (watched.task.task.state, attempts(&watched.events)),
        (TaskState::Succeeded, vec!["a: -".into()])
    );
    assert_eq!(model.desk().all().received, calls + 1, "the paused worker called the model for a lost run");
    paused.stop().await;
}

async fn declare(stack: &Stack, model: &ModelServer) {
    let endpoint = json!({
        "provider": "openai", "base_url": model.base_url(), "default_model": "scripted", "allowPrivate": true,
    });
    stack.apply("ModelEndpoint", "scripted", endpoint).await;
    stack.apply("Agent", "helper", json!({ "model_ref": "scripted", "prompt": "Help." })).await;
}

fn plan(plan: &str) -> serde_json::Value {
    json!({ "agent": "helper", "input": { "message": format!("plan: {plan}") } })
}

/// Who tried, and how it ended if it wasn't with the run.
fn attempts(events: &[Event]) -> Vec<String> {
    let mut attempts: Vec<String> = Vec::new();
    for event in events {
        match &event.body {
            EventBody::AttemptStarted { worker, .. } => attempts.push(format!("{worker}: -")),
            EventBody::AttemptEnded { end: AttemptEnd::Lost, .. } => {
                let last = attempts.last_mut().expect("an attempt began");
                *last = last.replace('-', "lost");
            }
            _ => {}
        }
    }
    attempts
}

fn finished_steps(events: &[Event]) -> Vec<u32> {
    let step = |event: &Event| match &event.body {
        EventBody::StepFinished(step) => Some(step.step),
        _ => None,
    };
    events.iter().filter_map(step).collect()
}

async fn incarnation(stack: &Stack, name: &str) -> u64 {
    let workers = stack.control.store().workers().await.expect("the workers");
    workers.iter().find(|worker| worker.name == name).map_or(0, |worker| worker.incarnation)
}

async fn wait_until(stack: &Stack, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            stack.runtime.sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(&*stack.runtime, PATIENCE, waiting).await.expect("it never came");
}

/// A link that hangs, from the first journal write on until it is thawed: nothing gets through, in neither
/// direction. What was sent meanwhile is delivered then, even if its sender has given up.
struct Gate {
    control: Arc<Control>,
    runtime: Arc<dyn Runtime>,
    frozen: watch::Sender<bool>,
    was_frozen: AtomicBool,
    late: Arc<Mutex<Vec<Result<Response, LinkError>>>>,
    n_late: watch::Sender<usize>,
}

impl Gate {
    fn new(stack: &Stack) -> Self {
        Self {
            control: Arc::clone(&stack.control),
            runtime: Arc::clone(&stack.runtime),
            frozen: watch::channel(false).0,
            was_frozen: AtomicBool::new(false),
            late: Arc::default(),
            n_late: watch::channel(0).0,
        }
    }

    async fn wait_until_frozen(&self) {
        let mut frozen = self.frozen.subscribe();
        let waiting = frozen.wait_for(|frozen| *frozen);
        timeout(&*self.runtime, PATIENCE, waiting).await.expect("no write came").expect("the gate is there");
    }

    fn thaw(&self) {
        self.frozen.send_replace(false);
    }

    /// What the writes were answered that had been held back.
    async fn late_journal_answers(&self) -> Vec<Result<Response, LinkError>> {
        let mut n_late = self.n_late.subscribe();
        let waiting = n_late.wait_for(|n_late| *n_late > 0);
        timeout(&*self.runtime, PATIENCE, waiting).await.expect("no late write").expect("the gate is there");
        self.late.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Delivers the request once the link is thawed.
    fn deliver_late(&self, request: Request) -> oneshot::Receiver<Result<Response, LinkError>> {
        let (sender, receiver) = oneshot::channel();
        let (control, late, n_late) =
            (Arc::clone(&self.control), Arc::clone(&self.late), self.n_late.clone());
        let mut frozen = self.frozen.subscribe();
        let delivering = async move {
            if frozen.wait_for(|frozen| !*frozen).await.is_err() {
                return;
            }
            let is_journal = matches!(request, Request::Journal(_));
            let answer = control.call(request).await;
            if is_journal {
                let mut late = late.lock().unwrap_or_else(PoisonError::into_inner);
                late.push(answer.clone());
                n_late.send_replace(late.len());
            }
            // Whoever asked may have given up.
            let _ = sender.send(answer);
        };
        self.runtime.spawn("late delivery", Box::pin(delivering)).detach();
        receiver
    }
}

#[async_trait]
impl WorkerPort for Gate {
    async fn call(&self, request: Request) -> Result<Response, LinkError> {
        let gone = |_| LinkError::Unavailable { message: "the link is gone".into() };
        if matches!(request, Request::Journal(_)) && !self.was_frozen.swap(true, Ordering::SeqCst) {
            self.frozen.send_replace(true);
        }
        if *self.frozen.borrow() {
            return self.deliver_late(request).await.map_err(gone)?;
        }
        let answer = self.control.call(request).await;
        let mut frozen = self.frozen.subscribe();
        frozen
            .wait_for(|frozen| !*frozen)
            .await
            .map_err(|_| LinkError::Unavailable { message: "the link is gone".into() })?;
        answer
    }
}
