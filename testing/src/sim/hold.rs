//! Commits held back until someone else has changed what they were decided on. A condition that nobody looks
//! at does no harm until two decisions meet; here they meet, whatever the command and whatever the condition.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ostler_kernel::{
    Bundle, Expect, RunId, Runtime, SessionId, TaskId, Write, resource::ResourceKey, runtime::timeout,
};
use tokio::sync::watch;

pub struct Holds {
    state: Mutex<State>,
    /// Moves whenever something was changed, or begins to be held.
    moved: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// How often each row was written.
    writes: BTreeMap<Row, u64>,
    held: BTreeMap<u64, Concern>,
    next: u64,
}

/// What a condition looks at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    Run(RunId),
    Session(SessionId),
    Inputs(TaskId),
    TaskName(String),
    TaskKey(String),
    SessionKey(String),
    Worker(String),
    Counter(String),
    Resource(ResourceKey),
}

/// Whom a commit is about, as clients know them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    Task(TaskId),
    /// By its key.
    Session(String),
}

type Concern = BTreeSet<Party>;

impl Holds {
    pub fn new() -> Self {
        Self { state: Mutex::default(), moved: watch::channel(0).0 }
    }

    /// These rows were written.
    pub fn wrote<'a>(&self, writes: impl IntoIterator<Item = &'a Write>) {
        let rows: Vec<Row> = writes.into_iter().flat_map(rows_of).collect();
        self.touched(rows);
    }

    pub fn touched(&self, rows: impl IntoIterator<Item = Row>) {
        {
            let mut state = self.state();
            for row in rows {
                *state.writes.entry(row).or_default() += 1;
            }
        }
        self.moved.send_modify(|moved| *moved += 1);
    }

    /// Waits until the row is written by someone else, but not for longer than the limit.
    pub async fn until_written(&self, runtime: &dyn Runtime, bundle: &Bundle, row: &Row, limit: Duration) {
        let before = self.n_writes(row);
        let _held = self.hold(bundle);
        let mut moved = self.moved.subscribe();
        let written = moved.wait_for(|_| self.n_writes(row) != before);
        drop(timeout(runtime, limit, written).await);
    }

    /// Waits until a commit about the party is held back, but not for longer than the limit.
    pub async fn until_held(&self, runtime: &dyn Runtime, party: &Party, limit: Duration) {
        let mut moved = self.moved.subscribe();
        let held = moved.wait_for(|_| self.state().held.values().any(|concern| concern.contains(party)));
        drop(timeout(runtime, limit, held).await);
    }

    fn n_writes(&self, row: &Row) -> u64 {
        self.state().writes.get(row).copied().unwrap_or(0)
    }

    fn hold(&self, bundle: &Bundle) -> Held<'_> {
        let id = {
            let mut state = self.state();
            state.next += 1;
            let id = state.next;
            state.held.insert(id, bundle.writes.iter().filter_map(party_of).collect());
            id
        };
        self.moved.send_modify(|moved| *moved += 1);
        Held { holds: self, id }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A commit that is held back, until it goes on or its process dies.
struct Held<'a> {
    holds: &'a Holds,
    id: u64,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.holds.state().held.remove(&self.id);
    }
}

impl Row {
    pub fn of(expect: &Expect) -> Row {
        match expect {
            Expect::Run { id, .. } | Expect::Ended { run: id } => Row::Run(*id),
            Expect::Session { id, .. } => Row::Session(*id),
            Expect::Inputs { task, .. } => Row::Inputs(*task),
            Expect::TaskName { name, .. } => Row::TaskName(name.clone()),
            Expect::TaskKey { key, .. } => Row::TaskKey(key.clone()),
            Expect::SessionKey { key, .. } => Row::SessionKey(key.clone()),
            Expect::Worker { name, .. } => Row::Worker(name.clone()),
            Expect::Counter { worker, .. } => Row::Counter(worker.clone()),
            Expect::Resource { key, .. } => Row::Resource(key.clone()),
        }
    }
}

fn rows_of(write: &Write) -> Vec<Row> {
    match write {
        Write::NewTask(task) => {
            let key = task.request.idempotency_key.clone().map(Row::TaskKey);
            key.into_iter().chain([Row::TaskName(task.name.clone())]).collect()
        }
        Write::NewRun(run) | Write::Run(run) | Write::RunProgress(run) => vec![Row::Run(run.id)],
        Write::Session(session) => {
            let key = session.key.clone().filter(|_| session.version == 1).map(Row::SessionKey);
            key.into_iter().chain([Row::Session(session.id)]).collect()
        }
        Write::ForgetSession { id, .. } => vec![Row::Session(*id)],
        Write::ForgetWorker { worker } => vec![Row::Worker(worker.clone()), Row::Counter(worker.clone())],
        Write::Forget(forgotten) => forgotten.runs.iter().map(|run| Row::Run(*run)).collect(),
        Write::Input(input) => vec![Row::Inputs(input.task)],
        Write::Worker(worker) => vec![Row::Worker(worker.name.clone()), Row::Counter(worker.name.clone())],
        Write::Renewal { worker, .. } => vec![Row::Counter(worker.clone())],
        Write::Standing { .. } | Write::Limit { .. } => Vec::new(),
        Write::Resource(resource) => vec![Row::Resource(resource.key.clone())],
        Write::DeleteResource(key) => vec![Row::Resource(key.clone())],
        Write::Task(_)
        | Write::Step(_)
        | Write::Entry { .. }
        | Write::Event { .. }
        | Write::Consume { .. }
        | Write::Blocker(_)
        | Write::Archive { .. }
        | Write::Blob { .. }
        | Write::ForgetBlob { .. } => Vec::new(),
    }
}

fn party_of(write: &Write) -> Option<Party> {
    match write {
        Write::Event { task, .. } => Some(Party::Task(*task)),
        Write::Session(session) => session.key.clone().map(Party::Session),
        _ => None,
    }
}
