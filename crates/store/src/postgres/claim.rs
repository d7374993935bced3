//! Gives ready runs to a worker, in a transaction of its own. What needs no earlier answer is asked for at once.

use std::collections::BTreeMap;

use ostler_kernel::{Lease, RunId, RunTag, queue, run::claim::claim};
use tokio_postgres::Row;

use super::{
    Failed,
    apply::{self, apply},
    connection::{Connection, Params},
    known::Known,
    row::{self, Id, from_json, id, most, number, signed},
    writer::{Counted, place_events},
};
use crate::{
    Claim, Claimed, Hint, body,
    planted::Bug,
    turns::{Claims, Turns},
};

/// Locked, so that claims of one worker go one after the other.
const WORKER: &str = "SELECT incarnation, claims FROM workers WHERE name = $1 FOR UPDATE";

/// What this very claim was given before, if its answer was lost.
const HELD: &str =
    "SELECT id FROM runs WHERE worker = $1 AND incarnation = $2 AND claim = $3 AND state = $4 ORDER BY id";

/// Lanes in which something is ready, and whether they have a limit. Steps from lane to lane in the index of what is
/// ready.
const LANES: &str = "WITH RECURSIVE ready AS (\
        (SELECT lane FROM runs WHERE rank IS NOT NULL ORDER BY lane LIMIT 1) \
        UNION ALL \
        SELECT (SELECT lane FROM runs WHERE rank IS NOT NULL AND lane > ready.lane ORDER BY lane LIMIT 1) \
        FROM ready WHERE ready.lane IS NOT NULL) \
    SELECT lanes.id, slots IS NOT NULL FROM ready JOIN lanes ON lanes.id = ready.lane";

const LOCK_LANES: &str = "SELECT 1 FROM lanes WHERE id = ANY($1) ORDER BY id FOR UPDATE";

/// The first runs of each lane, as many as were asked for and a limited one has room for, locked, and without those that
/// others are at. Room is counted from the leases themselves.
const READY: &str = "SELECT namespace, first.id, rank FROM lanes CROSS JOIN LATERAL (\
        SELECT id, rank FROM runs WHERE lane = lanes.id AND rank IS NOT NULL ORDER BY rank, id \
        LIMIT CASE WHEN lanes.id <> ALL($2) THEN $3 ELSE greatest(0, least($3, slots - \
            (SELECT count(*) FROM runs WHERE lane = lanes.id AND worker IS NOT NULL))) END \
        FOR UPDATE SKIP LOCKED) AS first \
    WHERE lanes.id = ANY($1)";

const REMEMBER: &str = "UPDATE workers SET claims = $2 WHERE name = $1";

const ROWS: &str = "SELECT request, tasks.body, runs.body, sessions.body \
    FROM runs JOIN tasks ON tasks.id = runs.task JOIN sessions ON sessions.id = runs.session \
    WHERE runs.id = ANY($1) ORDER BY tasks.id FOR NO KEY UPDATE OF tasks";

/// Makes a connection ready to claim: a statement that had to be prepared first would be late.
pub async fn prepare(connection: &Connection) -> Result<(), Failed> {
    connection.prepare_all(&[WORKER, HELD, LANES, LOCK_LANES, READY, REMEMBER, ROWS]).await
}

/// Inside a transaction that begins here, and that the caller ends.
pub async fn claim_runs(
    connection: &Connection,
    request: &Claim,
    turns: &mut Turns,
) -> Result<(Vec<Claimed>, Hint), Failed> {
    let lease = &request.lease;
    let (begun, worker, held, lanes) = tokio::join!(
        biased;
        connection.client.batch_execute("BEGIN"),
        known_claims(connection, lease),
        held(connection, lease),
        connection.all(LANES, &[]),
    );
    begun?;
    let (worker, held, lanes) = (worker?, held?, Lanes::of(&lanes?)?);
    if !worker.is_some_and(|known| turns.admit(lease, &known, connection.planted)) {
        return Ok(Default::default());
    }
    if !held.is_empty() && !connection.planted.is(Bug::LostClaimServedAnew) {
        return Ok((load(connection, &held).await?, Hint::default()));
    }
    let candidates = candidates(connection, request, &lanes).await?;
    let chosen = queue::choose(candidates, request.slots, &mut turns.served);
    if chosen.is_empty() {
        return Ok(Default::default());
    }
    give(connection, &chosen, request).await
}

async fn known_claims(connection: &Connection, lease: &Lease) -> Result<Option<Claims>, Failed> {
    let row = connection.one(WORKER, &[&lease.worker]).await?;
    row.map(|row| Ok(Claims { incarnation: number(&row, 0)?, last: number(&row, 1)? })).transpose()
}

async fn held(connection: &Connection, lease: &Lease) -> Result<Vec<RunId>, Failed> {
    let (incarnation, claim) = (signed(lease.incarnation), signed(lease.claim));
    let state = RunTag::Running.name();
    let rows = connection.all(HELD, &[&lease.worker, &incarnation, &claim, &state]).await?;
    rows.iter().map(|row| id(row, 0)).collect()
}

/// In which something is ready.
#[derive(Default)]
struct Lanes {
    all: Vec<i64>,
    limited: Vec<i64>,
}

impl Lanes {
    fn of(rows: &[Row]) -> Result<Self, Failed> {
        let mut lanes = Self::default();
        for row in rows {
            let (lane, is_limited) = (row.try_get(0)?, row.try_get(1)?);
            lanes.all.push(lane);
            lanes.limited.extend(Some(lane).filter(|_| is_limited));
        }
        Ok(lanes)
    }
}

/// Leases are counted behind the locks of their lanes, by a statement of its own: otherwise two claims would both see
/// the last place.
async fn candidates(
    connection: &Connection,
    request: &Claim,
    lanes: &Lanes,
) -> Result<Vec<queue::Candidate>, Failed> {
    let slots = most(request.slots);
    let asked: Params<'_> = &[&lanes.all, &lanes.limited, &slots];
    let (locked, ready) = tokio::join!(
        biased;
        lock_lanes(connection, &lanes.limited),
        connection.all(READY, asked),
    );
    locked?;
    let candidate = |row: &Row| {
        Ok(queue::Candidate { namespace: row.try_get(0)?, run: id(row, 1)?, rank: row.try_get(2)? })
    };
    ready?.iter().map(candidate).collect()
}

async fn lock_lanes(connection: &Connection, limited: &Vec<i64>) -> Result<(), Failed> {
    if limited.is_empty() {
        return Ok(());
    }
    connection.execute(LOCK_LANES, &[limited]).await.map(drop)
}

async fn give(
    connection: &Connection,
    chosen: &[RunId],
    request: &Claim,
) -> Result<(Vec<Claimed>, Hint), Failed> {
    let claim_number = signed(request.lease.claim);
    let last_claim: Params<'_> = &[&request.lease.worker, &claim_number];
    let (remembered, before, known, counted) = tokio::join!(
        biased;
        connection.execute(REMEMBER, last_claim),
        load(connection, chosen),
        Known::logs_of(connection, chosen),
        Counted::begin(connection),
    );
    remembered?;
    let (before, mut known, mut counted) = (before?, known?, counted?);
    let (mut given, mut writes) = (Vec::new(), Vec::new());
    for Claimed { task, run, session } in before {
        let (run, rows) = claim(&task, &run, &session, request.lease.clone(), request.now);
        writes.extend(rows);
        given.push(Claimed { task: task.project(&run, request.now), run, session });
    }
    let texts = writes.iter().map(body::text_of).collect::<Result<Vec<_>, _>>();
    let texts = texts.map_err(|error| Failed::Body(error.to_string()))?;
    let rows: Vec<apply::Row<'_>> = place_events(&mut known, &writes, &texts, &mut counted);
    apply(connection, &rows).await?;
    Ok((given, counted.hint))
}

async fn load(connection: &Connection, runs: &[RunId]) -> Result<Vec<Claimed>, Failed> {
    let ids: Vec<Id> = runs.iter().map(Id::from).collect();
    let mut found = BTreeMap::new();
    for row in connection.all(ROWS, &[&ids]).await? {
        let (run, session): (ostler_kernel::Run, _) = (from_json(&row, 2)?, from_json(&row, 3)?);
        found.insert(run.id, Claimed { task: row::task_alone(&row)?, run, session });
    }
    Ok(runs.iter().filter_map(|run| found.remove(run)).collect())
}
