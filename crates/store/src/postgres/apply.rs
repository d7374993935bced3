//! Writes the rows of bundles that count, inside the transaction of their batch.

mod append;
mod fold;

use std::collections::BTreeMap;

use ostler_kernel::{
    Run, Session, Task, Timestamp, Worker, Write,
    queue::Lane,
    resource::{ResourceKey, StoredResource},
    task::{forget::Forgotten, input::Input},
};

use self::{
    append::Appended,
    fold::{Put, each, fold},
};
use super::{
    Failed,
    connection::Connection,
    row::{Id, signed},
    statement::{Call, Script, Value},
};
use crate::{
    Hint,
    body::{due, makes_claimable},
};

/// A write, the text of its row, and the number and the place of it if it is an event.
pub struct Row<'a> {
    pub write: &'a Write,
    pub text: &'a str,
    pub seq: u64,
    pub position: u64,
    /// It is a resource that was not there.
    pub is_made: bool,
}

const INSERT_TASK: &str = "INSERT INTO tasks (id, namespace, name, key, state, request, body) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
const UPDATE_TASK: &str = "UPDATE tasks SET state = $2, body = $3 WHERE id = $1";
/// It is there already for all but the first run of an agent, and is not touched then: all who touch a lane wait for
/// each other until their commits are on disk. The limit is the class's: it holds for all of its lanes.
const PUT_LANE: &str = "WITH changed AS (SELECT WHERE NOT EXISTS (SELECT FROM lanes \
        WHERE namespace = $1 AND class = $2 AND slots IS NOT DISTINCT FROM $3)), \
    others AS (UPDATE lanes SET slots = $3 FROM changed WHERE namespace = $1 \
        AND coalesce(pool, class) = $4 AND class <> $2 AND slots IS DISTINCT FROM $3) \
    INSERT INTO lanes (namespace, class, slots, pool, requires) SELECT $1, $2, $3, $4, $5 FROM changed \
    ON CONFLICT (namespace, class) DO UPDATE SET slots = excluded.slots";
/// The lanes of a class are locked in the order in which claims lock them.
const LIMIT_CLASS: &str = "UPDATE lanes SET slots = $3 FROM (SELECT id FROM lanes \
        WHERE namespace = $1 AND coalesce(pool, class) = $2 AND slots IS DISTINCT FROM $3 ORDER BY id FOR UPDATE) AS changed \
    WHERE lanes.id = changed.id";
const INSERT_RUN: &str = "INSERT INTO runs (id, state, epoch, journal, write_epoch, write_number, rank, due, live, ended, \
        worker, incarnation, claim, body, task, session, place, lane) \
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, lanes.id \
    FROM lanes WHERE namespace = $18 AND class = $19 ON CONFLICT DO NOTHING";
const UPDATE_RUN: &str = "UPDATE runs SET state = $2, epoch = $3, journal = $4, write_epoch = $5, \
    write_number = $6, rank = $7, due = $8, live = $9, ended = $10, worker = $11, incarnation = $12, claim = $13, \
    body = $14 WHERE id = $1";
const PROGRESS_RUN: &str =
    "UPDATE runs SET journal = $2, write_epoch = $3, write_number = $4, body = $5 WHERE id = $1";
const INSERT_SESSION: &str = "INSERT INTO sessions (id, namespace, subject, key, version, body) \
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
const UPDATE_SESSION: &str = "UPDATE sessions SET version = $2, body = $3 WHERE id = $1";
const INSERT_INPUT: &str =
    "INSERT INTO inputs (task, number, consumed_by, body) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
const LAST_INPUT: &str = "UPDATE tasks SET last_input = $2 WHERE id = $1";
const CONSUME: &str =
    "UPDATE inputs SET consumed_by = $3 WHERE task = $1 AND number <= $2 AND consumed_by IS NULL";
const CONSUMED: &str = "UPDATE tasks SET consumed_input = $2 WHERE id = $1";
const PUT_BLOCKER: &str = "INSERT INTO blockers (id, task, body) VALUES ($1, $2, $3) \
    ON CONFLICT (id) DO UPDATE SET task = excluded.task, body = excluded.body";
const ARCHIVE: &str = "UPDATE tasks SET archived_at = $2 WHERE id = $1";
/// All of a task at once; the session only if it is named.
const FORGET: &str = "WITH s AS (DELETE FROM steps WHERE run = ANY ($2)), e AS (DELETE FROM events WHERE task = $1), \
    i AS (DELETE FROM inputs WHERE task = $1), b AS (DELETE FROM blockers WHERE task = $1), \
    n AS (DELETE FROM entries WHERE session = ANY ($3)), c AS (DELETE FROM sessions WHERE id = ANY ($3)), \
    r AS (DELETE FROM runs WHERE id = ANY ($2)) DELETE FROM tasks WHERE id = $1";
const PUT_WORKER: &str = "INSERT INTO workers \
    (name, incarnation, counter, claims, registered_at, instance, offer, standing) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, \
    counter = excluded.counter, claims = excluded.claims, registered_at = excluded.registered_at, \
    instance = excluded.instance, offer = excluded.offer";
const FORGET_SESSION: &str =
    "WITH n AS (DELETE FROM entries WHERE session = $1) DELETE FROM sessions WHERE id = $1";
const FORGET_WORKER: &str = "DELETE FROM workers WHERE name = $1";
const STAND: &str = "UPDATE workers SET standing = $2 WHERE name = $1";
const RENEW: &str = "UPDATE workers SET counter = greatest(counter, $2) WHERE name = $1";
const PUT_RESOURCE: &str = "INSERT INTO resources (kind, namespace, name, version, generation, created_at, body) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (kind, namespace, name) DO UPDATE SET \
    version = excluded.version, generation = excluded.generation, created_at = excluded.created_at, \
    body = excluded.body";
/// One that is new. Two servers may make the same at the same time, and neither finds a row to lock: the second is kept
/// out, and looks again.
const INSERT_RESOURCE: &str = "INSERT INTO resources (kind, namespace, name, version, generation, created_at, body) \
    VALUES ($1, $2, $3, $4, $5, $6, $7)";
const DELETE_RESOURCE: &str = "DELETE FROM resources WHERE kind = $1 AND namespace = $2 AND name = $3";
const PUT_BLOB: &str = "INSERT INTO blobs (id, bytes, put_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE \
    SET put_at = excluded.put_at WHERE blobs.put_at < excluded.put_at";
const FORGET_BLOB: &str = "DELETE FROM blobs WHERE id = $1 AND put_at <= $2";

const ALL: [&str; 26] = [
    FORGET_SESSION,
    FORGET_WORKER,
    INSERT_TASK,
    UPDATE_TASK,
    PUT_LANE,
    LIMIT_CLASS,
    INSERT_RUN,
    UPDATE_RUN,
    PROGRESS_RUN,
    INSERT_SESSION,
    UPDATE_SESSION,
    INSERT_INPUT,
    LAST_INPUT,
    CONSUME,
    CONSUMED,
    PUT_BLOCKER,
    ARCHIVE,
    FORGET,
    PUT_WORKER,
    STAND,
    RENEW,
    PUT_RESOURCE,
    INSERT_RESOURCE,
    DELETE_RESOURCE,
    PUT_BLOB,
    FORGET_BLOB,
];

pub fn statements() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().chain(append::ALL)
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// What is appended to a table goes there in one statement. If something is in the way, nobody knows what.
    Gathered,
    /// Each by itself, so that the first that is kept out can be named.
    EachAlone,
}

/// A row, or all that one statement appends to a table.
enum Part<'a> {
    One(Put<'a>),
    Appended(Appended, Vec<Put<'a>>),
}

/// What is appended comes last: steps are opened before they are closed, and nothing else looks at it. But what is
/// forgotten goes behind what was appended to it before.
fn parts<'a>(rows: &'a [Row<'a>], care: Care) -> Vec<Part<'a>> {
    let (mut parts, mut gathered) = (Vec::new(), BTreeMap::<Appended, Vec<Put<'a>>>::new());
    let appended = |(kind, puts)| Part::Appended(kind, puts);
    for put in if care == Care::Gathered { fold(rows) } else { each(rows) } {
        if matches!(put.row.write, Write::Forget(_) | Write::ForgetSession { .. }) {
            parts.extend(std::mem::take(&mut gathered).into_iter().map(appended));
        }
        match Appended::of(put.row.write) {
            Some(kind) if care == Care::Gathered => gathered.entry(kind).or_default().push(put),
            Some(kind) => parts.push(Part::Appended(kind, vec![put])),
            None => parts.push(Part::One(put)),
        }
    }
    parts.extend(gathered.into_iter().map(appended));
    parts
}

/// Writes the rows. Tells the place of the first that a unique index kept out, as far as that is known.
pub async fn apply(connection: &Connection, rows: &[Row<'_>]) -> Result<(), Failed> {
    for part in parts(rows, Care::EachAlone) {
        let place = part.place();
        let lane = part.lane().map(|lane| (put_lane(lane), false));
        for (call, must_stand) in lane.into_iter().chain(part.calls()?) {
            let touched = call.execute(connection).await.map_err(|error| error.at(place))?;
            if must_stand && touched == 0 {
                return Err(Failed::KeptOut(place));
            }
        }
    }
    Ok(())
}

/// Adds the statements that write the rows to a script. It fails if a unique index keeps one out.
pub fn add_to(script: &mut Script<'_>, rows: &[Row<'_>]) -> Result<(), Failed> {
    let mut last_lane = None;
    for part in parts(rows, Care::Gathered) {
        // Most tasks that come together are of one agent.
        if let Some(lane) = part.lane().filter(|lane| last_lane.replace(*lane) != Some(*lane)) {
            script.call(&put_lane(lane))?;
        }
        if part.is_limit() {
            last_lane = None;
        }
        for (call, _) in part.calls()? {
            script.call(&call)?;
        }
    }
    Ok(())
}

/// What has to be carried out, and whether it has to touch a row: if it does not, one is in its way, or none is where one
/// must be.
type Calls<'a> = Vec<(Call<'a>, bool)>;

impl<'a> Part<'a> {
    fn calls(&self) -> Result<Calls<'a>, Failed> {
        match self {
            Part::One(put) => calls(put),
            Part::Appended(kind, puts) => Ok(vec![(append::call(*kind, puts), true)]),
        }
    }

    /// Of the first row.
    fn place(&self) -> usize {
        match self {
            Part::One(put) => put.place,
            Part::Appended(_, puts) => puts.first().map_or(0, |put| put.place),
        }
    }

    /// Lanes are not as they were put behind it.
    fn is_limit(&self) -> bool {
        matches!(self, Part::One(Put { row: Row { write: Write::Limit { .. }, .. }, .. }))
    }

    /// Which has to be there before it.
    fn lane(&self) -> Option<&'a Lane> {
        match self {
            Part::One(Put { is_new: true, row, .. }) => match row.write {
                Write::NewRun(run) | Write::Run(run) | Write::RunProgress(run) => Some(&run.lane),
                _ => None,
            },
            _ => None,
        }
    }
}

fn calls<'a>(&Put { row, is_new, .. }: &Put<'a>) -> Result<Calls<'a>, Failed> {
    let text = row.text;
    Ok(match row.write {
        Write::NewTask(task) | Write::Task(task) if is_new => vec![(insert_task(task, text)?, true)],
        Write::NewTask(task) | Write::Task(task) => vec![(
            Call::new(UPDATE_TASK, [Id::from(&task.id).into(), task.state.name().into(), text.into()]),
            false,
        )],
        Write::NewRun(run) | Write::Run(run) | Write::RunProgress(run) if is_new => {
            vec![(insert_run(run, text), true)]
        }
        Write::NewRun(run) | Write::Run(run) => vec![(update_run(run, text), false)],
        Write::RunProgress(run) => vec![(progress_run(run, text), false)],
        Write::Session(session) if is_new => vec![(insert_session(session, text), true)],
        Write::Session(session) => vec![(update_session(session, text), false)],
        // These are appended.
        Write::Step(_) | Write::Entry { .. } | Write::Event { .. } => Vec::new(),
        Write::Input(input) => insert_input(input, text),
        Write::Consume { task, upto, run } => {
            let (task, upto, run) = (Id::from(task), signed(*upto), Id::from(run));
            vec![
                (Call::new(CONSUME, [task.into(), upto.into(), run.into()]), false),
                (Call::new(CONSUMED, [task.into(), upto.into()]), false),
            ]
        }
        Write::Blocker(blocker) => {
            let (id, task) = (Id::from(&blocker.id), Id::from(&blocker.task));
            vec![(Call::new(PUT_BLOCKER, [id.into(), task.into(), text.into()]), false)]
        }
        Write::Archive { task, at } => {
            vec![(Call::new(ARCHIVE, [Id::from(task).into(), at.as_millis().into()]), false)]
        }
        Write::Forget(Forgotten { task, runs, sessions, .. }) => {
            let runs: Vec<Id> = runs.iter().map(Id::from).collect();
            let sessions: Vec<Id> = sessions.iter().map(Id::from).collect();
            vec![(Call::new(FORGET, [Id::from(task).into(), runs.into(), sessions.into()]), false)]
        }
        Write::ForgetSession { id, .. } => vec![(Call::new(FORGET_SESSION, [Id::from(id).into()]), false)],
        Write::Worker(worker) => vec![(put_worker(worker)?, false)],
        Write::ForgetWorker { worker } => vec![(Call::new(FORGET_WORKER, [worker.into()]), false)],
        Write::Renewal { worker, counter } => {
            vec![(Call::new(RENEW, [worker.into(), signed(*counter).into()]), false)]
        }
        Write::Standing { worker, standing } => {
            vec![(Call::new(STAND, [worker.into(), standing.name().into()]), false)]
        }
        Write::Limit { namespace, class, limit } => {
            let values = [namespace.into(), class.into(), limit.map(i64::from).into()];
            vec![(Call::new(LIMIT_CLASS, values), false)]
        }
        Write::Resource(resource) => vec![(put_resource(resource, text, row.is_made), false)],
        Write::DeleteResource(ResourceKey { kind, namespace, name }) => {
            vec![(Call::new(DELETE_RESOURCE, [kind.into(), namespace.into(), name.into()]), false)]
        }
        Write::Blob { id, bytes, at } => {
            let values = [id.as_bytes().as_slice().into(), bytes.as_slice().into(), at.as_millis().into()];
            vec![(Call::new(PUT_BLOB, values), false)]
        }
        Write::ForgetBlob { id, put_by } => {
            let values = [id.as_bytes().as_slice().into(), put_by.as_millis().into()];
            vec![(Call::new(FORGET_BLOB, values), false)]
        }
    })
}

fn insert_task<'a>(task: &'a Task, body: &'a str) -> Result<Call<'a>, Failed> {
    let request = serde_json::to_string(&task.request).map_err(|error| Failed::Body(error.to_string()))?;
    let (id, key) = (Id::from(&task.id), task.request.idempotency_key.as_ref());
    let (namespace, name, state) = (&task.namespace, &task.name, task.state.name());
    let values =
        [id.into(), namespace.into(), name.into(), key.into(), state.into(), request.into(), body.into()];
    Ok(Call::new(INSERT_TASK, values))
}

fn put_lane(lane: &Lane) -> Call<'_> {
    let slots = lane.limit.map(i64::from);
    let values = [
        (&lane.namespace).into(),
        lane.key().into(),
        slots.into(),
        (&lane.class).into(),
        lane.requires.text().into(),
    ];
    Call::new(PUT_LANE, values)
}

fn insert_run<'a>(run: &'a Run, body: &'a str) -> Call<'a> {
    let (task, session) = (Id::from(&run.task), Id::from(&run.session));
    let of_a_new_one = [
        task.into(),
        session.into(),
        signed(run.order).into(),
        (&run.lane.namespace).into(),
        run.lane.key().into(),
    ];
    Call::new(INSERT_RUN, run_values(run, body).into_iter().chain(of_a_new_one))
}

fn update_run<'a>(run: &'a Run, body: &'a str) -> Call<'a> {
    Call::new(UPDATE_RUN, run_values(run, body))
}

/// Its id and all that can change.
fn run_values<'a>(run: &'a Run, body: &'a str) -> [Value<'a>; 14] {
    let (write_epoch, write_number) = run.last_write.unzip();
    let lease = run.lease();
    [
        Id::from(&run.id).into(),
        run.tag().name().into(),
        signed(run.epoch).into(),
        signed(run.journal).into(),
        write_epoch.map(signed).into(),
        write_number.map(signed).into(),
        run.rank().into(),
        due(run).map(Timestamp::as_millis).into(),
        run.is_live().then_some(true).into(),
        run.is_terminal().into(),
        lease.map(|lease| &lease.worker).into(),
        lease.map(|lease| signed(lease.incarnation)).into(),
        lease.map(|lease| signed(lease.claim)).into(),
        body.into(),
    ]
}

fn progress_run<'a>(run: &Run, body: &'a str) -> Call<'a> {
    let (epoch, number) = run.last_write.unzip();
    let (epoch, number) = (epoch.map(signed), number.map(signed));
    let (id, journal) = (Id::from(&run.id), signed(run.journal));
    Call::new(PROGRESS_RUN, [id.into(), journal.into(), epoch.into(), number.into(), body.into()])
}

fn insert_session<'a>(session: &'a Session, body: &'a str) -> Call<'a> {
    let (id, version) = (Id::from(&session.id), signed(session.version));
    let Session { namespace, subject, key, .. } = session;
    let values =
        [id.into(), namespace.into(), subject.into(), key.as_ref().into(), version.into(), body.into()];
    Call::new(INSERT_SESSION, values)
}

fn update_session<'a>(session: &Session, body: &'a str) -> Call<'a> {
    let (id, version) = (Id::from(&session.id), signed(session.version));
    Call::new(UPDATE_SESSION, [id.into(), version.into(), body.into()])
}

fn insert_input<'a>(input: &Input, body: &'a str) -> Calls<'a> {
    let (task, number) = (Id::from(&input.task), signed(input.number));
    let consumed_by = input.consumed_by.as_ref().map(Id::from);
    vec![
        (Call::new(INSERT_INPUT, [task.into(), number.into(), consumed_by.into(), body.into()]), true),
        (Call::new(LAST_INPUT, [task.into(), number.into()]), false),
    ]
}

fn put_worker(worker: &Worker) -> Result<Call<'_>, Failed> {
    let offer = serde_json::to_string(&worker.offer).map_err(|error| Failed::Body(error.to_string()))?;
    let values = [
        (&worker.name).into(),
        signed(worker.incarnation).into(),
        signed(worker.counter).into(),
        signed(worker.claims).into(),
        worker.registered_at.as_millis().into(),
        signed(worker.instance).into(),
        offer.into(),
        worker.standing.name().into(),
    ];
    Ok(Call::new(PUT_WORKER, values))
}

fn put_resource<'a>(resource: &'a StoredResource, body: &'a str, is_made: bool) -> Call<'a> {
    let ResourceKey { kind, namespace, name } = &resource.key;
    let (version, generation) = (signed(resource.version), signed(resource.generation));
    let at = resource.created_at.as_millis();
    let values = [
        kind.into(),
        namespace.into(),
        name.into(),
        version.into(),
        generation.into(),
        at.into(),
        body.into(),
    ];
    Call::new(if is_made { INSERT_RESOURCE } else { PUT_RESOURCE }, values)
}

/// What the writes tell those who watch.
pub fn raise(hint: &mut Hint, write: &Write) {
    match write {
        Write::Standing { .. } | Write::Limit { .. } => hint.ready += 1,
        Write::NewRun(run) | Write::Run(run) => {
            hint.ready += u64::from(makes_claimable(run));
            hint.due += u64::from(due(run).is_some());
        }
        Write::Resource(_) | Write::DeleteResource(_) => hint.resources += 1,
        _ => {}
    }
}
