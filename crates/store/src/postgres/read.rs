//! Answers queries, on a connection of a reader.

use ostler_kernel::{
    Entry, Event, RunId, RunState, RunTag, SessionId, TaskId, Timestamp, resource::StoredResource,
    run::RunView,
};
use tokio_postgres::types::ToSql;

use super::{
    Failed,
    connection::{Connection, Params},
    row::{self, EVENT, Id, RESOURCE, TASK, WORKER, from_json, most, number},
};
use crate::query::{
    Accepted, Answer, FirmLog, Query, ResourceFilter, SessionPlace, TROUBLED, TaskFilter, TaskPage, TaskRef,
    TaskRow, Way,
};

pub async fn read(connection: &Connection, query: &Query) -> Result<Answer, Failed> {
    Ok(match query {
        Query::Task(reference) => Answer::Task(task(connection, reference).await?),
        Query::Tasks(filter) => Answer::TaskPage(tasks(connection, filter).await?),
        Query::OldTasks { before, after, limit } => {
            Answer::Tasks(old_tasks(connection, *before, after.as_ref(), *limit).await?)
        }
        Query::NthTask { namespace, nth } => {
            let sql = "SELECT id FROM tasks WHERE namespace = $1 ORDER BY id DESC LIMIT 1 OFFSET $2";
            let params: Params<'_> = &[namespace, &most(*nth)];
            Answer::TaskId(one(connection, sql, params, |row| row::id(row, 0)).await?)
        }
        Query::RunView(run) => Answer::RunView(run_view(connection, *run).await?.map(Box::new)),
        Query::Run(run) => Answer::Run(body(connection, "runs", Id::from(run)).await?.map(Box::new)),
        Query::Steps(run) => {
            let sql = "SELECT body FROM steps WHERE run = $1 ORDER BY step";
            Answer::Steps(all(connection, sql, &[&Id::from(run)], |row| from_json(row, 0)).await?)
        }
        Query::Session(session) => {
            Answer::Session(body(connection, "sessions", Id::from(session)).await?.map(Box::new))
        }
        Query::SessionByKey { namespace, subject, key } => {
            let sql = "SELECT body FROM sessions WHERE namespace = $1 AND subject = $2 AND key = $3";
            let found = one(connection, sql, &[namespace, subject, key], |row| from_json(row, 0)).await?;
            Answer::Session(found.map(Box::new))
        }
        Query::Sessions { namespace, after, limit } => {
            let sql = "SELECT body FROM sessions WHERE key IS NOT NULL AND ($1::text IS NULL OR namespace = $1) \
                AND (namespace, subject, key) > ($2, $3, $4) ORDER BY namespace, subject, key LIMIT $5";
            let SessionPlace { namespace: space, subject, key } = after.clone().unwrap_or_default();
            let params: Params<'_> = &[namespace, &space, &subject, &key, &most(*limit)];
            Answer::Sessions(all(connection, sql, params, |row| from_json(row, 0)).await?)
        }
        Query::Entries { session, from, to } => {
            Answer::Entries(entries(connection, session, *from, *to).await?)
        }
        Query::Inputs { task, after } => {
            let sql = "SELECT body, consumed_by FROM inputs WHERE task = $1 AND number > $2 ORDER BY number";
            let after = i64::try_from(*after).unwrap_or(i64::MAX);
            Answer::Inputs(all(connection, sql, &[&Id::from(task), &after], row::input).await?)
        }
        Query::Blocker(blocker) => Answer::Blocker(body(connection, "blockers", Id::from(blocker)).await?),
        Query::Events { task, after, limit } => {
            Answer::Events(events(connection, task, *after, *limit).await?)
        }
        Query::Log { after, limit } => Answer::Events(log(connection, *after, *limit).await?.events),
        Query::FirmLog { after, limit } => {
            let Log { events, settled } = log(connection, *after, *limit).await?;
            let FirmLog { events, upto } = FirmLog::whole(events, *limit);
            Answer::FirmLog(FirmLog { events, upto: upto.min(settled.saturating_sub(1)) })
        }
        Query::Leased { worker } => Answer::Runs(leased(connection, worker.as_deref()).await?),
        Query::Workers => {
            let sql = format!("SELECT {WORKER} FROM workers ORDER BY name");
            Answer::Workers(all(connection, &sql, &[], row::worker).await?)
        }
        Query::Ready { namespace, class, most } => {
            Answer::Count(ready(connection, namespace, class.as_deref(), *most).await?)
        }
        Query::Accepted { namespace, class, since, upto, most } => {
            let between = (*since, *upto);
            Answer::Accepted(accepted(connection, namespace, class.as_deref(), between, *most).await?)
        }
        Query::Due { after, now, limit } => {
            let sql =
                "SELECT body FROM runs WHERE due <= $1 AND (due, id) > ($2, $3) ORDER BY due, id LIMIT $4";
            let params: Params<'_> =
                &[&now.as_millis(), &after.at.as_millis(), &Id::from(&after.run), &most(*limit)];
            Answer::Runs(all(connection, sql, params, |row| from_json(row, 0)).await?)
        }
        Query::NextDue => {
            let sql = "SELECT due FROM runs WHERE due IS NOT NULL ORDER BY due LIMIT 1";
            let next = one(connection, sql, &[], |row| Ok(row.try_get::<_, i64>(0)?)).await?;
            Answer::Time(next.map(Timestamp::from_millis))
        }
        Query::Resource(key) => {
            let sql =
                format!("SELECT {RESOURCE} FROM resources WHERE kind = $1 AND namespace = $2 AND name = $3");
            let params: Params<'_> = &[&key.kind, &key.namespace, &key.name];
            Answer::Resource(one(connection, &sql, params, row::resource).await?)
        }
        Query::Resources(filter) => Answer::Resources(resources(connection, filter).await?),
        Query::Namespaces => {
            Answer::Names(all(connection, NAMESPACES, &[], |row| Ok(row.try_get(0)?)).await?)
        }
        Query::Blob(blob) => {
            let sql = "SELECT bytes FROM blobs WHERE id = $1";
            let params: Params<'_> = &[&blob.as_bytes().as_slice()];
            Answer::Blob(one(connection, sql, params, |row| Ok(row.try_get(0)?)).await?)
        }
        Query::OldBlobs { put_by } => {
            let sql = "SELECT id FROM blobs WHERE put_at <= $1 ORDER BY id";
            Answer::Blobs(all(connection, sql, &[&put_by.as_millis()], row::blob_id).await?)
        }
    })
}

async fn ready(
    connection: &Connection,
    namespace: &str,
    class: Option<&str>,
    limit: usize,
) -> Result<usize, Failed> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM runs JOIN lanes ON lanes.id = runs.lane \
        WHERE rank IS NOT NULL AND namespace = $1 AND ($2::text IS NULL OR coalesce(pool, class) = $2) \
        LIMIT $3) AS ready";
    let counted = one(connection, sql, &[&namespace, &class, &most(limit)], |row| number(row, 0)).await?;
    Ok(usize::try_from(counted.unwrap_or(0)).unwrap_or(usize::MAX))
}

async fn accepted(
    connection: &Connection,
    namespace: &str,
    class: Option<&str>,
    between: (Timestamp, Timestamp),
    limit: usize,
) -> Result<Accepted, Failed> {
    let of_class = "AND id IN (SELECT task FROM runs JOIN lanes ON lanes.id = runs.lane WHERE runs.id > $2 \
        AND namespace = $1 AND coalesce(pool, class) = $4)";
    let condition = if class.is_some() { of_class } else { "AND $4::text IS NULL" };
    // There is no least of uuids; their texts sort as they do.
    let sql = format!(
        "SELECT count(*), min(id::text COLLATE \"C\")::uuid FROM (SELECT id FROM tasks WHERE namespace = $1 \
         AND id > $2 AND id <= $5 {condition} ORDER BY id DESC LIMIT $3) AS lately"
    );
    let [since, upto] =
        [between.0, between.1].map(|at| Id::from(&TaskId::from_parts(at, u64::MAX, u64::MAX)));
    let params: Params<'_> = &[&namespace, &since, &most(limit), &class, &upto];
    Ok(one(connection, &sql, params, row::accepted).await?.unwrap_or_default())
}

type Map<T> = fn(&tokio_postgres::Row) -> Result<T, Failed>;

async fn one<T>(
    connection: &Connection,
    sql: &str,
    params: Params<'_>,
    map: Map<T>,
) -> Result<Option<T>, Failed> {
    Ok(all(connection, sql, params, map).await?.pop())
}

async fn all<T>(
    connection: &Connection,
    sql: &str,
    params: Params<'_>,
    map: Map<T>,
) -> Result<Vec<T>, Failed> {
    match connection.all(sql, params).await {
        // What the database can't hold is in no row of it.
        Err(Failed::Unfit(_)) => Ok(Vec::new()),
        rows => rows?.iter().map(map).collect(),
    }
}

/// The body of the row with this id.
async fn body<T: serde::de::DeserializeOwned>(
    connection: &Connection,
    table: &str,
    id: Id,
) -> Result<Option<T>, Failed> {
    let sql = format!("SELECT body FROM {table} WHERE id = $1");
    one(connection, &sql, &[&id], |row| from_json(row, 0)).await
}

async fn task(connection: &Connection, reference: &TaskRef) -> Result<Option<TaskRow>, Failed> {
    let by = |condition: &str| format!("SELECT {TASK} FROM tasks WHERE {condition}");
    match reference {
        TaskRef::Id(id) => one(connection, &by("id = $1"), &[&Id::from(id)], row::task).await,
        TaskRef::Name { namespace, name } => {
            one(connection, &by("namespace = $1 AND name = $2"), &[namespace, name], row::task).await
        }
        TaskRef::Key { namespace, key } => {
            one(connection, &by("namespace = $1 AND key = $2"), &[namespace, key], row::task).await
        }
    }
}

/// Rows that are looked at one by one come in so many at a time.
const AT_ONCE: usize = 1000;

async fn tasks(connection: &Connection, filter: &TaskFilter) -> Result<TaskPage, Failed> {
    if !filter.is_selective() {
        return Ok(TaskPage { rows: next_tasks(connection, filter).await?, stopped_at: None });
    }
    of_one_moment(connection, selected_tasks(connection, filter)).await
}

async fn selected_tasks(connection: &Connection, filter: &TaskFilter) -> Result<TaskPage, Failed> {
    let mut rest = TaskFilter { limit: AT_ONCE, ..filter.clone() };
    let (mut page, mut left) = (TaskPage::default(), filter.look_at.unwrap_or(usize::MAX));
    loop {
        let rows = next_tasks(connection, &rest).await?;
        let (count, last) = (rows.len(), rows.last().map(|row| row.task.id));
        let room = filter.limit - page.rows.len();
        let part = TaskFilter { limit: room, look_at: Some(left), ..filter.clone() };
        let TaskPage { rows, stopped_at } = TaskPage::of(&part, rows.into_iter().map(Ok::<_, Failed>))?;
        page.rows.extend(rows);
        // The bound may have been reached with the last one of those before.
        page.stopped_at = stopped_at.or(rest.before.filter(|_| left == 0 && count > 0 && room > 0));
        if page.rows.len() >= filter.limit || page.stopped_at.is_some() || count < AT_ONCE {
            return Ok(page);
        }
        (rest.before, left) = (last, left.saturating_sub(count));
    }
}

async fn next_tasks(connection: &Connection, filter: &TaskFilter) -> Result<Vec<TaskRow>, Failed> {
    let (way, limit) = (filter.way(), most(filter.limit));
    let mut sql = match way {
        Way::Live => format!(
            "WITH live AS MATERIALIZED (SELECT task FROM runs WHERE NOT ended) \
             SELECT {TASK} FROM live JOIN tasks ON tasks.id = live.task WHERE true"
        ),
        Way::Troubled => format!("SELECT {TASK} FROM tasks WHERE {TROUBLED}"),
        Way::Newest => format!("SELECT {TASK} FROM tasks WHERE true"),
    };
    let before = Id(filter.before.map_or([0xff; 16], |task| *task.as_bytes()));
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&before];
    let mut add = |sql: &mut String, text: &str, value| {
        params.push(value);
        sql.push_str(&text.replace('?', &format!("${}", params.len())));
    };
    let mut order = "id DESC";
    match &filter.namespace {
        // An equation would leave the database free to walk through all ids instead: few namespaces look like one.
        Some(namespace) if way == Way::Newest => {
            add(&mut sql, " AND namespace >= ? AND (namespace, id) < (?, $1)", namespace);
            order = "namespace DESC, id DESC";
        }
        // Found otherwise; the index of namespaces would be a detour.
        Some(namespace) => add(&mut sql, " AND id < $1 AND (namespace || '') = ?", namespace),
        None => sql.push_str(" AND id < $1"),
    }
    if !filter.archived {
        sql.push_str(" AND archived_at IS NULL");
    }
    if !filter.states.is_empty() {
        add(&mut sql, " AND state = ANY(?)", &filter.states);
    }
    add(&mut sql, &format!(" ORDER BY {order} LIMIT ?"), &limit);
    all(connection, &sql, &params, row::task).await
}

async fn old_tasks(
    connection: &Connection,
    before: Timestamp,
    after: Option<&TaskId>,
    limit: usize,
) -> Result<Vec<TaskRow>, Failed> {
    let sql = format!("SELECT {TASK} FROM tasks WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3");
    let (first, end) = (TaskId::from_bytes([0; 16]), TaskId::from_parts(before, 0, 0));
    let after = Id::from(after.unwrap_or(&first));
    all(connection, &sql, &[&after, &Id::from(&end), &most(limit)], row::task).await
}

async fn entries(
    connection: &Connection,
    session: &SessionId,
    from: u64,
    to: Option<u64>,
) -> Result<Vec<(u64, Entry)>, Failed> {
    let sql = "SELECT seq, body FROM entries WHERE session = $1 AND seq >= $2 AND seq < $3 ORDER BY seq";
    let bound = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let to = to.map_or(i64::MAX, bound);
    let params: Params<'_> = &[&Id::from(session), &bound(from), &to];
    all(connection, sql, params, |row| Ok((number(row, 0)?, from_json(row, 1)?))).await
}

async fn events(
    connection: &Connection,
    task: &TaskId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, Failed> {
    let sql = format!("SELECT {EVENT} FROM events WHERE task = $1 AND seq > $2 ORDER BY seq LIMIT $3");
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    all(connection, &sql, &[&Id::from(task), &after, &most(limit)], row::event).await
}

/// A part of the log of all.
pub struct Log {
    pub events: Vec<Event>,
    /// The position below which it is as it will stay.
    pub settled: u64,
}

/// Only what nothing can come before any more: a transaction that began earlier and is still under way has
/// smaller positions.
pub async fn log(connection: &Connection, after: u64, limit: usize) -> Result<Log, Failed> {
    let sql = format!(
        "SELECT {EVENT}, settled FROM \
         (SELECT (base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint) << 16 AS settled FROM origin) AS bound \
         LEFT JOIN LATERAL (SELECT * FROM events WHERE position > $1 AND position < settled \
         ORDER BY position LIMIT $2) AS log ON true ORDER BY position"
    );
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = connection.all(&sql, &[&after, &most(limit)]).await?;
    let settled = rows.first().map_or(Ok(0), |row| number(row, 5))?;
    // Where there are no events, one row tells the bound.
    let is_event = |row: &&tokio_postgres::Row| !matches!(row.try_get::<_, Option<i64>>(0), Ok(None));
    let events = rows.iter().filter(is_event).map(row::event).collect::<Result<_, _>>()?;
    Ok(Log { events, settled })
}

/// The position below which the log is as it will stay.
pub async fn settled(connection: &Connection) -> Result<u64, Failed> {
    let sql = "SELECT (base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint) << 16 FROM origin";
    let row = connection.one(sql, &[]).await?;
    row.as_ref().map_or(Ok(0), |row| number(row, 0))
}

async fn leased(connection: &Connection, worker: Option<&str>) -> Result<Vec<ostler_kernel::Run>, Failed> {
    match worker {
        Some(worker) => {
            let sql = "SELECT body FROM runs WHERE worker = $1 ORDER BY id";
            all(connection, sql, &[&worker], |row| from_json(row, 0)).await
        }
        None => {
            let sql = "SELECT body FROM runs WHERE worker IS NOT NULL ORDER BY worker, id";
            let mut runs: Vec<ostler_kernel::Run> =
                all(connection, sql, &[], |row| from_json(row, 0)).await?;
            runs.sort_by_key(|run| run.id);
            Ok(runs)
        }
    }
}

/// From one namespace to the next, however many tasks live in each.
const NAMESPACES: &str = "WITH RECURSIVE spaces (space) AS (SELECT min(namespace) FROM tasks UNION ALL \
    SELECT (SELECT min(namespace) FROM tasks WHERE namespace > space) FROM spaces WHERE space IS NOT NULL) \
    SELECT space FROM spaces WHERE space IS NOT NULL UNION SELECT namespace FROM resources ORDER BY 1";

async fn resources(connection: &Connection, filter: &ResourceFilter) -> Result<Vec<StoredResource>, Failed> {
    if filter.labels.is_empty() {
        return next_resources(connection, filter).await;
    }
    of_one_moment(connection, selected_resources(connection, filter)).await
}

async fn selected_resources(
    connection: &Connection,
    filter: &ResourceFilter,
) -> Result<Vec<StoredResource>, Failed> {
    let mut rest = ResourceFilter { limit: AT_ONCE, ..filter.clone() };
    let mut found = Vec::new();
    while found.len() < filter.limit {
        let rows = next_resources(connection, &rest).await?;
        let is_last = rows.len() < AT_ONCE;
        rest.after = rows.last().map(|last| (last.key.namespace.clone(), last.key.name.clone()));
        let room = filter.limit - found.len();
        found.extend(rows.into_iter().filter(|row| filter.labels.matches(&row.labels())).take(room));
        if is_last {
            break;
        }
    }
    Ok(found)
}

async fn next_resources(
    connection: &Connection,
    filter: &ResourceFilter,
) -> Result<Vec<StoredResource>, Failed> {
    let ResourceFilter { kind, namespace, after, limit, .. } = filter;
    let sql = format!(
        "SELECT {RESOURCE} FROM resources WHERE kind = $1 AND ($2::text IS NULL OR namespace = $2) \
         AND (namespace, name) > ($3, $4) ORDER BY namespace, name LIMIT $5"
    );
    let (space, name) = after.clone().unwrap_or_default();
    all(connection, &sql, &[kind, namespace, &space, &name, &most(*limit)], row::resource).await
}

/// Several questions, answered from one moment.
async fn of_one_moment<T>(
    connection: &Connection,
    asking: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    connection.client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let answer = asking.await;
    connection.client.batch_execute("COMMIT").await?;
    answer
}

const VIEW: &str = "SELECT request, tasks.body, runs.body, sessions.body, last_input, consumed_input, \
        ARRAY(SELECT body FROM steps WHERE run = runs.id AND open ORDER BY step), \
        (SELECT body FROM runs AS next WHERE next.session = runs.session AND next.place > runs.place \
            AND NOT next.ended ORDER BY next.place LIMIT 1) \
    FROM runs JOIN sessions ON sessions.id = runs.session JOIN tasks ON tasks.id = runs.task WHERE runs.id = $1";

/// Of one moment: of one statement, or where a blocker belongs to it, of one transaction.
async fn run_view(connection: &Connection, id: RunId) -> Result<Option<RunView>, Failed> {
    match view(connection, id).await? {
        Some(RunView { run, .. }) if run.tag() == RunTag::Waiting => waiting_view(connection, id).await,
        view => Ok(view),
    }
}

async fn waiting_view(connection: &Connection, id: RunId) -> Result<Option<RunView>, Failed> {
    let with_blocker = async {
        let mut view = view(connection, id).await?;
        if let Some(view) = &mut view
            && let RunState::Waiting { on } = &view.run.state
        {
            view.blocker = body(connection, "blockers", Id::from(on)).await?;
        }
        Ok(view)
    };
    of_one_moment(connection, with_blocker).await
}

/// All but the blocker, whose id is inside the run.
async fn view(connection: &Connection, id: RunId) -> Result<Option<RunView>, Failed> {
    one(connection, VIEW, &[&Id::from(&id)], |row| {
        let open_steps: Vec<&str> = row.try_get(6)?;
        let next: Option<&str> = row.try_get(7)?;
        Ok(RunView {
            task: row::task_alone(row)?,
            run: from_json(row, 2)?,
            session: from_json(row, 3)?,
            open_steps: open_steps.into_iter().map(row::parse).collect::<Result<_, _>>()?,
            blocker: None,
            next: next.map(row::parse).transpose()?,
            last_input: number(row, 4)?,
            consumed_input: number(row, 5)?,
        })
    })
    .await
}

pub struct LogEnd {
    /// Of the last event.
    pub position: u64,
    /// Above every position that was ever committed here.
    pub bound: u64,
}

pub async fn log_end(connection: &Connection) -> Result<LogEnd, Failed> {
    let sql = "SELECT (SELECT coalesce(max(position), 0) FROM events), \
        (base + pg_snapshot_xmax(pg_current_snapshot())::text::bigint) << 16 FROM origin";
    let row = connection.one(sql, &[]).await?;
    let row = row.ok_or_else(|| Failed::Body("the store does not know where its positions begin".into()))?;
    Ok(LogEnd { position: number(&row, 0)?, bound: number(&row, 1)? })
}
