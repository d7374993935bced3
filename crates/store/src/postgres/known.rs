//! What a batch is judged on: the rows it names, locked and read, and then moved on in memory by each bundle that
//! counts, so that the next one in the batch is judged behind it.

mod load;
mod named;

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
};

use ostler_kernel::{
    RunId, RunTag, SessionId, TaskId, Write,
    bundle::{Clash, InputsAt, Rows, RunAt},
    resource::ResourceKey,
    task::forget::Forgotten,
};

pub use self::load::{ALL, logs_of};

#[derive(Default)]
pub struct Known {
    runs: BTreeMap<RunId, RunAt>,
    sessions: BTreeMap<SessionId, u64>,
    inputs: BTreeMap<TaskId, InputsAt>,
    names: BTreeSet<(String, String)>,
    keys: BTreeSet<(String, String)>,
    session_keys: BTreeSet<(String, String, String)>,
    workers: BTreeMap<String, (u64, u64)>,
    resources: BTreeMap<ResourceKey, u64>,
    /// How many entries a session has, how many steps of a run were opened.
    entries: BTreeMap<SessionId, u64>,
    steps: BTreeMap<RunId, u64>,
    /// How many events a task has, and the position of the last one.
    events: BTreeMap<TaskId, (u64, u64)>,
    open_steps: BTreeSet<(RunId, u32)>,
}

impl Known {
    /// The first write that can't stand behind those before it, as far as the rows in here tell. Inserts that others
    /// may make meanwhile are left to the unique indexes.
    pub fn clash(&self, writes: &[Write]) -> Option<Clash> {
        let mut entries = self.entries.clone();
        let mut steps = self.steps.clone();
        let mut open = self.open_steps.clone();
        let mut stands = |write: &Write| match write {
            Write::Entry { session, seq, .. } => {
                let next = entries.entry(*session).or_default();
                let fits = *next == *seq;
                *next += 1;
                fits
            }
            Write::Step(step) if step.is_open() => {
                let next = steps.entry(step.id.run).or_default();
                let fits = *next == u64::from(step.id.index);
                *next += 1;
                open.insert((step.id.run, step.id.index));
                fits
            }
            Write::Step(step) => open.remove(&(step.id.run, step.id.index)),
            _ => true,
        };
        writes.iter().find(|write| !stands(write)).and_then(Clash::of)
    }

    /// The number that the task's next event gets.
    pub fn next_event(&mut self, task: TaskId) -> u64 {
        let (last, _) = self.events.entry(task).or_default();
        *last += 1;
        *last
    }

    /// The position of the task's last event, before this batch.
    pub fn last_position(&self, task: TaskId) -> u64 {
        self.events.get(&task).map_or(0, |(_, position)| *position)
    }

    /// Whether a run that may be ready was locked: who claimed meanwhile has passed it over.
    pub fn holds_queued(&self) -> bool {
        self.runs.values().any(|run| run.state == RunTag::Queued)
    }

    /// Adds where the logs of other tasks end.
    pub fn add_logs(&mut self, other: Self) {
        for (task, end) in other.events {
            self.events.entry(task).or_insert(end);
        }
    }

    /// Follows the writes of a bundle that counts.
    pub fn follow(&mut self, writes: &[Write]) {
        for write in writes {
            match write {
                Write::NewTask(task) => {
                    self.names.insert((task.namespace.clone(), task.name.clone()));
                    if let Some(key) = &task.request.idempotency_key {
                        self.keys.insert((task.namespace.clone(), key.clone()));
                    }
                    self.inputs.insert(task.id, InputsAt::default());
                }
                Write::NewRun(run) | Write::Run(run) => {
                    let state = run.tag();
                    self.runs.insert(
                        run.id,
                        RunAt { state, epoch: run.epoch, journal: run.journal, last_write: run.last_write },
                    );
                }
                Write::RunProgress(run) => {
                    if let Some(at) = self.runs.get_mut(&run.id) {
                        (at.journal, at.last_write) = (run.journal, run.last_write);
                    }
                }
                Write::Session(session) => {
                    self.sessions.insert(session.id, session.version);
                    if let Some(key) = &session.key {
                        let key = (session.namespace.clone(), session.subject.clone(), key.clone());
                        self.session_keys.insert(key);
                    }
                }
                Write::Step(step) if step.is_open() => {
                    *self.steps.entry(step.id.run).or_default() += 1;
                    self.open_steps.insert((step.id.run, step.id.index));
                }
                Write::Step(step) => drop(self.open_steps.remove(&(step.id.run, step.id.index))),
                Write::Entry { session, .. } => *self.entries.entry(*session).or_default() += 1,
                Write::Input(input) => self.inputs.entry(input.task).or_default().last = input.number,
                Write::Consume { task, upto, .. } => self.inputs.entry(*task).or_default().taken = *upto,
                Write::Forget(forgotten) => self.forget(forgotten),
                Write::ForgetSession { id, namespace, subject, key } => {
                    self.sessions.remove(id);
                    self.entries.remove(id);
                    if let Some(key) = key {
                        self.session_keys.remove(&(namespace.clone(), subject.clone(), key.clone()));
                    }
                }
                Write::ForgetWorker { worker } => drop(self.workers.remove(worker)),
                Write::Worker(worker) => {
                    self.workers.insert(worker.name.clone(), (worker.incarnation, worker.counter));
                }
                Write::Renewal { worker, counter } => {
                    if let Some((_, last)) = self.workers.get_mut(worker) {
                        *last = (*last).max(*counter);
                    }
                }
                Write::Resource(resource) => {
                    self.resources.insert(resource.key.clone(), resource.version);
                }
                Write::DeleteResource(key) => drop(self.resources.remove(key)),
                Write::Task(_)
                | Write::Event { .. }
                | Write::Standing { .. }
                | Write::Limit { .. }
                | Write::Blocker(_)
                | Write::Archive { .. }
                | Write::Blob { .. }
                | Write::ForgetBlob { .. } => {}
            }
        }
    }

    pub fn has_no(&self, resource: &ResourceKey) -> bool {
        self.resources.get(resource).is_none_or(|version| *version == 0)
    }

    fn forget(&mut self, Forgotten { task, runs, sessions, namespace, name, key }: &Forgotten) {
        for run in runs {
            self.runs.remove(run);
            self.steps.remove(run);
            self.open_steps.retain(|(owner, _)| owner != run);
        }
        self.inputs.remove(task);
        self.events.remove(task);
        self.names.remove(&(namespace.clone(), name.clone()));
        if let Some(key) = key {
            self.keys.remove(&(namespace.clone(), key.clone()));
        }
        for session in sessions {
            self.sessions.remove(session);
            self.entries.remove(session);
        }
    }
}

impl Rows for Known {
    type Error = Infallible;

    fn run(&mut self, id: RunId) -> Result<Option<RunAt>, Infallible> {
        Ok(self.runs.get(&id).copied())
    }

    fn session_version(&mut self, id: SessionId) -> Result<u64, Infallible> {
        Ok(self.sessions.get(&id).copied().unwrap_or(0))
    }

    fn inputs(&mut self, task: TaskId) -> Result<InputsAt, Infallible> {
        Ok(self.inputs.get(&task).copied().unwrap_or_default())
    }

    fn task_name_taken(&mut self, namespace: &str, name: &str) -> Result<bool, Infallible> {
        Ok(self.names.contains(&(namespace.to_owned(), name.to_owned())))
    }

    fn task_key_taken(&mut self, namespace: &str, key: &str) -> Result<bool, Infallible> {
        Ok(self.keys.contains(&(namespace.to_owned(), key.to_owned())))
    }

    fn session_key_taken(&mut self, namespace: &str, subject: &str, key: &str) -> Result<bool, Infallible> {
        Ok(self.session_keys.contains(&(namespace.to_owned(), subject.to_owned(), key.to_owned())))
    }

    fn incarnation(&mut self, worker: &str) -> Result<u64, Infallible> {
        Ok(self.workers.get(worker).map_or(0, |(incarnation, _)| *incarnation))
    }

    fn counter(&mut self, worker: &str) -> Result<u64, Infallible> {
        Ok(self.workers.get(worker).map_or(0, |(_, counter)| *counter))
    }

    fn resource_version(&mut self, key: &ResourceKey) -> Result<u64, Infallible> {
        Ok(self.resources.get(key).copied().unwrap_or(0))
    }
}
