//! A small world around a store, so that a case reads as a short story: callers who ask, workers who claim,
//! time that passes. Every bundle in it is made by the kernel.

mod ask;
mod hand;
mod progress;

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use ostler_kernel::{
    BlockerId, Bundle, InputId, Refusal, Run, RunId, Session, SessionId, TaskId, Timestamp,
    bundle::WriteKey,
    event::Event,
    run::{
        RunView,
        blocker::{Blocker, BlockerKind},
        cancel,
        end::{self, Leave},
        journal::{self, Progress},
        take_over::{self, Cause},
        wake,
    },
    task::input,
    worker::Offer,
};

pub use self::{
    ask::Ask,
    hand::Hand,
    progress::{answers, asks_for_tools, tools_answer},
};
use crate::{Committed, Store, StoreExt, TaskRef, TaskRow};

pub struct World {
    pub store: Arc<dyn Store>,
    clock: AtomicI64,
    ids: AtomicU64,
}

impl World {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::beside(store, 0)
    }

    /// One of several worlds around one store: its ids differ from those of the others.
    pub fn beside(store: Arc<dyn Store>, number: u32) -> Self {
        let ids = AtomicU64::new(u64::from(number) << 32);
        Self { store, clock: AtomicI64::new(1_800_000_000_000), ids }
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.load(Ordering::Relaxed))
    }

    /// Lets time pass, and tells what time it is then.
    pub fn pass(&self, millis: i64) -> Timestamp {
        self.clock.fetch_add(millis, Ordering::Relaxed);
        self.now()
    }

    /// A number that was not given before; later ids sort behind earlier ones.
    pub fn fresh(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Someone asks for a task: refine it, then `accept` it.
    pub fn ask(&self) -> Ask<'_> {
        Ask::new(self)
    }

    /// A worker that has just registered.
    pub async fn worker(&self, name: &str) -> Hand<'_> {
        self.worker_offering(name, Offer::default()).await
    }

    pub async fn worker_offering(&self, name: &str, offer: Offer) -> Hand<'_> {
        Hand::register(self, name, offer).await
    }

    /// A run that a worker has just claimed.
    pub async fn running(&self) -> RunView {
        let task = self.ask().accept().await;
        self.claimed_by_anyone(task.run).await
    }

    /// Has a worker of its own claim the run, which must be the only one that is ready.
    pub async fn claimed_by_anyone(&self, run: RunId) -> RunView {
        let worker = self.worker(&format!("worker-{}", self.fresh())).await;
        let claimed = worker.claim(1).await;
        assert_eq!(claimed.len(), 1, "{run} was to be claimed");
        assert_eq!(claimed[0].run.id, run);
        self.view(run).await
    }

    // Committing.

    pub async fn commit(&self, bundle: Bundle) -> Result<Committed, Refusal> {
        let mut results = self.commit_all(vec![bundle]).await;
        assert_eq!(results.len(), 1, "one bundle gets one answer");
        results.remove(0)
    }

    pub async fn commit_all(&self, bundles: Vec<Bundle>) -> Vec<Result<Committed, Refusal>> {
        let sent = bundles.len();
        let results = self.store.commit(bundles).await.expect("the store answers");
        assert_eq!(results.len(), sent, "each bundle gets its own answer");
        results
    }

    /// Commits a bundle that must count.
    pub async fn must(&self, bundle: Bundle) -> Committed {
        let committed = self.commit(bundle).await.expect("the bundle counts");
        assert!(!committed.duplicate, "it was not there before");
        committed
    }

    /// Commits a bundle that must not count.
    pub async fn refused(&self, bundle: Bundle) -> Refusal {
        self.commit(bundle).await.expect_err("the bundle is refused")
    }

    // Reading.

    pub async fn view(&self, run: RunId) -> RunView {
        *self.store.run_view(run).await.expect("the store answers").expect("the run is there")
    }

    pub async fn run(&self, run: RunId) -> Run {
        *self.store.run(run).await.expect("the store answers").expect("the run is there")
    }

    pub async fn task(&self, task: TaskId) -> TaskRow {
        self.store.task(TaskRef::Id(task)).await.expect("the store answers").expect("the task is there")
    }

    pub async fn session(&self, session: SessionId) -> Session {
        *self.store.session(session).await.expect("the store answers").expect("the session is there")
    }

    pub async fn blocker(&self, blocker: BlockerId) -> Blocker {
        self.store.blocker(blocker).await.expect("the store answers").expect("the blocker is there")
    }

    /// The names of the events in a task's log.
    pub async fn story(&self, task: TaskId) -> Vec<&'static str> {
        self.events(task).await.iter().map(|event| event.body.name()).collect()
    }

    pub async fn events(&self, task: TaskId) -> Vec<Event> {
        self.store.events(task, 0, 1000).await.expect("the store answers")
    }

    /// What was said in a session, in order and without a gap.
    pub async fn said(&self, session: SessionId) -> Vec<String> {
        let entries = self.store.entries(session, 0, None).await.expect("the store answers");
        let places: Vec<u64> = entries.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(places, (0..entries.len() as u64).collect::<Vec<_>>(), "entries stand without a gap");
        entries.into_iter().map(|(_, entry)| progress::words(&entry)).collect()
    }

    // What happens to a run, decided on what was read of it.

    pub fn journal(&self, view: &RunView, progress: &Progress) -> Bundle {
        journal::journal(&view.run, next_write(view), progress, self.now())
    }

    pub fn leave(&self, view: &RunView, progress: &Progress, leave: Leave) -> Bundle {
        end::leave(view, next_write(view), progress, leave, self.now(), 0)
    }

    pub fn finish(&self, view: &RunView, output: &str) -> Bundle {
        let (progress, output) = (answers(view, output), output.to_owned());
        self.leave(view, &progress, Leave::Ok { output })
    }

    pub fn give_back(&self, view: &RunView) -> Bundle {
        self.leave(view, &Progress::default(), Leave::GiveBack)
    }

    pub fn sleep(&self, view: &RunView, until: Timestamp) -> Bundle {
        self.leave(view, &Progress::default(), Leave::Sleep { until, delay_ms: None, why: None })
    }

    pub fn wait_for(&self, view: &RunView, kind: BlockerKind) -> Bundle {
        let blocker = BlockerId::from_parts(self.now(), 0, self.fresh());
        let leave = Leave::Wait { blocker, kind, summary: "may I?".to_owned() };
        self.leave(view, &Progress::default(), leave)
    }

    pub fn cancel(&self, view: &RunView) -> Bundle {
        cancel::cancel(view, "not wanted any more", self.now()).expect("it has not ended")
    }

    pub fn wake(&self, view: &RunView) -> Bundle {
        wake::wake(view, self.now()).expect("it is due")
    }

    pub fn lose(&self, view: &RunView, cause: Cause) -> Bundle {
        let quarantine = BlockerId::from_parts(self.now(), 0, self.fresh());
        take_over::take_over(view, cause, quarantine, self.now()).expect("it is running")
    }

    pub fn input(&self, view: &RunView, text: &str) -> Bundle {
        let id = InputId::from_parts(self.now(), 0, self.fresh());
        input::accept_input(view, id, text, self.now()).expect("it has not ended")
    }
}

/// The key of the write that comes next, for whoever holds the run as it was read.
pub fn next_write(view: &RunView) -> WriteKey {
    WriteKey { run: view.run.id, epoch: view.run.epoch, number: view.run.journal + 1 }
}
