//! Answers queries, on a connection of a reader.

use ostler_kernel::{
    BlobId, BlockerId, Entry, Event, Run, RunId, RunState, SessionId, Step, TaskId, Timestamp,
    resource::{ResourceKey, StoredResource},
    run::{RunView, blocker::Blocker},
    task::input::Input,
};
use rusqlite::{Connection, OptionalExtension, Params, Row, params, params_from_iter, types::Value};

use super::{
    chain::{self, Owner, Table},
    row::{self, Key, RESOURCE, TASK, WORKER, from_json, most},
};
use crate::query::{
    Accepted, Answer, DuePlace, FirmLog, Query, ResourceFilter, SessionPlace, TROUBLED, TaskFilter, TaskPage,
    TaskRef, TaskRow, Way,
};

pub fn read(connection: &Connection, query: &Query) -> rusqlite::Result<Answer> {
    Ok(match query {
        Query::Task(reference) => Answer::Task(task(connection, reference)?),
        Query::Tasks(filter) => Answer::TaskPage(tasks(connection, filter)?),
        Query::OldTasks { before, after, limit } => {
            Answer::Tasks(old_tasks(connection, *before, after.as_ref(), *limit)?)
        }
        Query::NthTask { namespace, nth } => {
            let sql = "SELECT id FROM tasks WHERE namespace = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2";
            let found =
                one(connection, sql, params![namespace, most(*nth)], |row| row.get::<_, Key<TaskId>>(0))?;
            Answer::TaskId(found.map(|Key(id)| id))
        }
        Query::RunView(run) => Answer::RunView(run_view(connection, *run)?.map(Box::new)),
        Query::Run(run) => Answer::Run(load_run(connection, *run)?.map(Box::new)),
        Query::Steps(run) => Answer::Steps(steps(connection, run)?),
        Query::Session(session) => Answer::Session(load_session(connection, session)?.map(Box::new)),
        Query::SessionByKey { namespace, subject, key } => {
            let sql = "SELECT body FROM sessions WHERE namespace = ?1 AND subject = ?2 AND key = ?3";
            Answer::Session(one(connection, sql, [namespace, subject, key], row::session)?.map(Box::new))
        }
        Query::Sessions { namespace, after, limit } => {
            Answer::Sessions(sessions(connection, namespace.as_deref(), after.as_ref(), *limit)?)
        }
        Query::Entries { session, from, to } => Answer::Entries(entries(connection, session, *from, *to)?),
        Query::Inputs { task, after } => Answer::Inputs(inputs(connection, task, *after)?),
        Query::Blocker(blocker) => Answer::Blocker(load_blocker(connection, blocker)?),
        Query::Events { task, after, limit } => Answer::Events(events(connection, task, *after, *limit)?),
        Query::Log { after, limit } => Answer::Events(log(connection, *after, *limit)?),
        Query::FirmLog { after, limit } => {
            Answer::FirmLog(FirmLog::whole(log(connection, *after, *limit)?, *limit))
        }
        Query::Leased { worker } => Answer::Runs(leased(connection, worker.as_deref())?),
        Query::Workers => {
            let sql = format!("SELECT {WORKER} FROM workers ORDER BY name");
            Answer::Workers(all(connection, &sql, [], row::worker)?)
        }
        Query::Ready { namespace, class, most: limit } => {
            let sql = "SELECT count(*) FROM (SELECT 1 FROM lanes CROSS JOIN runs ON runs.lane = lanes.id \
                AND rank IS NOT NULL WHERE namespace = ?1 AND (?2 IS NULL OR pool = ?2) LIMIT ?3)";
            let params = params![namespace, class, most(*limit)];
            Answer::Count(one(connection, sql, params, |row| row.get(0))?.unwrap_or(0))
        }
        Query::Accepted { namespace, class, since, upto, most: limit } => {
            let [since, upto] = [since, upto].map(|at| TaskId::from_parts(*at, u64::MAX, u64::MAX));
            let of_class = "AND id IN (SELECT task FROM runs CROSS JOIN lanes ON lanes.id = runs.lane \
                WHERE runs.id > ?2 AND namespace = ?1 AND pool = ?4)";
            let condition = if class.is_some() { of_class } else { "AND ?4 IS NULL" };
            let sql = format!(
                "SELECT count(*), min(id) FROM (SELECT id FROM tasks WHERE namespace = ?1 AND id > ?2 AND id <= ?5 \
                 {condition} ORDER BY id DESC LIMIT ?3)"
            );
            let params = params![namespace, Key(&since), most(*limit), class, Key(&upto)];
            let read = |row: &Row<'_>| {
                Ok(Accepted::of(row.get(0)?, row.get::<_, Option<[u8; 16]>>(1)?.map(TaskId::from_bytes)))
            };
            Answer::Accepted(one(connection, &sql, params, read)?.unwrap_or_default())
        }
        Query::Due { after, now, limit } => Answer::Runs(due(connection, after, *now, *limit)?),
        Query::NextDue => {
            let sql = "SELECT due FROM runs WHERE due IS NOT NULL ORDER BY due LIMIT 1";
            Answer::Time(one(connection, sql, [], |row| row.get(0))?.map(Timestamp::from_millis))
        }
        Query::Resource(key) => Answer::Resource(resource(connection, key)?),
        Query::Resources(filter) => Answer::Resources(resources(connection, filter)?),
        Query::Namespaces => Answer::Names(all(connection, NAMESPACES, [], |row| row.get(0))?),
        Query::Blob(blob) => Answer::Blob(load_blob(connection, blob)?),
        Query::OldBlobs { put_by } => Answer::Blobs(old_blobs(connection, *put_by)?),
    })
}

fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    map: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(params, map).optional()
}

fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    map: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(params, map)?.collect()
}

fn task(connection: &Connection, reference: &TaskRef) -> rusqlite::Result<Option<TaskRow>> {
    let by = |condition: &str| format!("SELECT {TASK} FROM tasks WHERE {condition}");
    match reference {
        TaskRef::Id(id) => one(connection, &by("id = ?1"), [Key(id)], row::task),
        TaskRef::Name { namespace, name } => {
            one(connection, &by("namespace = ?1 AND name = ?2"), [namespace, name], row::task)
        }
        TaskRef::Key { namespace, key } => {
            one(connection, &by("namespace = ?1 AND key = ?2"), [namespace, key], row::task)
        }
    }
}

fn tasks(connection: &Connection, filter: &TaskFilter) -> rusqlite::Result<TaskPage> {
    let found = match filter.way() {
        Way::Live => "id IN (SELECT task FROM runs WHERE ended = 0)",
        Way::Troubled => TROUBLED,
        Way::Newest => "1",
    };
    let mut sql = format!("SELECT {TASK} FROM tasks WHERE {found}");
    let mut values: Vec<Value> = Vec::new();
    if let Some(namespace) = &filter.namespace {
        // Where the tasks are found otherwise, its index would be a detour: the plus keeps it out.
        let column = if filter.way() == Way::Newest { "namespace" } else { "+namespace" };
        sql.push_str(&format!(" AND {column} = ?"));
        values.push(namespace.clone().into());
    }
    if !filter.archived {
        sql.push_str(" AND archived_at IS NULL");
    }
    if !filter.states.is_empty() {
        sql.push_str(&format!(" AND state IN ({})", vec!["?"; filter.states.len()].join(", ")));
        values.extend(filter.states.iter().cloned().map(Value::from));
    }
    if let Some(before) = &filter.before {
        sql.push_str(" AND id < ?");
        values.push(before.as_bytes().to_vec().into());
    }
    sql.push_str(" ORDER BY id DESC LIMIT ?");
    // Where they are looked at one by one, how many that takes is not known before.
    let enough = if filter.is_selective() { usize::MAX } else { filter.limit };
    values.push(most(enough).into());
    let mut statement = connection.prepare_cached(&sql)?;
    TaskPage::of(filter, statement.query_map(params_from_iter(values), row::task)?)
}

fn old_tasks(
    connection: &Connection,
    before: Timestamp,
    after: Option<&TaskId>,
    limit: usize,
) -> rusqlite::Result<Vec<TaskRow>> {
    let sql = format!("SELECT {TASK} FROM tasks WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3");
    let (first, end) = (TaskId::from_bytes([0; 16]), TaskId::from_parts(before, 0, 0));
    let params = params![Key(after.unwrap_or(&first)), Key(&end), most(limit)];
    all(connection, &sql, params, row::task)
}

/// One transaction, so that a step is in one of the two tables.
fn steps(connection: &Connection, run: &RunId) -> rusqlite::Result<Vec<Step>> {
    let transaction = connection.unchecked_transaction()?;
    let mut steps = all(&transaction, "SELECT body FROM open_steps WHERE run = ?1", [Key(run)], row::step)?;
    let mut next = chain::end(&transaction, Owner::Run(run.as_bytes()))?.and_then(|end| end.place);
    while let Some(place) = next {
        let sql = "SELECT body, prev FROM steps WHERE place = ?1";
        let read = |row: &Row<'_>| Ok((row::step(row)?, row.get(1)?));
        let Some((step, prev)) = one(&transaction, sql, [place], read)? else { break };
        steps.push(step);
        next = prev;
    }
    steps.sort_by_key(|step| step.id.index);
    Ok(steps)
}

const ENTRIES: Table = Table {
    mark: "SELECT place FROM entries WHERE session = ?1 AND seq >= ?2 AND seq % 64 = 0 ORDER BY seq LIMIT 1",
    row: "SELECT seq, prev, body FROM entries WHERE place = ?1",
};

fn entries(
    connection: &Connection,
    session: &SessionId,
    from: u64,
    to: Option<u64>,
) -> rusqlite::Result<Vec<(u64, Entry)>> {
    let range = (from, to.unwrap_or(u64::MAX));
    let owner = Owner::Session(session.as_bytes());
    chain::range(connection, &ENTRIES, owner, range, |row| Ok((row.get(0)?, from_json(row, 2)?)))
}

fn sessions(
    connection: &Connection,
    namespace: Option<&str>,
    after: Option<&SessionPlace>,
    limit: usize,
) -> rusqlite::Result<Vec<ostler_kernel::Session>> {
    let sql = "SELECT body FROM sessions WHERE key IS NOT NULL AND (?1 IS NULL OR namespace = ?1) \
        AND (namespace, subject, key) > (?2, ?3, ?4) ORDER BY namespace, subject, key LIMIT ?5";
    let SessionPlace { namespace: space, subject, key } = after.cloned().unwrap_or_default();
    all(connection, sql, params![namespace, space, subject, key, most(limit)], row::session)
}

fn inputs(connection: &Connection, task: &TaskId, after: u64) -> rusqlite::Result<Vec<Input>> {
    let sql = "SELECT body FROM inputs WHERE task = ?1 AND number > ?2 ORDER BY number";
    all(connection, sql, params![Key(task), after], |row| from_json(row, 0))
}

const EVENTS: Table = Table {
    mark: "SELECT position FROM events WHERE task = ?1 AND seq >= ?2 AND seq % 64 = 0 ORDER BY seq LIMIT 1",
    row: "SELECT seq, prev, position, task, at, body FROM events WHERE position = ?1",
};

fn events(connection: &Connection, task: &TaskId, after: u64, limit: usize) -> rusqlite::Result<Vec<Event>> {
    let from = after.saturating_add(1);
    let range = (from, from.saturating_add(limit as u64));
    chain::range(connection, &EVENTS, Owner::Task(task.as_bytes()), range, row::event)
}

fn log(connection: &Connection, after: u64, limit: usize) -> rusqlite::Result<Vec<Event>> {
    let sql = "SELECT seq, prev, position, task, at, body FROM events WHERE position > ?1 ORDER BY position LIMIT ?2";
    all(connection, sql, params![after, most(limit)], row::event)
}

fn due(
    connection: &Connection,
    after: &DuePlace,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<Run>> {
    let sql = "SELECT body FROM runs WHERE due <= ?1 AND (due, id) > (?2, ?3) ORDER BY due, id LIMIT ?4";
    let DuePlace { at, run } = after;
    all(connection, sql, params![now.as_millis(), at.as_millis(), Key(run), most(limit)], row::run)
}

fn resource(connection: &Connection, key: &ResourceKey) -> rusqlite::Result<Option<StoredResource>> {
    let sql = format!("SELECT {RESOURCE} FROM resources WHERE kind = ?1 AND namespace = ?2 AND name = ?3");
    one(connection, &sql, [&key.kind, &key.namespace, &key.name], row::resource)
}

/// From one namespace to the next, however many tasks live in each.
const NAMESPACES: &str = "WITH RECURSIVE spaces (space) AS (SELECT min(namespace) FROM tasks UNION ALL \
    SELECT (SELECT min(namespace) FROM tasks WHERE namespace > space) FROM spaces WHERE space IS NOT NULL) \
    SELECT space FROM spaces WHERE space IS NOT NULL UNION SELECT namespace FROM resources ORDER BY 1";

fn resources(connection: &Connection, filter: &ResourceFilter) -> rusqlite::Result<Vec<StoredResource>> {
    let ResourceFilter { kind, namespace, after, labels, limit } = filter;
    let sql = format!(
        "SELECT {RESOURCE} FROM resources WHERE kind = ?1 AND (?2 IS NULL OR namespace = ?2) \
         AND (namespace, name) > (?3, ?4) ORDER BY namespace, name LIMIT ?5"
    );
    let (space, name) = after.clone().unwrap_or_default();
    let enough = if labels.is_empty() { *limit } else { usize::MAX };
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![kind, namespace, space, name, most(enough)], row::resource)?;
    let is_meant = |row: &rusqlite::Result<StoredResource>| {
        row.as_ref().map_or(true, |resource| labels.is_empty() || labels.matches(&resource.labels()))
    };
    rows.filter(is_meant).take(*limit).collect()
}

fn load_run(connection: &Connection, id: RunId) -> rusqlite::Result<Option<Run>> {
    one(connection, "SELECT body FROM runs WHERE id = ?1", [Key(&id)], row::run)
}

fn load_session(connection: &Connection, id: &SessionId) -> rusqlite::Result<Option<ostler_kernel::Session>> {
    one(connection, "SELECT body FROM sessions WHERE id = ?1", [Key(id)], row::session)
}

fn load_blocker(connection: &Connection, id: &BlockerId) -> rusqlite::Result<Option<Blocker>> {
    one(connection, "SELECT body FROM blockers WHERE id = ?1", [Key(id)], |row| from_json(row, 0))
}

fn load_blob(connection: &Connection, id: &BlobId) -> rusqlite::Result<Option<Vec<u8>>> {
    one(connection, "SELECT bytes FROM blobs WHERE id = ?1", [Key(id)], |row| row.get(0))
}

fn old_blobs(connection: &Connection, put_by: Timestamp) -> rusqlite::Result<Vec<BlobId>> {
    let sql = "SELECT id FROM blobs WHERE put_at <= ?1 ORDER BY id";
    all(connection, sql, [put_by.as_millis()], |row| Ok(row.get::<_, Key<BlobId>>(0)?.0))
}

fn leased(connection: &Connection, worker: Option<&str>) -> rusqlite::Result<Vec<Run>> {
    match worker {
        Some(worker) => {
            all(connection, "SELECT body FROM runs WHERE worker = ?1 ORDER BY id", [worker], row::run)
        }
        None => {
            // Left to itself SQLite would walk through every run there ever was, in the order of their ids.
            let sql = "SELECT body FROM runs INDEXED BY runs_leased WHERE worker IS NOT NULL ORDER BY id";
            all(connection, sql, [], row::run)
        }
    }
}

/// One transaction, so that the rows belong together.
fn run_view(connection: &Connection, id: RunId) -> rusqlite::Result<Option<RunView>> {
    let transaction = connection.unchecked_transaction()?;
    let Some(run) = load_run(&transaction, id)? else { return Ok(None) };
    let (Some(session), Some(task)) =
        (load_session(&transaction, &run.session)?, task(&transaction, &TaskRef::Id(run.task))?)
    else {
        return Ok(None);
    };
    let sql = "SELECT body FROM open_steps WHERE run = ?1 ORDER BY step";
    let open_steps = all(&transaction, sql, [Key(&id)], row::step)?;
    let blocker = match run.state {
        RunState::Waiting { on } => load_blocker(&transaction, &on)?,
        _ => None,
    };
    let sql = "SELECT body FROM runs WHERE session = ?1 AND place > ?2 AND ended = 0 ORDER BY place LIMIT 1";
    let next = one(&transaction, sql, params![Key(&run.session), run.order], row::run)?;
    Ok(Some(RunView {
        task: task.task,
        run,
        session,
        open_steps,
        blocker,
        next,
        last_input: task.last_input,
        consumed_input: task.consumed_input,
    }))
}
