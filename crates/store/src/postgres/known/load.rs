//! Locks and reads what a batch names. Each row that is found begins with what it is.

use std::collections::BTreeSet;

use ostler_kernel::{
    Bundle, RunId, RunTag,
    bundle::{InputsAt, RunAt},
    resource::{self, ResourceKey},
};

use super::{Known, named::Named};
use crate::postgres::{
    Failed,
    along::{Along, Asked},
    connection::Connection,
    row::Id,
    statement::{Call, Found, Script, Value},
};

/// Where nothing is, nothing can be locked. So what is expected not to be there is held by a lock of its name until the
/// commit: whoever makes it expects the same, and waits. First of all, always in the order of numbers.
const ABSENT: &str = "SELECT 'absent', pg_advisory_xact_lock(name)::text FROM unnest($1::bigint[]) AS name";
const WORKERS: &str =
    "SELECT 'worker', name, incarnation, counter FROM workers WHERE name = ANY($1) ORDER BY name FOR UPDATE";
/// One after the other, each in the order of its keys: what comes first in the result is locked first.
const ROWS: &str = "WITH r AS (SELECT id, state, epoch, journal, write_epoch, write_number FROM runs \
        WHERE id = ANY($1) ORDER BY id FOR UPDATE), \
    s AS (SELECT id, version FROM sessions WHERE id = ANY($2) ORDER BY id FOR UPDATE), \
    t AS (SELECT id, last_input, consumed_input FROM tasks WHERE id = ANY($3) ORDER BY id FOR NO KEY UPDATE) \
    SELECT 'run', id, epoch, journal, state, write_epoch, write_number FROM r \
    UNION ALL SELECT 'session', id, version, 0, NULL, NULL, NULL FROM s \
    UNION ALL SELECT 'task', id, last_input, consumed_input, NULL, NULL, NULL FROM t";
const RESOURCES: &str = "SELECT 'resource', kind, namespace, name, version FROM resources WHERE (kind, namespace, name) IN \
    (SELECT * FROM unnest($1::text[], $2::text[], $3::text[])) ORDER BY kind, namespace, name FOR UPDATE";
const NAMES: &str = "SELECT 'name', namespace, name FROM tasks WHERE (namespace, name) IN \
    (SELECT * FROM unnest($1::text[], $2::text[]))";
const KEYS: &str = "SELECT 'key', namespace, key FROM tasks WHERE (namespace, key) IN \
    (SELECT * FROM unnest($1::text[], $2::text[]))";
const SESSION_KEYS: &str = "SELECT 'session key', namespace, subject, key FROM sessions WHERE (namespace, subject, key) IN \
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

const EVENTS_OF_RUNS: &str = "SELECT 'events', runs.task, coalesce(seq, 0), coalesce(position, 0) FROM runs \
        LEFT JOIN LATERAL \
        (SELECT seq, position FROM events WHERE events.task = runs.task ORDER BY seq DESC LIMIT 1) AS last ON true \
        WHERE id = ANY($1) \
    UNION ALL SELECT 'position', NULL, (base + pg_current_xact_id()::text::bigint) << 16, 0 FROM origin";

pub const ALL: [&str; 9] =
    [ABSENT, WORKERS, ROWS, RESOURCES, NAMES, KEYS, SESSION_KEYS, ENDS, EVENTS_OF_RUNS];

impl Known {
    /// Begins a transaction, locks and reads what the bundles name, and tells where the transaction's events begin, and
    /// what the claims that came with them are judged on. Always table by table in this order, and inside a table in the
    /// order of keys: two batches that meet wait for each other in one direction only. Where what is appended ends is
    /// read behind the locks of those who append, by a statement of its own: one that had to wait still sees what there
    /// was when it began.
    pub async fn begin<'a>(
        connection: &Connection,
        bundles: impl IntoIterator<Item = &'a Bundle>,
        along: Along<'_>,
    ) -> Result<(Self, u64, Asked), Failed> {
        let mut named = Named::default();
        bundles.into_iter().for_each(|bundle| named.in_bundle(bundle));
        let mut script = Script::on(connection);
        script.say("BEGIN");
        let first = absent_in(&named).into_iter().chain(workers_of(&named)).chain(along.claimants());
        for call in first.chain(rows_of(&named)).chain(along.questions()) {
            script.call(&call)?;
        }
        let found = script.run().await?;
        let (known, position) = Self::of(&found)?;
        let asked = if along.claims.is_empty() { Asked::default() } else { Asked::of(&found)? };
        Ok((known, position, asked))
    }

    /// The same for one bundle, each statement by itself: that can say whatever there is to be said.
    pub async fn begin_apart(connection: &Connection, bundle: &Bundle) -> Result<(Self, u64), Failed> {
        let mut named = Named::default();
        named.in_bundle(bundle);
        connection.client.batch_execute("BEGIN").await?;
        let mut found = Vec::new();
        for call in absent_in(&named).into_iter().chain(workers_of(&named)).chain(rows_of(&named)) {
            found.extend(call.read(connection).await?);
        }
        Self::of(&found)
    }

    /// With the position at which the transaction's events begin.
    pub fn of(rows: &[Found]) -> Result<(Self, u64), Failed> {
        let (mut known, mut position) = (Self::default(), 0);
        for row in rows {
            match row.text(0)? {
                "position" => position = row.number(2)?,
                kind => known.add(kind, row)?,
            }
        }
        Ok((known, position))
    }

    fn add(&mut self, kind: &str, row: &Found) -> Result<(), Failed> {
        let text = |column: usize| row.text(column).map(str::to_owned);
        match kind {
            "worker" => drop(self.workers.insert(text(1)?, (row.number(2)?, row.number(3)?))),
            "run" => drop(self.runs.insert(row.id(1)?, run_at(row)?)),
            "session" => drop(self.sessions.insert(row.id(1)?, row.number(2)?)),
            "task" => {
                let inputs = InputsAt { last: row.number(2)?, taken: row.number(3)? };
                self.inputs.insert(row.id(1)?, inputs);
            }
            "resource" => {
                let (kind, namespace, name) = (text(1)?, text(2)?, text(3)?);
                self.resources.insert(ResourceKey { kind, namespace, name }, row.number(4)?);
            }
            "name" => drop(self.names.insert((text(1)?, text(2)?))),
            "key" => drop(self.keys.insert((text(1)?, text(2)?))),
            "session key" => drop(self.session_keys.insert((text(1)?, text(2)?, text(3)?))),
            "entries" => drop(self.entries.insert(row.id(1)?, row.number(2)?)),
            "steps" => drop(self.steps.insert(row.id(1)?, row.number(2)?)),
            "open" => {
                let step = u32::try_from(row.number(2)?).unwrap_or(u32::MAX);
                self.open_steps.insert((row.id(1)?, step));
            }
            "events" => drop(self.events.insert(row.id(1)?, (row.number(2)?, row.number(3)?))),
            // For claims; and locks.
            "absent" | "claimant" | "held" | "ready" => {}
            other => return Err(Failed::Body(format!("a row is {other:?}"))),
        }
        Ok(())
    }
}

/// Only what it takes to number events of these runs' tasks, which are locked already.
pub fn logs_of(runs: &[RunId]) -> Call<'static> {
    Call::new(EVENTS_OF_RUNS, [Value::Ids(runs.iter().map(Id::from).collect())])
}

fn run_at(row: &Found) -> Result<RunAt, Failed> {
    let state = row.text(4)?;
    let state = RunTag::from_name(state).ok_or_else(|| Failed::Body(format!("a run is {state:?}")))?;
    let last_write = row.optional_number(5)?.zip(row.optional_number(6)?);
    Ok(RunAt { state, epoch: row.number(2)?, journal: row.number(3)?, last_write })
}

fn absent_in(named: &Named) -> Option<Call<'_>> {
    let names: BTreeSet<i64> = named.absent.iter().map(lock_of).collect();
    (!names.is_empty()).then(|| Call::new(ABSENT, [Value::Numbers(names.into_iter().collect())]))
}

/// Two names may share one: then one waits for the other, for nothing.
fn lock_of(key: &ResourceKey) -> i64 {
    let log = resource::log_of(key, 0);
    let mut number = [0; 8];
    number.copy_from_slice(&log.as_bytes()[8..]);
    i64::from_be_bytes(number)
}

fn workers_of(named: &Named) -> Option<Call<'_>> {
    (!named.workers.is_empty()).then(|| Call::new(WORKERS, [texts(&named.workers, |name| name)]))
}

/// Nothing is asked where there is nothing to ask for. That names and keys which are free stay so is seen to by the unique
/// indexes: nothing can be locked where nothing is.
fn rows_of(named: &Named) -> Vec<Call<'_>> {
    let mut calls = Vec::new();
    if !(named.runs.is_empty() && named.sessions.is_empty() && named.tasks.is_empty()) {
        calls.push(Call::new(ROWS, [ids(&named.runs), ids(&named.sessions), ids(&named.tasks)]));
    }
    if !named.resources.is_empty() {
        let column = |part: fn(&ResourceKey) -> &String| texts(&named.resources, part);
        let columns = [column(|key| &key.kind), column(|key| &key.namespace), column(|key| &key.name)];
        calls.push(Call::new(RESOURCES, columns));
    }
    for (sql, pairs) in [(NAMES, &named.names), (KEYS, &named.keys)] {
        if !pairs.is_empty() {
            calls.push(Call::new(sql, [texts(pairs, |pair| &pair.0), texts(pairs, |pair| &pair.1)]));
        }
    }
    if !named.session_keys.is_empty() {
        let column = |part: fn(&(String, String, String)) -> &String| texts(&named.session_keys, part);
        let columns = [column(|key| &key.0), column(|key| &key.1), column(|key| &key.2)];
        calls.push(Call::new(SESSION_KEYS, columns));
    }
    calls.push(Call::new(ENDS, [ids(&named.entries), ids(&named.steps), ids(&named.events)]));
    calls
}

fn ids<'a, T>(ids: &'a BTreeSet<T>) -> Value<'a>
where
    Id: From<&'a T>,
{
    Value::Ids(ids.iter().map(Id::from).collect())
}

fn texts<'a, T>(keys: &'a BTreeSet<T>, part: impl Fn(&'a T) -> &'a String) -> Value<'a> {
    Value::Texts(keys.iter().map(|key| part(key).as_str()).collect())
}
