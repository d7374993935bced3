//! Writes the rows of bundles that count, inside the transaction of their batch. All statements are sent at once;
//! the database carries them out in that order.

mod append;

use std::{
    collections::BTreeMap,
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

use ostler_kernel::{
    Lease, Run, Session, Task, Timestamp, Worker, Write,
    resource::{ResourceKey, StoredResource},
    task::{forget::Forgotten, input::Input},
};

use self::append::Appended;
use super::{
    Failed,
    connection::{Connection, Params},
    row::{Id, signed},
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
const INSERT_RUN: &str = "INSERT INTO runs (id, task, session, place, lane, state, epoch, journal, rank, due, body) \
    SELECT $1, $2, $3, $4, lanes.id, $5, $6, $7, $8, $9, $10 FROM lanes WHERE namespace = $11 AND class = $12 \
    ON CONFLICT DO NOTHING";
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
const FORGET: &str = "WITH s AS (DELETE FROM steps WHERE run = $2), e AS (DELETE FROM events WHERE task = $1), \
    i AS (DELETE FROM inputs WHERE task = $1), b AS (DELETE FROM blockers WHERE task = $1), \
    n AS (DELETE FROM entries WHERE session = $3), c AS (DELETE FROM sessions WHERE id = $3), \
    r AS (DELETE FROM runs WHERE id = $2) DELETE FROM tasks WHERE id = $1";
const PUT_WORKER: &str = "INSERT INTO workers \
    (name, incarnation, counter, claims, registered_at, instance, offer, standing) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, \
    counter = excluded.counter, claims = excluded.claims, registered_at = excluded.registered_at, \
    instance = excluded.instance, offer = excluded.offer";
const STAND: &str = "UPDATE workers SET standing = $2 WHERE name = $1";
const RENEW: &str = "UPDATE workers SET counter = greatest(counter, $2) WHERE name = $1";
const PUT_RESOURCE: &str = "INSERT INTO resources (kind, namespace, name, version, generation, created_at, body) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (kind, namespace, name) DO UPDATE SET \
    version = excluded.version, generation = excluded.generation, created_at = excluded.created_at, \
    body = excluded.body";
const DELETE_RESOURCE: &str = "DELETE FROM resources WHERE kind = $1 AND namespace = $2 AND name = $3";
const PUT_BLOB: &str = "INSERT INTO blobs (id, bytes) VALUES ($1, $2) ON CONFLICT DO NOTHING";

const ALL: [&str; 21] = [
    INSERT_TASK,
    UPDATE_TASK,
    PUT_LANE,
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
    DELETE_RESOURCE,
    PUT_BLOB,
];

/// Makes a connection ready to write.
pub async fn prepare(connection: &Connection) -> Result<(), Failed> {
    let (rows, appended) = tokio::join!(biased; connection.prepare_all(&ALL), append::prepare(connection));
    rows.and(appended)
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// What is appended to a table goes there in one statement. If something is in the way, nobody knows what.
    Gathered,
    /// Each by itself, so that the first that is kept out can be named.
    EachAlone,
}

/// Rows that are written by one statement, and the place of the first.
struct Part<'a> {
    place: usize,
    appended: Option<Appended>,
    rows: Vec<&'a Row<'a>>,
}

/// What is appended comes last: steps are opened before they are closed, and nothing else looks at it.
fn parts<'a>(rows: &'a [Row<'a>], care: Care) -> Vec<Part<'a>> {
    let (mut parts, mut gathered) = (Vec::new(), BTreeMap::<Appended, Part<'a>>::new());
    for (place, row) in rows.iter().enumerate() {
        let appended = Appended::of(row.write);
        match appended {
            Some(kind) if care == Care::Gathered => {
                let part = || Part { place, appended, rows: Vec::new() };
                gathered.entry(kind).or_insert_with(part).rows.push(row);
            }
            Some(_) | None => parts.push(Part { place, appended, rows: vec![row] }),
        }
    }
    parts.extend(gathered.into_values());
    parts
}

/// Writes the rows. Tells the place of the first that a unique index kept out, as far as that is known.
pub async fn apply(connection: &Connection, rows: &[Row<'_>], care: Care) -> Result<(), Failed> {
    let parts = parts(rows, care);
    let mut writing: Vec<_> = parts.iter().map(|part| Box::pin(write(connection, part))).collect();
    let mut written: Vec<Option<Result<bool, Failed>>> = Vec::new();
    // Once around sends them all, in order.
    for future in &mut writing {
        written.push(poll_once(future.as_mut()).await);
    }
    let mut outcome = Ok(());
    for ((part, future), written) in parts.iter().zip(writing).zip(written) {
        let place = part.place;
        let stood = match written {
            Some(stood) => stood,
            None => future.await,
        };
        match stood {
            Ok(true) => {}
            Ok(false) if outcome.is_ok() => outcome = Err(Failed::KeptOut(place)),
            // Behind the first that failed the transaction is lost, and so the rest says nothing.
            Err(error) if outcome.is_ok() => outcome = Err(error.at(place)),
            Ok(false) | Err(_) => {}
        }
    }
    outcome
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn write(connection: &Connection, part: &Part<'_>) -> Result<bool, Failed> {
    match part.appended {
        Some(kind) => append::append(connection, kind, &part.rows).await,
        None => put(connection, part.rows[0]).await,
    }
}

/// Whether it stands: false if a row is there that is in its way, or none where one must be.
async fn put(connection: &Connection, row: &Row<'_>) -> Result<bool, Failed> {
    let text = row.text;
    let any = |changed: Result<u64, Failed>| changed.map(|_| true);
    match row.write {
        Write::NewTask(task) => insert_task(connection, task, text).await,
        Write::Task(task) => {
            any(connection.execute(UPDATE_TASK, &[&Id::from(&task.id), &task.state.name(), &text]).await)
        }
        Write::NewRun(run) => insert_run(connection, run, text).await,
        Write::Run(run) => any(update_run(connection, run, text).await),
        Write::RunProgress(run) => any(progress_run(connection, run, text).await),
        Write::Session(session) => put_session(connection, session, text).await,
        // These are appended.
        Write::Step(_) | Write::Entry { .. } | Write::Event { .. } => Ok(true),
        Write::Input(input) => insert_input(connection, input, text).await,
        Write::Consume { task, upto, run } => {
            let (task, upto, run) = (Id::from(task), signed(*upto), Id::from(run));
            let (inputs, counted) = tokio::join!(
                biased;
                async { connection.execute(CONSUME, &[&task, &upto, &run]).await },
                async { connection.execute(CONSUMED, &[&task, &upto]).await },
            );
            any(inputs.and(counted))
        }
        Write::Blocker(blocker) => {
            let (id, task) = (Id::from(&blocker.id), Id::from(&blocker.task));
            any(connection.execute(PUT_BLOCKER, &[&id, &task, &text]).await)
        }
        Write::Archive { task, at } => {
            any(connection.execute(ARCHIVE, &[&Id::from(task), &at.as_millis()]).await)
        }
        Write::Forget(Forgotten { task, run, session, .. }) => {
            let session = session.as_ref().map(Id::from);
            any(connection.execute(FORGET, &[&Id::from(task), &Id::from(run), &session]).await)
        }
        Write::Worker(worker) => any(put_worker(connection, worker).await),
        Write::Renewal { worker, counter } => {
            any(connection.execute(RENEW, &[worker, &signed(*counter)]).await)
        }
        Write::Standing { worker, standing } => {
            any(connection.execute(STAND, &[worker, &standing.name()]).await)
        }
        Write::Resource(resource) => any(put_resource(connection, resource, text).await),
        Write::DeleteResource(key) => {
            any(connection.execute(DELETE_RESOURCE, &[&key.kind, &key.namespace, &key.name]).await)
        }
        Write::Blob { id, bytes } => {
            any(connection.execute(PUT_BLOB, &[&id.as_bytes().as_slice(), bytes]).await)
        }
    }
}

async fn progress_run(connection: &Connection, run: &Run, body: &str) -> Result<u64, Failed> {
    let (epoch, number) = run.last_write.unzip();
    let (epoch, number) = (epoch.map(signed), number.map(signed));
    let (id, journal) = (Id::from(&run.id), signed(run.journal));
    connection.execute(PROGRESS_RUN, &[&id, &journal, &epoch, &number, &body]).await
}

async fn put_session(connection: &Connection, session: &Session, body: &str) -> Result<bool, Failed> {
    let (id, version) = (Id::from(&session.id), signed(session.version));
    if session.version > 1 {
        return connection.execute(UPDATE_SESSION, &[&id, &version, &body]).await.map(|_| true);
    }
    let Session { namespace, subject, key, .. } = session;
    Ok(connection.execute(INSERT_SESSION, &[&id, namespace, subject, key, &version, &body]).await? == 1)
}

async fn put_worker(connection: &Connection, worker: &Worker) -> Result<u64, Failed> {
    let numbers = [worker.incarnation, worker.counter, worker.claims, worker.instance].map(signed);
    let [incarnation, counter, claims, instance] = &numbers;
    let at = worker.registered_at.as_millis();
    let offer = serde_json::to_string(&worker.offer).map_err(|error| Failed::Body(error.to_string()))?;
    let (name, standing) = (&worker.name, worker.standing.name());
    connection
        .execute(PUT_WORKER, &[name, incarnation, counter, claims, &at, instance, &offer, &standing])
        .await
}

async fn put_resource(connection: &Connection, resource: &StoredResource, body: &str) -> Result<u64, Failed> {
    let ResourceKey { kind, namespace, name } = &resource.key;
    let (version, generation) = (signed(resource.version), signed(resource.generation));
    let at = resource.created_at.as_millis();
    connection.execute(PUT_RESOURCE, &[kind, namespace, name, &version, &generation, &at, &body]).await
}

async fn insert_task(connection: &Connection, task: &Task, body: &str) -> Result<bool, Failed> {
    let request = serde_json::to_string(&task.request).map_err(|error| Failed::Body(error.to_string()))?;
    let (id, key, state) = (Id::from(&task.id), &task.request.idempotency_key, task.state.name());
    let inserted = connection
        .execute(INSERT_TASK, &[&id, &task.namespace, &task.name, key, &state, &request, &body])
        .await?;
    Ok(inserted == 1)
}

async fn insert_run(connection: &Connection, run: &Run, body: &str) -> Result<bool, Failed> {
    let lane = &run.lane;
    let slots = lane.limit.map(i64::from);
    let (key, requires) = (lane.key(), lane.requires.text());
    let (id, task, session) = (Id::from(&run.id), Id::from(&run.task), Id::from(&run.session));
    let (place, epoch, journal) = (signed(run.order), signed(run.epoch), signed(run.journal));
    let (state, rank, due) = (run.tag().name(), run.rank(), due(run).map(Timestamp::as_millis));
    let (lane_put, inserted) = tokio::join!(
        biased;
        async {
            let (namespace, class) = (&lane.namespace, &lane.class);
            connection.execute(PUT_LANE, &[namespace, &key, &slots, class, &requires]).await
        },
        async {
            let (namespace, class) = (&lane.namespace, &key);
            let row: Params<'_> = &[
                &id, &task, &session, &place, &state, &epoch, &journal, &rank, &due, &body, namespace, class,
            ];
            connection.execute(INSERT_RUN, row).await
        },
    );
    lane_put?;
    Ok(inserted? == 1)
}

async fn update_run(connection: &Connection, run: &Run, body: &str) -> Result<u64, Failed> {
    let (epoch, journal) = (signed(run.epoch), signed(run.journal));
    let (write_epoch, write_number) = run.last_write.unzip();
    let (write_epoch, write_number) = (write_epoch.map(signed), write_number.map(signed));
    let (rank, due) = (run.rank(), due(run).map(Timestamp::as_millis));
    let (live, ended) = (run.is_live().then_some(true), run.is_terminal());
    let lease = run.lease();
    let (worker, incarnation, claim) = (
        lease.map(|lease| &lease.worker),
        lease.map(|lease| signed(lease.incarnation)),
        lease.map(|lease: &Lease| signed(lease.claim)),
    );
    let (id, state) = (Id::from(&run.id), run.tag().name());
    let row: Params<'_> = &[
        &id,
        &state,
        &epoch,
        &journal,
        &write_epoch,
        &write_number,
        &rank,
        &due,
        &live,
        &ended,
        &worker,
        &incarnation,
        &claim,
        &body,
    ];
    connection.execute(UPDATE_RUN, row).await
}

async fn insert_input(connection: &Connection, input: &Input, body: &str) -> Result<bool, Failed> {
    let (task, number) = (Id::from(&input.task), signed(input.number));
    let consumed_by = input.consumed_by.as_ref().map(Id::from);
    let (inserted, counted) = tokio::join!(
        biased;
        async { connection.execute(INSERT_INPUT, &[&task, &number, &consumed_by, &body]).await },
        async { connection.execute(LAST_INPUT, &[&task, &number]).await },
    );
    counted?;
    Ok(inserted? == 1)
}

/// What the writes tell those who watch.
pub fn raise(hint: &mut Hint, write: &Write) {
    match write {
        Write::Standing { .. } => hint.ready += 1,
        Write::NewRun(run) | Write::Run(run) => {
            hint.ready += u64::from(makes_claimable(run));
            hint.due += u64::from(due(run).is_some());
        }
        Write::Resource(_) | Write::DeleteResource(_) => hint.resources += 1,
        _ => {}
    }
}
