//! What a batch is judged on: the rows it names, locked and read, and then moved on in memory by each bundle that
//! counts, so that the next one in the batch is judged behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use ostler_kernel::{
    Bundle, Expect, RunId, RunTag, SessionId, TaskId, Write,
    bundle::{Clash, InputsAt, Rows, RunAt},
    resource::ResourceKey,
};

use super::{
    Failed,
    connection::Connection,
    row::{Id, id, number, optional_number},
};

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
    /// How many entries a session has, how many steps of a run were opened, how many events a task has.
    entries: BTreeMap<SessionId, u64>,
    steps: BTreeMap<RunId, u64>,
    events: BTreeMap<TaskId, u64>,
    open_steps: BTreeSet<(RunId, u32)>,
}

/// The rows that a batch looks at or writes.
#[derive(Default)]
struct Named {
    runs: BTreeSet<RunId>,
    sessions: BTreeSet<SessionId>,
    tasks: BTreeSet<TaskId>,
    names: BTreeSet<(String, String)>,
    keys: BTreeSet<(String, String)>,
    session_keys: BTreeSet<(String, String, String)>,
    workers: BTreeSet<String>,
    resources: BTreeSet<ResourceKey>,
    entries: BTreeSet<SessionId>,
    steps: BTreeSet<RunId>,
    events: BTreeSet<TaskId>,
}

impl Named {
    fn in_bundle(&mut self, bundle: &Bundle) {
        self.runs.extend(bundle.key.map(|key| key.run));
        bundle.expect.iter().for_each(|expect| self.in_expect(expect));
        bundle.writes.iter().for_each(|write| self.in_write(write));
    }

    fn in_expect(&mut self, expect: &Expect) {
        match expect {
            Expect::Run { id, .. } => self.runs.extend([*id]),
            Expect::Session { id, .. } => self.sessions.extend([*id]),
            Expect::Inputs { task, .. } => self.tasks.extend([*task]),
            Expect::TaskName { namespace, name } => self.names.extend([(namespace.clone(), name.clone())]),
            Expect::TaskKey { namespace, key } => self.keys.extend([(namespace.clone(), key.clone())]),
            Expect::SessionKey { namespace, subject, key } => {
                self.session_keys.insert((namespace.clone(), subject.clone(), key.clone()));
            }
            Expect::Worker { name, .. } => self.workers.extend([name.clone()]),
            Expect::Counter { worker, .. } => self.workers.extend([worker.clone()]),
            Expect::Resource { key, .. } => self.resources.extend([key.clone()]),
        }
    }

    fn in_write(&mut self, write: &Write) {
        match write {
            Write::Task(task) => self.tasks.extend([task.id]),
            Write::Run(run) | Write::RunProgress(run) => self.runs.extend([run.id]),
            Write::Session(session) => self.sessions.extend([session.id]),
            Write::Step(step) => self.steps.extend([step.id.run]),
            Write::Entry { session, .. } => self.entries.extend([*session]),
            Write::Event { task, .. } => {
                self.tasks.insert(*task);
                self.events.insert(*task);
            }
            Write::Input(input) => self.tasks.extend([input.task]),
            Write::Consume { task, .. } | Write::Archive { task, .. } => self.tasks.extend([*task]),
            Write::Worker(worker) => self.workers.extend([worker.name.clone()]),
            Write::Renewal { worker, .. } => self.workers.extend([worker.clone()]),
            Write::Resource(resource) => self.resources.extend([resource.key.clone()]),
            Write::DeleteResource(key) => self.resources.extend([key.clone()]),
            Write::NewTask(_) | Write::NewRun(_) | Write::Blocker(_) | Write::Blob { .. } => {}
        }
    }
}

impl Known {
    /// Locks and reads what the bundles name. Always table by table in this order, and inside a table in the order
    /// of keys: two batches that meet wait for each other in one direction only.
    pub async fn load<'a>(
        connection: &Connection,
        bundles: impl IntoIterator<Item = &'a Bundle>,
    ) -> Result<Self, Failed> {
        let mut named = Named::default();
        bundles.into_iter().for_each(|bundle| named.in_bundle(bundle));
        let mut known = Self::default();
        known.load_workers(connection, &named.workers).await?;
        known.load_runs(connection, &named.runs).await?;
        known.load_sessions(connection, &named.sessions).await?;
        known.load_tasks(connection, &named.tasks).await?;
        known.load_resources(connection, &named.resources).await?;
        known.load_taken(connection, &named).await?;
        known.load_ends(connection, &named).await?;
        Ok(known)
    }

    /// Only what it takes to number the events among the writes. Their tasks are locked already.
    pub async fn of_events(connection: &Connection, writes: &[Write]) -> Result<Self, Failed> {
        let mut named = Named::default();
        writes.iter().for_each(|write| named.in_write(write));
        let (mut known, only) = (Self::default(), Named { events: named.events, ..Named::default() });
        known.load_ends(connection, &only).await?;
        Ok(known)
    }

    async fn load_workers(
        &mut self,
        connection: &Connection,
        names: &BTreeSet<String>,
    ) -> Result<(), Failed> {
        if names.is_empty() {
            return Ok(());
        }
        let names: Vec<&String> = names.iter().collect();
        let sql =
            "SELECT name, incarnation, counter FROM workers WHERE name = ANY($1) ORDER BY name FOR UPDATE";
        for row in connection.all(sql, &[&names]).await? {
            self.workers.insert(row.try_get(0)?, (number(&row, 1)?, number(&row, 2)?));
        }
        Ok(())
    }

    async fn load_runs(&mut self, connection: &Connection, runs: &BTreeSet<RunId>) -> Result<(), Failed> {
        if runs.is_empty() {
            return Ok(());
        }
        let ids: Vec<Id> = runs.iter().map(Id::from).collect();
        let sql = "SELECT id, state, epoch, journal, write_epoch, write_number FROM runs WHERE id = ANY($1) \
            ORDER BY id FOR UPDATE";
        for row in connection.all(sql, &[&ids]).await? {
            let state: &str = row.try_get(1)?;
            let state =
                RunTag::from_name(state).ok_or_else(|| Failed::Body(format!("a run is {state:?}")))?;
            let last_write = optional_number(&row, 4)?.zip(optional_number(&row, 5)?);
            let run = RunAt { state, epoch: number(&row, 2)?, journal: number(&row, 3)?, last_write };
            self.runs.insert(id(&row, 0)?, run);
        }
        Ok(())
    }

    async fn load_sessions(
        &mut self,
        connection: &Connection,
        sessions: &BTreeSet<SessionId>,
    ) -> Result<(), Failed> {
        if sessions.is_empty() {
            return Ok(());
        }
        let ids: Vec<Id> = sessions.iter().map(Id::from).collect();
        let sql = "SELECT id, version FROM sessions WHERE id = ANY($1) ORDER BY id FOR UPDATE";
        for row in connection.all(sql, &[&ids]).await? {
            self.sessions.insert(id(&row, 0)?, number(&row, 1)?);
        }
        Ok(())
    }

    async fn load_tasks(&mut self, connection: &Connection, tasks: &BTreeSet<TaskId>) -> Result<(), Failed> {
        if tasks.is_empty() {
            return Ok(());
        }
        let ids: Vec<Id> = tasks.iter().map(Id::from).collect();
        let sql = "SELECT id, last_input, consumed_input FROM tasks WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
        for row in connection.all(sql, &[&ids]).await? {
            let inputs = InputsAt { last: number(&row, 1)?, taken: number(&row, 2)? };
            self.inputs.insert(id(&row, 0)?, inputs);
        }
        Ok(())
    }

    async fn load_resources(
        &mut self,
        connection: &Connection,
        resources: &BTreeSet<ResourceKey>,
    ) -> Result<(), Failed> {
        for key in resources {
            let sql =
                "SELECT version FROM resources WHERE kind = $1 AND namespace = $2 AND name = $3 FOR UPDATE";
            let found = connection.one(sql, &[&key.kind, &key.namespace, &key.name]).await?;
            if let Some(row) = found {
                self.resources.insert(key.clone(), number(&row, 0)?);
            }
        }
        Ok(())
    }

    /// Names and keys that are taken. Nothing can be locked where nothing is: that they stay free is seen to by
    /// the unique indexes.
    async fn load_taken(&mut self, connection: &Connection, named: &Named) -> Result<(), Failed> {
        if !named.names.is_empty() {
            let (spaces, names): (Vec<_>, Vec<_>) = named.names.iter().map(|(a, b)| (a, b)).unzip();
            let sql = "SELECT namespace, name FROM tasks WHERE (namespace, name) IN \
                (SELECT * FROM unnest($1::text[], $2::text[]))";
            for row in connection.all(sql, &[&spaces, &names]).await? {
                self.names.insert((row.try_get(0)?, row.try_get(1)?));
            }
        }
        if !named.keys.is_empty() {
            let (spaces, keys): (Vec<_>, Vec<_>) = named.keys.iter().map(|(a, b)| (a, b)).unzip();
            let sql = "SELECT namespace, key FROM tasks WHERE (namespace, key) IN \
                (SELECT * FROM unnest($1::text[], $2::text[]))";
            for row in connection.all(sql, &[&spaces, &keys]).await? {
                self.keys.insert((row.try_get(0)?, row.try_get(1)?));
            }
        }
        for (namespace, subject, key) in &named.session_keys {
            let sql = "SELECT 1 FROM sessions WHERE namespace = $1 AND subject = $2 AND key = $3";
            if connection.one(sql, &[namespace, subject, key]).await?.is_some() {
                self.session_keys.insert((namespace.clone(), subject.clone(), key.clone()));
            }
        }
        Ok(())
    }

    /// Where what is appended ends. Read behind the locks of those who append.
    async fn load_ends(&mut self, connection: &Connection, named: &Named) -> Result<(), Failed> {
        if !named.entries.is_empty() {
            let ids: Vec<Id> = named.entries.iter().map(Id::from).collect();
            let sql = "SELECT owner, (SELECT coalesce(max(seq) + 1, 0) FROM entries WHERE session = owner) \
                FROM unnest($1::uuid[]) AS owner";
            for row in connection.all(sql, &[&ids]).await? {
                self.entries.insert(id(&row, 0)?, number(&row, 1)?);
            }
        }
        if !named.steps.is_empty() {
            let ids: Vec<Id> = named.steps.iter().map(Id::from).collect();
            let sql = "SELECT owner, (SELECT coalesce(max(step) + 1, 0) FROM steps WHERE run = owner) \
                FROM unnest($1::uuid[]) AS owner";
            for row in connection.all(sql, &[&ids]).await? {
                self.steps.insert(id(&row, 0)?, number(&row, 1)?);
            }
            let sql = "SELECT run, step FROM steps WHERE run = ANY($1) AND open";
            for row in connection.all(sql, &[&ids]).await? {
                let step = u32::try_from(number(&row, 1)?).unwrap_or(u32::MAX);
                self.open_steps.insert((id(&row, 0)?, step));
            }
        }
        if !named.events.is_empty() {
            let ids: Vec<Id> = named.events.iter().map(Id::from).collect();
            let sql = "SELECT owner, (SELECT coalesce(max(seq), 0) FROM events WHERE task = owner) \
                FROM unnest($1::uuid[]) AS owner";
            for row in connection.all(sql, &[&ids]).await? {
                self.events.insert(id(&row, 0)?, number(&row, 1)?);
            }
        }
        Ok(())
    }

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
        let last = self.events.entry(task).or_default();
        *last += 1;
        *last
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
                | Write::Blocker(_)
                | Write::Archive { .. }
                | Write::Blob { .. } => {}
            }
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
