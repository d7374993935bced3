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
const EVENTS: &str = "SELECT owner, coalesce(seq, 0), coalesce(position, 0) FROM unnest($1::uuid[]) AS owner \
    LEFT JOIN LATERAL (SELECT seq, position FROM events WHERE task = owner ORDER BY seq DESC LIMIT 1) AS last ON true";

const EVENTS_OF_RUNS: &str = "SELECT runs.task, coalesce(seq, 0), coalesce(position, 0) FROM runs LEFT JOIN LATERAL \
    (SELECT seq, position FROM events WHERE events.task = runs.task ORDER BY seq DESC LIMIT 1) AS last ON true \
    WHERE id = ANY($1)";

const ALL: [&str; 13] = [
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
    EVENTS_OF_RUNS,
];

/// Makes a connection ready to load: a statement that had to be prepared first would be late.
pub async fn prepare(connection: &Connection) -> Result<(), Failed> {
    connection.prepare_all(&ALL).await
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
        self.add_events(ends.events)
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
