//! Gives ready runs to a worker, in a transaction of its own.

use std::collections::BTreeMap;

use ostler_kernel::{Lease, RunId, RunTag, Session, queue, run::claim::claim};

use super::{
    Failed,
    apply::{Row, apply},
    connection::Connection,
    known::Known,
    row::{self, Id, from_json, id, most, signed},
    writer::{Counted, place_events},
};
use crate::{Claim, Claimed, body, turns::Turns};

/// Inside a transaction that the caller begins and ends.
pub async fn claim_runs(
    connection: &Connection,
    request: &Claim,
    turns: &mut Turns,
    counted: &mut Counted,
) -> Result<Vec<Claimed>, Failed> {
    if !is_current(connection, &request.lease).await? || turns.overtook(&request.lease) {
        return Ok(Vec::new());
    }
    let earlier = held(connection, &request.lease).await?;
    if !earlier.is_empty() {
        return Ok(earlier);
    }
    let candidates = candidates(connection, request.slots).await?;
    let chosen = queue::choose(candidates, request.slots, &mut turns.served);
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "UPDATE workers SET claims = $2 WHERE name = $1";
    connection.execute(sql, &[&request.lease.worker, &signed(request.lease.claim)]).await?;
    let before = load(connection, &chosen).await?;
    give(connection, before, request, counted).await
}

/// The worker's present incarnation, and no later claim of it was given anything. Its row is locked: claims of one
/// worker go one after the other.
async fn is_current(connection: &Connection, lease: &Lease) -> Result<bool, Failed> {
    let sql = "SELECT 1 FROM workers WHERE name = $1 AND incarnation = $2 AND claims <= $3 FOR UPDATE";
    let found =
        connection.one(sql, &[&lease.worker, &signed(lease.incarnation), &signed(lease.claim)]).await?;
    Ok(found.is_some())
}

/// What this very claim was given before, if its answer was lost.
async fn held(connection: &Connection, lease: &Lease) -> Result<Vec<Claimed>, Failed> {
    let sql = "SELECT id FROM runs WHERE worker = $1 AND incarnation = $2 AND claim = $3 AND state = $4 ORDER BY id";
    let state = RunTag::Running.name();
    let (incarnation, claim) = (signed(lease.incarnation), signed(lease.claim));
    let rows = connection.all(sql, &[&lease.worker, &incarnation, &claim, &state]).await?;
    let runs: Vec<RunId> = rows.iter().map(|row| id(row, 0)).collect::<Result<_, _>>()?;
    load(connection, &runs).await
}

/// The first runs of each lane that has room, locked, and without those that others are at. Steps from lane to lane
/// in the index of what is ready.
async fn candidates(connection: &Connection, slots: usize) -> Result<Vec<queue::Candidate>, Failed> {
    let sql = "WITH RECURSIVE ready AS (\
            (SELECT lane FROM runs WHERE rank IS NOT NULL ORDER BY lane LIMIT 1) \
            UNION ALL \
            SELECT (SELECT lane FROM runs WHERE rank IS NOT NULL AND lane > ready.lane ORDER BY lane LIMIT 1) \
            FROM ready WHERE ready.lane IS NOT NULL) \
        SELECT lanes.id, namespace, slots FROM ready JOIN lanes ON lanes.id = ready.lane ORDER BY lanes.id";
    let mut candidates = Vec::new();
    for row in connection.all(sql, &[]).await? {
        let (lane, namespace): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        let limited = row.try_get::<_, Option<i64>>(2)?.is_some();
        let room = if limited { room(connection, lane).await? } else { None };
        let limit = room.map_or(slots, |room| slots.min(room));
        let sql = "SELECT id, rank FROM runs WHERE lane = $1 AND rank IS NOT NULL ORDER BY rank, id LIMIT $2 \
            FOR UPDATE SKIP LOCKED";
        for row in connection.all(sql, &[&lane, &most(limit)]).await? {
            let (run, rank) = (id(&row, 0)?, row.try_get(1)?);
            candidates.push(queue::Candidate { run, namespace: namespace.clone(), rank });
        }
    }
    Ok(candidates)
}

/// Counted from the leases themselves, behind the lane's lock: without it two claims would both see the last slot.
async fn room(connection: &Connection, lane: i64) -> Result<Option<usize>, Failed> {
    let sql = "SELECT slots FROM lanes WHERE id = $1 FOR UPDATE";
    let Some(row) = connection.one(sql, &[&lane]).await? else { return Ok(Some(0)) };
    let Some(slots) = row.try_get::<_, Option<i64>>(0)? else { return Ok(None) };
    let sql = "SELECT count(*) FROM runs WHERE lane = $1 AND worker IS NOT NULL";
    let busy: i64 = match connection.one(sql, &[&lane]).await? {
        Some(row) => row.try_get(0)?,
        None => 0,
    };
    Ok(Some(usize::try_from(slots.saturating_sub(busy)).unwrap_or(0)))
}

async fn give(
    connection: &Connection,
    before: Vec<Claimed>,
    request: &Claim,
    counted: &mut Counted,
) -> Result<Vec<Claimed>, Failed> {
    let (mut given, mut writes) = (Vec::new(), Vec::new());
    for Claimed { task, run, session } in before {
        let (run, rows) = claim(&task, &run, &session, request.lease.clone(), request.now);
        writes.extend(rows);
        given.push(Claimed { task: task.project(&run, request.now), run, session });
    }
    let mut known = Known::of_events(connection, &writes).await?;
    let texts = writes.iter().map(body::text_of).collect::<Result<Vec<_>, _>>();
    let texts = texts.map_err(|error| Failed::Body(error.to_string()))?;
    let rows: Vec<Row<'_>> = place_events(&mut known, &writes, &texts, counted);
    counted.check()?;
    apply(connection, &rows).await?;
    Ok(given)
}

async fn load(connection: &Connection, runs: &[RunId]) -> Result<Vec<Claimed>, Failed> {
    let ids: Vec<Id> = runs.iter().map(Id::from).collect();
    let sql = format!(
        "SELECT {}, runs.id, runs.body, sessions.body FROM runs JOIN tasks ON tasks.id = runs.task \
         JOIN sessions ON sessions.id = runs.session WHERE runs.id = ANY($1) ORDER BY tasks.id \
         FOR NO KEY UPDATE OF tasks",
        row::TASK.replace("request, body", "request, tasks.body")
    );
    let mut found = BTreeMap::new();
    for row in connection.all(&sql, &[&ids]).await? {
        let session: Session = from_json(&row, 8)?;
        let claimed = Claimed { task: row::task(&row)?.task, run: from_json(&row, 7)?, session };
        found.insert(claimed.run.id, claimed);
    }
    Ok(runs.iter().filter_map(|run| found.remove(run)).collect())
}
