//! The rows, what a judge looks up in them, and how a write changes them.

use std::{collections::BTreeMap, convert::Infallible};

use ostler_kernel::{
    BlobId, BlockerId, Entry, Event, EventBody, Run, RunId, Session, SessionId, Step, StepId, Task, TaskId,
    Timestamp, Worker, Write,
    bundle::{InputsAt, Rows, RunAt},
    resource::{ResourceKey, StoredResource},
    run::blocker::Blocker,
    task::{forget::Forgotten, input::Input},
};
use ostler_store::{Hint, TaskRow};

use super::read::due_at;

#[derive(Default)]
pub(super) struct Tables {
    pub tasks: BTreeMap<TaskId, TaskRow>,
    pub runs: BTreeMap<RunId, Run>,
    pub sessions: BTreeMap<SessionId, Session>,
    pub steps: BTreeMap<StepId, Step>,
    pub entries: BTreeMap<(SessionId, u64), Entry>,
    /// In the order of commits.
    pub events: Vec<Event>,
    /// Of the last event that there ever was.
    position: u64,
    pub inputs: BTreeMap<(TaskId, u64), Input>,
    pub blockers: BTreeMap<BlockerId, Blocker>,
    pub workers: BTreeMap<String, Worker>,
    pub resources: BTreeMap<ResourceKey, StoredResource>,
    /// With the time at which each was last put.
    pub blobs: BTreeMap<BlobId, (Vec<u8>, Timestamp)>,
    /// The limit of each class, by its namespace and name.
    pub classes: BTreeMap<(String, String), Option<u32>>,
    /// How often each namespace was served lately.
    pub served: BTreeMap<String, u64>,
    /// The last claim of each worker, as incarnation and number, whether it got something or not.
    pub asked: BTreeMap<String, (u64, u64)>,
    /// How often a run became ready, and how often one got a time at which it wakes or expires.
    times_ready: u64,
    times_due: u64,
    /// How often a resource changed.
    times_changed: u64,
}

impl Tables {
    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn hint(&self) -> Hint {
        let (ready, due, resources) = (self.times_ready, self.times_due, self.times_changed);
        Hint { position: self.position(), ready, due, resources, put_back: 0 }
    }

    pub fn apply(&mut self, write: Write) {
        match write {
            Write::NewTask(task) => self.insert_task(task),
            Write::Task(task) => self.replace_task(task),
            Write::NewRun(run) => self.insert_run(run),
            Write::Run(run) => self.replace_run(run),
            Write::RunProgress(run) => self.progress_run(run),
            Write::Session(session) => {
                self.sessions.insert(session.id, session);
            }
            Write::Step(step) => {
                self.steps.insert(step.id, step);
            }
            Write::Entry { session, seq, entry } => {
                self.entries.insert((session, seq), entry);
            }
            Write::Event { task, at, body } => self.append_event(task, at, body),
            Write::Input(input) => self.insert_input(input),
            Write::Consume { task, upto, run } => self.consume(task, upto, run),
            Write::Blocker(blocker) => {
                self.blockers.insert(blocker.id, blocker);
            }
            Write::Archive { task, at } => self.on_task(task, |row| row.archived_at = Some(at)),
            Write::Forget(forgotten) => self.forget(&forgotten),
            Write::ForgetSession { id, .. } => {
                self.sessions.remove(&id);
                self.entries.retain(|(owner, _), _| *owner != id);
            }
            Write::ForgetWorker { worker } => {
                self.workers.remove(&worker);
            }
            Write::Worker(worker) => {
                let standing =
                    self.workers.get(&worker.name).map_or(worker.standing, |former| former.standing);
                self.workers.insert(worker.name.clone(), Worker { standing, ..worker });
            }
            Write::Standing { worker, standing } => {
                self.times_ready += 1;
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.standing = standing;
                }
            }
            Write::Limit { namespace, class, limit } => {
                self.times_ready += 1;
                self.classes.insert((namespace, class), limit);
            }
            Write::Renewal { worker, counter } => {
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.counter = worker.counter.max(counter);
                }
            }
            Write::Resource(resource) => {
                self.times_changed += 1;
                self.resources.insert(resource.key.clone(), resource);
            }
            Write::DeleteResource(key) => {
                self.times_changed += 1;
                self.resources.remove(&key);
            }
            Write::Blob { id, bytes, at } => {
                let blob = self.blobs.entry(id).or_insert((bytes, at));
                blob.1 = blob.1.max(at);
            }
            Write::ForgetBlob { id, put_by } => {
                if self.blobs.get(&id).is_some_and(|(_, put_at)| *put_at <= put_by) {
                    self.blobs.remove(&id);
                }
            }
        }
    }

    fn insert_task(&mut self, task: Task) {
        let row = TaskRow { task, last_seq: 0, last_input: 0, consumed_input: 0, archived_at: None };
        self.tasks.insert(row.task.id, row);
    }

    fn replace_task(&mut self, task: Task) {
        self.on_task(task.id, |row| {
            let request = row.task.request.clone();
            row.task = Task { request, ..task };
        });
    }

    fn insert_run(&mut self, run: Run) {
        let class = (run.lane.namespace.clone(), run.lane.class.clone());
        self.classes.insert(class, run.lane.limit);
        self.raise_hint(&run);
        self.runs.insert(run.id, run);
    }

    fn replace_run(&mut self, run: Run) {
        self.raise_hint(&run);
        if let Some(row) = self.runs.get_mut(&run.id) {
            *row = run;
        }
    }

    fn raise_hint(&mut self, run: &Run) {
        let makes_room = run.lease().is_none() && run.lane.is_limited();
        self.times_ready += u64::from(run.rank().is_some() || makes_room);
        self.times_due += u64::from(due_at(run).is_some());
    }

    fn progress_run(&mut self, run: Run) {
        if let Some(row) = self.runs.get_mut(&run.id) {
            let (state, lane) = (row.state.clone(), row.lane.clone());
            *row = Run { state, lane, ..run };
        }
    }

    fn append_event(&mut self, task: TaskId, at: Timestamp, body: EventBody) {
        self.position += 1;
        let position = self.position;
        // A log may be of something else than a task.
        let seq = self.events.iter().filter(|event| event.task == task).count() as u64 + 1;
        self.on_task(task, |row| row.last_seq = seq);
        self.events.push(Event { seq, position, task, at, body });
    }

    fn insert_input(&mut self, input: Input) {
        self.on_task(input.task, |row| row.last_input = input.number);
        self.inputs.insert((input.task, input.number), input);
    }

    fn consume(&mut self, task: TaskId, upto: u64, run: RunId) {
        self.on_task(task, |row| row.consumed_input = upto);
        for (_, input) in self.inputs.range_mut((task, 0)..=(task, upto)) {
            input.consumed_by.get_or_insert(run);
        }
    }

    fn forget(&mut self, Forgotten { task, runs, sessions, .. }: &Forgotten) {
        self.tasks.remove(task);
        self.runs.retain(|run, _| !runs.contains(run));
        self.steps.retain(|step, _| !runs.contains(&step.run));
        self.events.retain(|event| event.task != *task);
        self.inputs.retain(|(owner, _), _| owner != task);
        self.blockers.retain(|_, blocker| blocker.task != *task);
        self.sessions.retain(|session, _| !sessions.contains(session));
        self.entries.retain(|(owner, _), _| !sessions.contains(owner));
    }

    fn on_task(&mut self, id: TaskId, change: impl FnOnce(&mut TaskRow)) {
        if let Some(row) = self.tasks.get_mut(&id) {
            change(row);
        }
    }
}

impl Rows for Tables {
    type Error = Infallible;

    fn run(&mut self, id: RunId) -> Result<Option<RunAt>, Infallible> {
        Ok(self.runs.get(&id).map(|run| RunAt {
            state: run.tag(),
            epoch: run.epoch,
            journal: run.journal,
            last_write: run.last_write,
        }))
    }

    fn session_version(&mut self, id: SessionId) -> Result<u64, Infallible> {
        Ok(self.sessions.get(&id).map_or(0, |session| session.version))
    }

    fn inputs(&mut self, task: TaskId) -> Result<InputsAt, Infallible> {
        let row = self.tasks.get(&task);
        Ok(row.map(|row| InputsAt { last: row.last_input, taken: row.consumed_input }).unwrap_or_default())
    }

    fn task_name_taken(&mut self, namespace: &str, name: &str) -> Result<bool, Infallible> {
        Ok(self.task_by_name(namespace, name).is_some())
    }

    fn task_key_taken(&mut self, namespace: &str, key: &str) -> Result<bool, Infallible> {
        Ok(self.task_by_key(namespace, key).is_some())
    }

    fn session_key_taken(&mut self, namespace: &str, subject: &str, key: &str) -> Result<bool, Infallible> {
        Ok(self.session_by_key(namespace, subject, key).is_some())
    }

    fn incarnation(&mut self, worker: &str) -> Result<u64, Infallible> {
        Ok(self.workers.get(worker).map_or(0, |worker| worker.incarnation))
    }

    fn counter(&mut self, worker: &str) -> Result<u64, Infallible> {
        Ok(self.workers.get(worker).map_or(0, |worker| worker.counter))
    }

    fn resource_version(&mut self, key: &ResourceKey) -> Result<u64, Infallible> {
        Ok(self.resources.get(key).map_or(0, |resource| resource.version))
    }
}
