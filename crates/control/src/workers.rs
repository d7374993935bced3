//! Workers as people see them: who there is, who is silent, and what was decided about them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ostler_kernel::{
    Selector, Task, Timestamp, Worker,
    resource::ResourceKey,
    runtime::timeout,
    worker::{Standing, forget, stand},
};
use ostler_link::{Caller, LinkError};
use ostler_spec::{DEFAULT_NAMESPACE, Kind};
use ostler_store::{Hint, StoreError, StoreExt, TaskRef};
use tokio::sync::watch;

use crate::{Control, ControlError, commands::TRIES};

/// A worker, with what this server has seen of it.
#[derive(Debug, Clone)]
pub struct WorkerView {
    pub worker: Worker,
    pub phase: Phase,
    /// When a sign of life of it was last seen here, by this server's calendar.
    pub last_seen: Option<Timestamp>,
    /// Runs it holds.
    pub runs: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// This server has not watched it for long enough to know.
    Pending,
    Ready,
    /// Silent for the length of a lease.
    NotReady,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Pending => "Pending",
            Phase::Ready => "Ready",
            Phase::NotReady => "NotReady",
        }
    }
}

/// Of so many tasks that a worker works on the names are told.
const MOST_TASKS: usize = 100;

/// What was last seen of each worker. By this server's own clock, so that nobody's calendar decides.
#[derive(Default)]
pub struct Workers(Mutex<BTreeMap<String, Seen>>);

#[derive(Debug, Clone, Copy)]
struct Seen {
    incarnation: u64,
    counter: u64,
    at: Duration,
    on: Timestamp,
    /// Its counter was seen to move: it is not only a row of former times.
    moved: bool,
    /// What it said with this sign of life, if that came here: the lease that it keeps to.
    lease: Option<Duration>,
}

impl Workers {
    /// Whether the worker's counter has stood still for so long.
    pub fn is_silent(&self, worker: &Worker, now: Duration, length: Duration) -> bool {
        self.lock().get(&worker.name).is_some_and(|last| last.is_of(worker) && last.is_over(now, length))
    }

    /// How long it may be silent: a server whose leases are shorter than those of others, or than its own before it was started
    /// again, waits for as long as the worker may believe that its runs are still its own.
    pub fn lease_of(&self, worker: &Worker, own: Duration) -> Duration {
        let told = worker.offer.told_lease_ms.map(Duration::from_millis);
        let said =
            self.lock().get(&worker.name).filter(|last| last.is_of(worker)).and_then(|last| last.lease);
        // It never keeps to a longer one than it was told when it registered.
        said.into_iter().chain(told).min().map_or(own, |believed| own.max(believed))
    }

    pub fn look(&self, worker: &Worker, at: Duration, on: Timestamp) {
        let mut seen = self.lock();
        let last = seen.get(&worker.name).copied();
        if last.is_none_or(|last| !last.is_of(worker)) {
            let Worker { incarnation, counter, .. } = *worker;
            let moved = last.is_some();
            seen.insert(worker.name.clone(), Seen { incarnation, counter, at, on, moved, lease: None });
        }
    }

    /// A sign of life that came to this server itself, from a worker that keeps to this lease, or else to the one that it was
    /// told when it registered.
    pub fn heard(&self, caller: &Caller, counter: u64, lease: Option<Duration>, at: Duration, on: Timestamp) {
        let Caller { ref worker, incarnation } = *caller;
        let seen = Seen { incarnation, counter, at, on, moved: true, lease };
        let mut all = self.lock();
        let is_newer = |last: &Seen| (last.incarnation, last.counter) < (incarnation, counter);
        if all.get(worker).is_none_or(is_newer) {
            all.insert(worker.clone(), seen);
        }
    }

    /// When a sign of life of it came, by this server's calendar.
    pub fn last_seen(&self, worker: &str) -> Option<Timestamp> {
        self.lock().get(worker).filter(|last| last.moved).map(|last| last.on)
    }

    fn phase(&self, worker: &Worker, now: Duration, own: Duration) -> (Phase, Option<Timestamp>) {
        let lease = self.lease_of(worker, own);
        let Some(last) = self.lock().get(&worker.name).copied() else { return (Phase::Pending, None) };
        let phase = match () {
            () if last.is_of(worker) && last.is_over(now, lease) => Phase::NotReady,
            () if last.moved || !last.is_of(worker) => Phase::Ready,
            () => Phase::Pending,
        };
        (phase, last.moved.then_some(last.on))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the highest incarnation of those who were forgotten is written down.
pub(crate) fn worker_key(name: &str) -> ResourceKey {
    let (kind, namespace) = (Kind::Worker.name().to_owned(), DEFAULT_NAMESPACE.to_owned());
    ResourceKey { kind, namespace, name: name.to_owned() }
}

impl Seen {
    fn is_of(&self, worker: &Worker) -> bool {
        (self.incarnation, self.counter) == (worker.incarnation, worker.counter)
    }

    fn is_over(&self, now: Duration, lease: Duration) -> bool {
        now.saturating_sub(self.at) >= lease
    }
}

impl Control {
    pub async fn workers(&self) -> Result<Vec<WorkerView>, ControlError> {
        let workers = self.store.workers().await?;
        let mut runs: BTreeMap<String, usize> = BTreeMap::new();
        for run in self.store.leased(None).await? {
            if let Some(lease) = run.lease() {
                *runs.entry(lease.worker.clone()).or_default() += 1;
            }
        }
        let now = self.runtime.monotonic();
        let view = |worker: Worker| {
            let (phase, last_seen) = self.workers.phase(&worker, now, self.config.lease);
            let runs = runs.get(&worker.name).copied().unwrap_or(0);
            WorkerView { worker, phase, last_seen, runs }
        };
        Ok(workers.into_iter().map(view).collect())
    }

    pub async fn worker(&self, name: &str) -> Result<WorkerView, ControlError> {
        let workers = self.workers().await?;
        let found = workers.into_iter().find(|view| view.worker.name == name);
        found.ok_or_else(|| ControlError::NotFound { kind: "worker", name: name.to_owned() })
    }

    /// What a worker works on, oldest first, and no more than a person would read.
    pub async fn tasks_of_worker(&self, name: &str) -> Result<Vec<Task>, ControlError> {
        let mut runs = self.store.leased(Some(name.to_owned())).await?;
        runs.sort_by_key(|run| run.task);
        let mut tasks = Vec::new();
        for run in runs.iter().take(MOST_TASKS) {
            // One that has ended meanwhile may be forgotten already.
            tasks.extend(self.store.task(TaskRef::Id(run.task)).await?.map(|row| row.task));
        }
        Ok(tasks)
    }

    /// Decides about a worker: whether it gets new runs, and whether it keeps those it has.
    pub async fn stand(&self, name: &str, standing: Standing) -> Result<WorkerView, ControlError> {
        for _ in 0..TRIES {
            let view = self.worker(name).await?;
            if view.worker.standing == standing || self.commit(stand(&view.worker, standing)).await?.is_ok() {
                return self.worker(name).await;
            }
        }
        Err(ControlError::Contended)
    }

    /// Forgets workers that have given no sign of life for so long, by this server's own clock. What people decided about one
    /// is not forgotten.
    pub(crate) async fn forget_gone_workers(&self, after: Duration) -> Result<(), StoreError> {
        let now = self.runtime.monotonic();
        for worker in self.store.workers().await? {
            let lease = self.workers.lease_of(&worker, self.config.lease);
            let is_gone = self.workers.is_silent(&worker, now, after.max(lease));
            if !is_gone || worker.standing != Standing::Open {
                continue;
            }
            if !self.store.leased(Some(worker.name.clone())).await?.is_empty() {
                continue;
            }
            let floor = self.floor(&worker_key(&worker.name)).await?;
            let bundle = floor.raise(forget(&worker), worker.incarnation, self.runtime.now());
            if self.commit(bundle).await?.is_ok() {
                self.workers.lock().remove(&worker.name);
                tracing::info!(worker = worker.name, "a worker that is gone was forgotten");
            }
        }
        Ok(())
    }

    /// Whether the worker is to give back what it holds.
    pub(crate) async fn is_draining(&self, name: &str) -> Result<bool, LinkError> {
        let workers = self.store.workers().await.map_err(crate::dispatch::unavailable)?;
        Ok(workers.iter().any(|worker| worker.name == name && worker.standing == Standing::Draining))
    }
}

/// Workers as they come and change.
pub struct WorkerWatch {
    control: Arc<Control>,
    name: Option<String>,
    labels: Selector,
    hints: watch::Receiver<Hint>,
    /// What was told of each: its row, its phase, and how many runs it holds.
    told: BTreeMap<String, (Worker, Phase, usize)>,
    ready: VecDeque<(bool, WorkerView)>,
    looked: bool,
    /// Of those that were there at first, how many were not given yet.
    first: usize,
    phases: BTreeMap<String, Phase>,
}

impl Control {
    pub fn watch_workers(self: &Arc<Self>, name: Option<String>, labels: Selector) -> WorkerWatch {
        WorkerWatch {
            control: Arc::clone(self),
            name,
            labels,
            hints: self.store.watch(),
            told: BTreeMap::new(),
            ready: VecDeque::new(),
            looked: false,
            first: 0,
            phases: BTreeMap::new(),
        }
    }
}

impl WorkerWatch {
    /// The next one that is new (then true) or has changed. Never ends by itself.
    pub async fn next(&mut self) -> Result<(bool, WorkerView), ControlError> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Ok(next);
            }
            if self.looked {
                // That somebody fell silent is nothing that anybody writes down: it is a matter of time.
                let pause = (self.control.config.lease / 4).max(Duration::from_secs(1));
                let standings = self.hints.borrow_and_update().ready;
                let changed = self.hints.wait_for(|hint| hint.ready != standings);
                if let Ok(Err(_)) = timeout(&*self.control.runtime, pause, changed).await {
                    return Err(StoreError::Unavailable("the server is stopping".into()).into());
                }
            }
            let views = self.control.workers().await?;
            self.told.retain(|name, _| views.iter().any(|view| view.worker.name == *name));
            let is_first = !std::mem::replace(&mut self.looked, true);
            views.into_iter().for_each(|view| self.compare(view));
            if is_first {
                self.first = self.ready.len();
            }
        }
    }

    /// The next one that became ready, or is not any more, since the watch began.
    pub async fn next_turn(&mut self) -> Result<WorkerView, ControlError> {
        loop {
            let (_, view) = self.next().await?;
            let was_there = self.first > 0;
            self.first = self.first.saturating_sub(1);
            let before = self.phases.insert(view.worker.name.clone(), view.phase);
            let is_turn = before != Some(view.phase) && view.phase != Phase::Pending;
            if is_turn && !was_there {
                return Ok(view);
            }
        }
    }

    fn compare(&mut self, view: WorkerView) {
        let name = &view.worker.name;
        let is_meant = self.name.as_ref().is_none_or(|wanted| wanted == name)
            && self.labels.matches(&view.worker.offer.labels);
        if !is_meant {
            return;
        }
        // Each sign of life moves these, and changes nothing that is seen.
        let row = Worker { counter: 0, claims: 0, ..view.worker.clone() };
        let now = (row, view.phase, view.runs);
        let before = self.told.insert(name.clone(), now.clone());
        if before.as_ref() != Some(&now) {
            self.ready.push_back((before.is_none(), view));
        }
    }
}
