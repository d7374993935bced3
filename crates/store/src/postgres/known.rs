//! What a batch is judged on: the rows it names, locked and read, and then moved on in memory by each bundle that
//! counts, so that the next one in the batch is judged behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use ostler_kernel::{
    Bundle, Expect, RunId, RunTag, SessionId, TaskId, Write,
    bundle::{Clash, InputsAt, Rows, RunAt},
    resource::ResourceKey,
};

use tokio_postgres::Row;

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

const WORKERS: &str =
    "SELECT name, incarnation, counter FROM workers WHERE name = ANY($1) ORDER BY name FOR UPDATE";
const RUNS: &str = "SELECT id, state, epoch, journal, write_epoch, write_number FROM runs WHERE id = ANY($1) \
    ORDER BY id FOR UPDATE";
const SESSIONS: &str = "SELECT id, version FROM sessions WHERE id = ANY($1) ORDER BY id FOR UPDATE";
const TASKS: &str =
    "SELECT id, last_input, consumed_input FROM tasks WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
const RESOURCES: &str = "SELECT kind, namespace, name, version FROM resources WHERE (kind, namespace, name) IN \
    (SELECT * FROM unnest($1::text[], $2::text[], $3::text[])) ORDER BY kind, namespace, name FOR UPDATE";
const NAMES: &str = "SELECT namespace, name FROM tasks WHERE (namespace, name) IN \
    (SELECT * FROM unnest($1::text[], $2::text[]))";
const KEYS: &str = "SELECT namespace, key FROM tasks WHERE (namespace, key) IN \
    (SELECT * FROM unnest($1::text[], $2::text[]))";
const SESSION_KEYS: &str = "SELECT namespace, subject, key FROM sessions WHERE (namespace, subject, key) IN \
    (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))";
const ENTRIES: &str = "SELECT owner, (SELECT coalesce(max(seq) + 1, 0) FROM entries WHERE session = owner) \
    FROM unnest($1::uuid[]) AS owner";
const STEPS: &str = "SELECT owner, (SELECT coalesce(max(step) + 1, 0) FROM steps WHERE run = owner) \
    FROM unnest($1::uuid[]) AS owner";
const OPEN_STEPS: &str = "SELECT run, step FROM steps WHERE run = ANY($1) AND open";
const EVENTS: &str = "SELECT owner, (SELECT coalesce(max(seq), 0) FROM events WHERE task = owner) \
    FROM unnest($1::uuid[]) AS owner";

const ALL: [&str; 12] = [
    WORKERS,
    RUNS,
    SESSIONS,
    TASKS,
    RESOURCES,
    NAMES,
    KEYS,
    SESSION_KEYS,
    ENTRIES,
    STEPS,
    OPEN_STEPS,
    EVENTS,
];

/// Makes a connection ready to load: a statement that had to be prepared first would be late.
pub async fn prepare(connection: &Connection) -> Result<(), Failed> {
    for sql in ALL {
        connection.prepare(sql).await?;
    }
    Ok(())
}

impl Known {
    /// Locks and reads what the bundles name. Always table by table in this order, and inside a table in the order
    /// of keys: two batches that meet wait for each other in one direction only. Where what is appended ends is read
    /// behind the locks of those who append. All is sent at once, and carried out in order.
    pub async fn load<'a>(
        connection: &Connection,
        bundles: impl IntoIterator<Item = &'a Bundle>,
    ) -> Result<Self, Failed> {
        let mut named = Named::default();
        bundles.into_iter().for_each(|bundle| named.in_bundle(bundle));
        let mut known = Self::default();
        let (workers, runs, sessions, tasks, resources, taken, ends) = tokio::join!(
            biased;
            by_text(connection, WORKERS, &named.workers),
            by_id(connection, RUNS, &named.runs),
            by_id(connection, SESSIONS, &named.sessions),
            by_id(connection, TASKS, &named.tasks),
            by_resource(connection, &named.resources),
            Taken::load(connection, &named),
            Ends::load(connection, &named),
        );
        known.add_workers(workers?)?;
        known.add_runs(runs?)?;
        known.add_sessions(sessions?)?;
        known.add_tasks(tasks?)?;
        known.add_resources(resources?)?;
        known.add_taken(taken?)?;
        known.add_ends(ends?)?;
        Ok(known)
    }

    /// Only what it takes to number the events among the writes. Their tasks are locked already.
    pub async fn of_events(connection: &Connection, writes: &[Write]) -> Result<Self, Failed> {
        let mut named = Named::default();
        writes.iter().for_each(|write| named.in_write(write));
        let (mut known, only) = (Self::default(), Named { events: named.events, ..Named::default() });
        known.add_ends(Ends::load(connection, &only).await?)?;
        Ok(known)
    }

    fn add_workers(&mut self, rows: Vec<Row>) -> Result<(), Failed> {
        for row in rows {
            self.workers.insert(row.try_get(0)?, (number(&row, 1)?, number(&row, 2)?));
        }
        Ok(())
    }

    fn add_runs(&mut self, rows: Vec<Row>) -> Result<(), Failed> {
        for row in rows {
            let state: &str = row.try_get(1)?;
            let state =
                RunTag::from_name(state).ok_or_else(|| Failed::Body(format!("a run is {state:?}")))?;
            let last_write = optional_number(&row, 4)?.zip(optional_number(&row, 5)?);
            let run = RunAt { state, epoch: number(&row, 2)?, journal: number(&row, 3)?, last_write };
            self.runs.insert(id(&row, 0)?, run);
        }
        Ok(())
    }

    fn add_sessions(&mut self, rows: Vec<Row>) -> Result<(), Failed> {
        for row in rows {
            self.sessions.insert(id(&row, 0)?, number(&row, 1)?);
        }
        Ok(())
    }

    fn add_tasks(&mut self, rows: Vec<Row>) -> Result<(), Failed> {
        for row in rows {
            let inputs = InputsAt { last: number(&row, 1)?, taken: number(&row, 2)? };
            self.inputs.insert(id(&row, 0)?, inputs);
        }
        Ok(())
    }

    fn add_resources(&mut self, rows: Vec<Row>) -> Result<(), Failed> {
        for row in rows {
            let (kind, namespace, name) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            self.resources.insert(ResourceKey { kind, namespace, name }, number(&row, 3)?);
        }
        Ok(())
    }

    fn add_taken(&mut self, taken: Taken) -> Result<(), Failed> {
        for row in taken.names {
            self.names.insert((row.try_get(0)?, row.try_get(1)?));
        }
        for row in taken.keys {
            self.keys.insert((row.try_get(0)?, row.try_get(1)?));
        }
        for row in taken.session_keys {
            self.session_keys.insert((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        }
        Ok(())
    }

    fn add_ends(&mut self, ends: Ends) -> Result<(), Failed> {
        for row in ends.entries {
            self.entries.insert(id(&row, 0)?, number(&row, 1)?);
        }
        for row in ends.steps {
            self.steps.insert(id(&row, 0)?, number(&row, 1)?);
        }
        for row in ends.open_steps {
            let step = u32::try_from(number(&row, 1)?).unwrap_or(u32::MAX);
            self.open_steps.insert((id(&row, 0)?, step));
        }
        for row in ends.events {
            self.events.insert(id(&row, 0)?, number(&row, 1)?);
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

/// Names and keys that are taken. Nothing can be locked where nothing is: that they stay free is seen to by the unique
/// indexes.
struct Taken {
    names: Vec<Row>,
    keys: Vec<Row>,
    session_keys: Vec<Row>,
}

impl Taken {
    async fn load(connection: &Connection, named: &Named) -> Result<Self, Failed> {
        let (names, keys, session_keys) = tokio::join!(
            biased;
            by_pair(connection, NAMES, &named.names),
            by_pair(connection, KEYS, &named.keys),
            by_session_key(connection, &named.session_keys),
        );
        Ok(Self { names: names?, keys: keys?, session_keys: session_keys? })
    }
}

/// Where what is appended ends.
struct Ends {
    entries: Vec<Row>,
    steps: Vec<Row>,
    open_steps: Vec<Row>,
    events: Vec<Row>,
}

impl Ends {
    async fn load(connection: &Connection, named: &Named) -> Result<Self, Failed> {
        let (entries, steps, open_steps, events) = tokio::join!(
            biased;
            by_id(connection, ENTRIES, &named.entries),
            by_id(connection, STEPS, &named.steps),
            by_id(connection, OPEN_STEPS, &named.steps),
            by_id(connection, EVENTS, &named.events),
        );
        Ok(Self { entries: entries?, steps: steps?, open_steps: open_steps?, events: events? })
    }
}

// The rows of these keys; nothing is asked where there are none.

async fn by_id<'a, T>(connection: &Connection, sql: &str, ids: &'a BTreeSet<T>) -> Result<Vec<Row>, Failed>
where
    Id: From<&'a T>,
{
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Id> = ids.iter().map(Id::from).collect();
    connection.all(sql, &[&ids]).await
}

async fn by_text(connection: &Connection, sql: &str, texts: &BTreeSet<String>) -> Result<Vec<Row>, Failed> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let texts: Vec<&String> = texts.iter().collect();
    connection.all(sql, &[&texts]).await
}

async fn by_pair(
    connection: &Connection,
    sql: &str,
    pairs: &BTreeSet<(String, String)>,
) -> Result<Vec<Row>, Failed> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let (left, right): (Vec<&String>, Vec<&String>) = pairs.iter().map(|(left, right)| (left, right)).unzip();
    connection.all(sql, &[&left, &right]).await
}

async fn by_session_key(
    connection: &Connection,
    keys: &BTreeSet<(String, String, String)>,
) -> Result<Vec<Row>, Failed> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let column = |part: fn(&(String, String, String)) -> &String| keys.iter().map(part).collect::<Vec<_>>();
    let (namespaces, subjects, keys) = (column(|key| &key.0), column(|key| &key.1), column(|key| &key.2));
    connection.all(SESSION_KEYS, &[&namespaces, &subjects, &keys]).await
}

async fn by_resource(connection: &Connection, keys: &BTreeSet<ResourceKey>) -> Result<Vec<Row>, Failed> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let column = |part: fn(&ResourceKey) -> &String| keys.iter().map(part).collect::<Vec<_>>();
    let (kinds, namespaces, names) =
        (column(|key| &key.kind), column(|key| &key.namespace), column(|key| &key.name));
    connection.all(RESOURCES, &[&kinds, &namespaces, &names]).await
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
