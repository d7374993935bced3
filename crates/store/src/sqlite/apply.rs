//! Writes a bundle's rows, inside the transaction of its batch.

use ostler_kernel::{
    Event, EventBody, Run, RunId, Session, SessionId, Step, Task, TaskId, Timestamp, Worker, Write,
    bundle::Clash,
    resource::{ResourceKey, StoredResource},
    task::input::Input,
};
use rusqlite::{Connection, OptionalExtension, named_params, params};

use super::{
    chain::{self, End, Owner},
    forget::{forget, forget_session},
    row::{self, Key, to_json},
    tail::Logged,
};
use crate::{
    Hint,
    body::{due, makes_claimable},
};

/// What rows leave beside themselves, once they are committed: whom they may wake, and the end of the log.
#[derive(Default)]
pub struct Effects {
    pub hint: Hint,
    pub logged: Vec<Logged>,
    /// Tasks whose events are gone.
    pub forgotten: Vec<TaskId>,
    /// Runs that became ready.
    pub ready: Vec<RunId>,
}

impl Effects {
    fn raise(&mut self, run: &Run) {
        self.hint.ready += u64::from(makes_claimable(run));
        self.hint.due += u64::from(due(run).is_some());
        self.ready.extend(run.rank().map(|_| run.id));
    }

    /// The run goes to a claim. If it came in the same batch it was not ready for anybody else, and nobody is woken.
    pub fn taken(&mut self, run: RunId) {
        if let Some(place) = self.ready.iter().position(|ready| *ready == run) {
            self.ready.swap_remove(place);
            self.hint.ready -= 1;
        }
    }
}

/// Why a bundle's rows could not be written, and what was in the way if a constraint kept one out.
pub struct ApplyError {
    pub error: rusqlite::Error,
    pub clash: Option<Clash>,
}

/// Writes the rows, each with its text, and notes their effects.
pub fn apply(
    connection: &Connection,
    writes: &[Write],
    texts: &[String],
    effects: &mut Effects,
) -> Result<(), ApplyError> {
    for (write, text) in writes.iter().zip(texts) {
        put(connection, write, text, effects).map_err(|error| ApplyError::at(write, error))?;
    }
    Ok(())
}

fn put(connection: &Connection, write: &Write, text: &str, effects: &mut Effects) -> rusqlite::Result<()> {
    match write {
        Write::NewTask(task) => insert_task(connection, task, text)?,
        Write::Task(task) => update_task(connection, task, text)?,
        Write::NewRun(run) => insert_run(connection, run, text, effects)?,
        Write::Run(run) => update_run(connection, run, text, effects)?,
        Write::RunProgress(run) => progress_run(connection, run, text)?,
        Write::Session(session) => put_session(connection, session, text)?,
        Write::Step(step) => put_step(connection, step, text)?,
        Write::Entry { session, seq, .. } => append_entry(connection, session, *seq, text)?,
        Write::Event { task, at, body } => append_event(connection, task, *at, (body, text), effects)?,
        Write::Input(input) => insert_input(connection, input, text)?,
        Write::Consume { task, upto, run } => consume(connection, task, *upto, run)?,
        Write::Blocker(blocker) => {
            let sql = "INSERT OR REPLACE INTO blockers (id, task, body) VALUES (?1, ?2, ?3)";
            execute(connection, sql, params![Key(&blocker.id), Key(&blocker.task), text])?;
        }
        Write::Archive { task, at } => {
            let sql = "UPDATE tasks SET archived_at = ?2 WHERE id = ?1";
            execute(connection, sql, params![Key(task), at.as_millis()])?;
        }
        Write::Forget(forgotten) => {
            forget(connection, forgotten, effects.hint.position)?;
            effects.forgotten.push(forgotten.task);
        }
        Write::ForgetSession { id, .. } => forget_session(connection, id)?,
        Write::Worker(worker) => put_worker(connection, worker)?,
        Write::ForgetWorker { worker } => {
            execute(connection, "DELETE FROM workers WHERE name = ?1", [worker])?;
        }
        Write::Renewal { worker, counter } => {
            let sql = "UPDATE workers SET counter = max(counter, ?2) WHERE name = ?1";
            execute(connection, sql, params![worker, counter])?;
        }
        Write::Standing { worker, standing } => {
            let sql = "UPDATE workers SET standing = ?2 WHERE name = ?1";
            execute(connection, sql, params![worker, standing.name()])?;
            // Who may claim again looks at once.
            effects.hint.ready += 1;
        }
        Write::Limit { namespace, class, limit } => {
            limit_class(connection, namespace, class, *limit)?;
            // It may let someone in.
            effects.hint.ready += 1;
        }
        Write::Resource(resource) => {
            put_resource(connection, resource, text)?;
            effects.hint.resources += 1;
        }
        Write::DeleteResource(key) => {
            delete_resource(connection, key)?;
            effects.hint.resources += 1;
        }
        Write::Blob { id, bytes, at } => {
            let sql = "INSERT INTO blobs (id, bytes, put_at) VALUES (?1, ?2, ?3) \
                ON CONFLICT (id) DO UPDATE SET put_at = max(put_at, excluded.put_at)";
            execute(connection, sql, params![Key(id), bytes, at.as_millis()])?;
        }
        Write::ForgetBlob { id, put_by } => {
            let sql = "DELETE FROM blobs WHERE id = ?1 AND put_at <= ?2";
            execute(connection, sql, params![Key(id), put_by.as_millis()])?;
        }
    }
    Ok(())
}

impl ApplyError {
    fn at(write: &Write, error: rusqlite::Error) -> Self {
        let kept_out = match &error {
            rusqlite::Error::SqliteFailure(failure, _) => {
                failure.code == rusqlite::ErrorCode::ConstraintViolation
            }
            rusqlite::Error::StatementChangedRows(_) => true,
            _ => false,
        };
        Self { clash: Clash::of(write).filter(|_| kept_out), error }
    }
}

impl From<rusqlite::Error> for ApplyError {
    fn from(error: rusqlite::Error) -> Self {
        Self { error, clash: None }
    }
}

impl From<ApplyError> for rusqlite::Error {
    fn from(failed: ApplyError) -> Self {
        failed.error
    }
}

fn execute(connection: &Connection, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute(params)
}

fn insert_task(connection: &Connection, task: &Task, body: &str) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO tasks (id, namespace, name, key, state, request, body) VALUES (?, ?, ?, ?, ?, ?, ?)";
    let request = to_json(&task.request)?;
    let key = &task.request.idempotency_key;
    let state = task.state.name();
    execute(connection, sql, params![Key(&task.id), task.namespace, task.name, key, state, request, body])?;
    Ok(())
}

fn update_task(connection: &Connection, task: &Task, body: &str) -> rusqlite::Result<()> {
    let sql = "UPDATE tasks SET state = ?2, body = ?3 WHERE id = ?1";
    execute(connection, sql, params![Key(&task.id), task.state.name(), body])?;
    Ok(())
}

const INSERT_RUN: &str = "INSERT INTO runs (id, task, session, place, lane, state, epoch, journal, rank, due, \
    ended, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)";

fn insert_run(connection: &Connection, run: &Run, body: &str, effects: &mut Effects) -> rusqlite::Result<()> {
    let lane = put_lane(connection, run)?;
    let due = due(run).map(Timestamp::as_millis);
    effects.raise(run);
    let params = params![
        Key(&run.id),
        Key(&run.task),
        Key(&run.session),
        run.order,
        lane,
        run.tag().name(),
        run.epoch,
        run.journal,
        run.rank(),
        due,
        body
    ];
    execute(connection, INSERT_RUN, params)?;
    Ok(())
}

const UPDATE_RUN: &str = "UPDATE runs SET state = :state, epoch = :epoch, journal = :journal, \
    write_epoch = :write_epoch, write_number = :write_number, rank = :rank, due = :due, live = :live, \
    ended = :ended, worker = :worker, incarnation = :incarnation, claim = :claim, body = :body WHERE id = :id";

fn update_run(connection: &Connection, run: &Run, body: &str, effects: &mut Effects) -> rusqlite::Result<()> {
    effects.raise(run);
    let lease = run.lease();
    let params = named_params! {
        ":id": Key(&run.id),
        ":state": run.tag().name(),
        ":epoch": run.epoch,
        ":journal": run.journal,
        ":write_epoch": run.last_write.map(|(epoch, _)| epoch),
        ":write_number": run.last_write.map(|(_, number)| number),
        ":rank": run.rank(),
        ":due": due(run).map(Timestamp::as_millis),
        ":live": run.is_live().then_some(1),
        ":ended": run.is_terminal(),
        ":worker": lease.map(|lease| &lease.worker),
        ":incarnation": lease.map(|lease| lease.incarnation),
        ":claim": lease.map(|lease| lease.claim),
        ":body": body,
    };
    execute(connection, UPDATE_RUN, params)?;
    Ok(())
}

/// The lane's number. It is there already for all but the first run of an agent, and then costs no page.
fn put_lane(connection: &Connection, run: &Run) -> rusqlite::Result<i64> {
    let lane = &run.lane;
    let (key, requires) = (lane.key(), lane.requires.text());
    let sql = "SELECT id FROM lanes WHERE namespace = ?1 AND class = ?2 AND slots IS ?3";
    let params = params![lane.namespace, key, lane.limit];
    if let Some(id) = connection.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()? {
        return Ok(id);
    }
    let sql = "INSERT INTO lanes (namespace, class, slots, pool, requires) VALUES (?1, ?2, ?3, ?4, ?5) \
        ON CONFLICT (namespace, class) DO UPDATE SET slots = excluded.slots RETURNING id";
    let params = params![lane.namespace, key, lane.limit, lane.class, requires];
    let id = connection.prepare_cached(sql)?.query_row(params, |row| row.get(0))?;
    limit_class(connection, &lane.namespace, &lane.class, lane.limit)?;
    Ok(id)
}

/// The limit is the class's: it holds for all of its lanes.
fn limit_class(
    connection: &Connection,
    namespace: &str,
    class: &str,
    limit: Option<u32>,
) -> rusqlite::Result<()> {
    let sql = "UPDATE lanes SET slots = ?3 WHERE namespace = ?1 AND pool = ?2 AND slots IS NOT ?3";
    execute(connection, sql, params![namespace, class, limit]).map(drop)
}

fn progress_run(connection: &Connection, run: &Run, body: &str) -> rusqlite::Result<()> {
    let sql = "UPDATE runs SET journal = ?2, write_epoch = ?3, write_number = ?4, body = ?5 WHERE id = ?1";
    let (epoch, number) = run.last_write.unzip();
    execute(connection, sql, params![Key(&run.id), run.journal, epoch, number, body])?;
    Ok(())
}

fn put_session(connection: &Connection, session: &Session, body: &str) -> rusqlite::Result<()> {
    if session.version > 1 {
        let sql = "UPDATE sessions SET version = ?2, body = ?3 WHERE id = ?1";
        execute(connection, sql, params![Key(&session.id), session.version, body])?;
        return Ok(());
    }
    let sql = "INSERT INTO sessions (id, namespace, subject, key, version, body) VALUES (?, ?, ?, ?, ?, ?)";
    let Session { id, namespace, subject, key, version, .. } = session;
    execute(connection, sql, params![Key(id), namespace, subject, key, version, body])?;
    Ok(())
}

/// Steps are opened in the order of their numbers, and each is done once; anything else is kept out.
fn put_step(connection: &Connection, step: &Step, body: &str) -> rusqlite::Result<()> {
    let (run, index) = (Key(&step.id.run), step.id.index);
    let owner = Owner::Run(step.id.run.as_bytes());
    let end = chain::end(connection, owner)?;
    if step.is_open() {
        let opened = end.map_or(0, |end| end.count);
        kept_out_unless(opened == u64::from(index))?;
        let to = End { place: end.and_then(|end| end.place), count: opened + 1 };
        chain::move_end(connection, owner, end, to)?;
        let sql = "INSERT INTO open_steps (run, step, body) VALUES (?1, ?2, ?3)";
        execute(connection, sql, params![run, index, body])?;
        return Ok(());
    }
    let sql = "DELETE FROM open_steps WHERE run = ?1 AND step = ?2";
    kept_out_unless(execute(connection, sql, params![run, index])? == 1)?;
    let sql = "INSERT INTO steps (run, body, prev) VALUES (?1, ?2, ?3)";
    execute(connection, sql, params![run, body, end.and_then(|end| end.place)])?;
    let place = Some(connection.last_insert_rowid());
    chain::move_end(connection, owner, end, End { place, count: end.map_or(0, |end| end.count) })
}

fn append_entry(connection: &Connection, session: &SessionId, seq: u64, body: &str) -> rusqlite::Result<()> {
    let owner = Owner::Session(session.as_bytes());
    let end = chain::end(connection, owner)?;
    kept_out_unless(end.map_or(0, |end| end.count) == seq)?;
    chain::append(connection, owner, end, |prev| {
        let sql = "INSERT INTO entries (session, seq, body, prev) VALUES (?1, ?2, ?3, ?4)";
        execute(connection, sql, params![Key(session), seq, body, prev]).map(drop)
    })?;
    Ok(())
}

/// As a constraint would.
fn kept_out_unless(fits: bool) -> rusqlite::Result<()> {
    if fits { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(0)) }
}

fn append_event(
    connection: &Connection,
    task: &TaskId,
    at: Timestamp,
    (body, text): (&EventBody, &str),
    effects: &mut Effects,
) -> rusqlite::Result<()> {
    let owner = Owner::Task(task.as_bytes());
    let end = chain::end(connection, owner)?;
    let seq = end.map_or(0, |end| end.count) + 1;
    // Not left to SQLite: it would give the place of a last event that was forgotten once more.
    let position = effects.hint.position + 1;
    chain::append(connection, owner, end, |prev| {
        let sql = "INSERT INTO events (position, task, seq, at, body, prev) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        execute(connection, sql, params![position, Key(task), seq, at.as_millis(), text, prev]).map(drop)
    })?;
    effects.hint.position = position;
    let event = Event { seq, position, task: *task, at, body: body.clone() };
    effects.logged.push(Logged { event, size: text.len() });
    Ok(())
}

fn insert_input(connection: &Connection, input: &Input, body: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO inputs (task, number, body) VALUES (?1, ?2, ?3)";
    execute(connection, sql, params![Key(&input.task), input.number, body])?;
    let sql = "UPDATE tasks SET last_input = ?2 WHERE id = ?1";
    execute(connection, sql, params![Key(&input.task), input.number])?;
    Ok(())
}

fn consume(
    connection: &Connection,
    task: &TaskId,
    upto: u64,
    run: &ostler_kernel::RunId,
) -> rusqlite::Result<()> {
    let sql = "SELECT body FROM inputs WHERE task = ?1 AND number <= ?2 ORDER BY number";
    let mut statement = connection.prepare_cached(sql)?;
    let inputs: Vec<Input> = statement
        .query_map(params![Key(task), upto], |row| row::from_json(row, 0))?
        .collect::<rusqlite::Result<_>>()?;
    for mut input in inputs.into_iter().filter(|input| input.consumed_by.is_none()) {
        input.consumed_by = Some(*run);
        let sql = "UPDATE inputs SET body = ?3 WHERE task = ?1 AND number = ?2";
        execute(connection, sql, params![Key(task), input.number, to_json(&input)?])?;
    }
    let sql = "UPDATE tasks SET consumed_input = ?2 WHERE id = ?1";
    execute(connection, sql, params![Key(task), upto])?;
    Ok(())
}

fn put_worker(connection: &Connection, worker: &Worker) -> rusqlite::Result<()> {
    let sql = "INSERT INTO workers (name, incarnation, counter, claims, registered_at, instance, offer, standing) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (name) DO UPDATE SET incarnation = ?2, counter = ?3, \
        claims = ?4, registered_at = ?5, instance = ?6, offer = ?7";
    let Worker { name, incarnation, counter, claims, registered_at, instance, offer, standing } = worker;
    let (at, instance, offer) = (registered_at.as_millis(), instance.cast_signed(), to_json(offer)?);
    execute(
        connection,
        sql,
        params![name, incarnation, counter, claims, at, instance, offer, standing.name()],
    )?;
    Ok(())
}

fn put_resource(connection: &Connection, resource: &StoredResource, body: &str) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO resources (kind, namespace, name, version, generation, created_at, body) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let StoredResource { key, version, generation, created_at, .. } = resource;
    let params =
        params![key.kind, key.namespace, key.name, version, generation, created_at.as_millis(), body];
    execute(connection, sql, params)?;
    Ok(())
}

fn delete_resource(connection: &Connection, key: &ResourceKey) -> rusqlite::Result<()> {
    let sql = "DELETE FROM resources WHERE kind = ?1 AND namespace = ?2 AND name = ?3";
    execute(connection, sql, [&key.kind, &key.namespace, &key.name])?;
    Ok(())
}
