//! Locks and reads what a batch names.

use std::collections::BTreeSet;

use ostler_kernel::{
    Bundle, RunId, RunTag,
    bundle::{InputsAt, RunAt},
    resource::ResourceKey,
};
use tokio_postgres::Row;

use super::{Known, named::Named};
use crate::postgres::{
    Failed,
    connection::Connection,
    row::{Id, id, number, optional_number},
};

const WORKERS: &str =
    "SELECT name, incarnation, counter FROM workers WHERE name = ANY($1) ORDER BY name FOR UPDATE";
/// One after the other, each in the order of its keys: what comes first in the result is locked first.
const ROWS: &str = "WITH r AS (SELECT id, state, epoch, journal, write_epoch, write_number FROM runs \
        WHERE id = ANY($1) ORDER BY id FOR UPDATE), \
    s AS (SELECT id, version FROM sessions WHERE id = ANY($2) ORDER BY id FOR UPDATE), \
    t AS (SELECT id, last_input, consumed_input FROM tasks WHERE id = ANY($3) ORDER BY id FOR NO KEY UPDATE) \
    SELECT 'run', id, epoch, journal, state, write_epoch, write_number FROM r \
    UNION ALL SELECT 'session', id, version, 0, NULL, NULL, NULL FROM s \
    UNION ALL SELECT 'task', id, last_input, consumed_input, NULL, NULL, NULL FROM t";
const RESOURCES: &str = "SELECT kind, namespace, name, version FROM resources WHERE (kind, namespace, name) IN \
    (SELECT * FROM unnest($1::text[], $2::text[], $3::text[])) ORDER BY kind, namespace, name FOR UPDATE";
const NAMES: &str = "SELECT namespace, name FROM tasks WHERE (namespace, name) IN \
    (SELECT * FROM unnest($1::text[], $2::text[]))";
const KEYS: &str = "SELECT namespace, key FROM tasks WHERE (namespace, key) IN \
    (SELECT * FROM unnest($1::text[], $2::text[]))";
const SESSION_KEYS: &str = "SELECT namespace, subject, key FROM sessions WHERE (namespace, subject, key) IN \
    (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))";
/// How many entries a session has, how many steps of a run were opened, which are open, how many events a task has and
/// where the last one stands; and where this transaction's events begin.
const ENDS: &str = "SELECT 'entries', owner, (SELECT coalesce(max(seq) + 1, 0) FROM entries WHERE session = owner), 0::bigint \
        FROM unnest($1::uuid[]) AS owner \
    UNION ALL SELECT 'steps', owner, (SELECT coalesce(max(step) + 1, 0) FROM steps WHERE run = owner), 0 \
        FROM unnest($2::uuid[]) AS owner \
    UNION ALL SELECT 'open', run, step, 0 FROM steps WHERE run = ANY($2) AND open \
    UNION ALL SELECT 'events', owner, coalesce(seq, 0), coalesce(position, 0) FROM unnest($3::uuid[]) AS owner \
        LEFT JOIN LATERAL (SELECT seq, position FROM events WHERE task = owner ORDER BY seq DESC LIMIT 1) AS last ON true \
    UNION ALL SELECT 'position', NULL, (base + pg_current_xact_id()::text::bigint) << 16, 0 FROM origin";

const EVENTS_OF_RUNS: &str = "SELECT runs.task, coalesce(seq, 0), coalesce(position, 0) FROM runs LEFT JOIN LATERAL \
    (SELECT seq, position FROM events WHERE events.task = runs.task ORDER BY seq DESC LIMIT 1) AS last ON true \
    WHERE id = ANY($1)";

const ALL: [&str; 8] = [WORKERS, ROWS, RESOURCES, NAMES, KEYS, SESSION_KEYS, ENDS, EVENTS_OF_RUNS];

/// Makes a connection ready to load: a statement that had to be prepared first would be late.
pub async fn prepare(connection: &Connection) -> Result<(), Failed> {
    connection.prepare_all(&ALL).await
}

impl Known {
    /// Locks and reads what the bundles name, and tells where the transaction's events begin. Always table by table in
    /// this order, and inside a table in the order of keys: two batches that meet wait for each other in one direction
    /// only. Where what is appended ends is read behind the locks of those who append, by a statement of its own: one
    /// that had to wait still sees what there was when it began. All is sent at once, and carried out in order.
    pub async fn load<'a>(
        connection: &Connection,
        bundles: impl IntoIterator<Item = &'a Bundle>,
    ) -> Result<(Self, u64), Failed> {
        let mut named = Named::default();
        bundles.into_iter().for_each(|bundle| named.in_bundle(bundle));
        let mut known = Self::default();
        let (workers, rows, resources, taken, ends) = tokio::join!(
            biased;
            by_text(connection, WORKERS, &named.workers),
            rows(connection, &named),
            by_resource(connection, &named.resources),
            Taken::load(connection, &named),
            ends(connection, &named),
        );
        known.add_workers(workers?)?;
        known.add_rows(rows?)?;
        known.add_resources(resources?)?;
        known.add_taken(taken?)?;
        let position = known.add_ends(ends?)?;
        Ok((known, position))
    }

    /// Only what it takes to number events of these runs' tasks, which are locked already.
    pub async fn logs_of(connection: &Connection, runs: &[RunId]) -> Result<Self, Failed> {
        let mut known = Self::default();
        let runs = runs.iter().copied().collect();
        known.add_events(by_id(connection, EVENTS_OF_RUNS, &runs).await?)?;
        Ok(known)
    }

    fn add_workers(&mut self, rows: Vec<Row>) -> Result<(), Failed> {
        for row in rows {
            self.workers.insert(row.try_get(0)?, (number(&row, 1)?, number(&row, 2)?));
        }
        Ok(())
    }

    fn add_rows(&mut self, rows: Vec<Row>) -> Result<(), Failed> {
        for row in &rows {
            let (first, second) = (number(row, 2)?, number(row, 3)?);
            match row.try_get(0)? {
                "run" => drop(self.runs.insert(id(row, 1)?, run_at(row)?)),
                "session" => drop(self.sessions.insert(id(row, 1)?, first)),
                _ => drop(self.inputs.insert(id(row, 1)?, InputsAt { last: first, taken: second })),
            }
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

    /// Gives the position.
    fn add_ends(&mut self, rows: Vec<Row>) -> Result<u64, Failed> {
        let mut position = 0;
        for row in &rows {
            let end = number(row, 2)?;
            match row.try_get(0)? {
                "entries" => drop(self.entries.insert(id(row, 1)?, end)),
                "steps" => drop(self.steps.insert(id(row, 1)?, end)),
                "open" => drop(self.open_steps.insert((id(row, 1)?, u32::try_from(end).unwrap_or(u32::MAX)))),
                "events" => drop(self.events.insert(id(row, 1)?, (end, number(row, 3)?))),
                _ => position = end,
            }
        }
        Ok(position)
    }

    fn add_events(&mut self, rows: Vec<Row>) -> Result<(), Failed> {
        for row in rows {
            self.events.insert(id(&row, 0)?, (number(&row, 1)?, number(&row, 2)?));
        }
        Ok(())
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

fn run_at(row: &Row) -> Result<RunAt, Failed> {
    let state: &str = row.try_get(4)?;
    let state = RunTag::from_name(state).ok_or_else(|| Failed::Body(format!("a run is {state:?}")))?;
    let last_write = optional_number(row, 5)?.zip(optional_number(row, 6)?);
    Ok(RunAt { state, epoch: number(row, 2)?, journal: number(row, 3)?, last_write })
}

async fn rows(connection: &Connection, named: &Named) -> Result<Vec<Row>, Failed> {
    if named.runs.is_empty() && named.sessions.is_empty() && named.tasks.is_empty() {
        return Ok(Vec::new());
    }
    let (runs, sessions, tasks) = (ids(&named.runs), ids(&named.sessions), ids(&named.tasks));
    connection.all(ROWS, &[&runs, &sessions, &tasks]).await
}

async fn ends(connection: &Connection, named: &Named) -> Result<Vec<Row>, Failed> {
    let (entries, steps, events) = (ids(&named.entries), ids(&named.steps), ids(&named.events));
    connection.all(ENDS, &[&entries, &steps, &events]).await
}

fn ids<'a, T>(ids: &'a BTreeSet<T>) -> Vec<Id>
where
    Id: From<&'a T>,
{
    ids.iter().map(Id::from).collect()
}

// The rows of these keys; nothing is asked where there are none.

async fn by_id<'a, T>(connection: &Connection, sql: &str, ids: &'a BTreeSet<T>) -> Result<Vec<Row>, Failed>
where
    Id: From<&'a T>,
{
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    connection.all(sql, &[&self::ids(ids)]).await
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
