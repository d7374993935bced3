//! Gives ready runs to a worker, in a transaction of its own.

use std::collections::BTreeMap;

use ostler_kernel::{
    Lease, RunId, RunTag, Session, Worker,
    queue::{self, Candidate, Lane, Requirements, Rooms, Shares},
    run::claim::claim,
    worker::{Offer, Standing},
};

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
    let Some(worker) = claimant(connection, &request.lease).await? else { return Ok(Vec::new()) };
    if turns.overtook(&request.lease) {
        return Ok(Vec::new());
    }
    let earlier = held(connection, &request.lease).await?;
    if !earlier.is_empty() || worker.standing != Standing::Open {
        return Ok(earlier);
    }
    let (candidates, rooms) = candidates(connection, request, &worker.offer).await?;
    let chosen = queue::choose(candidates, request.slots, rooms, &request.shares, &mut turns.served);
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "UPDATE workers SET claims = $2 WHERE name = $1";
    connection.execute(sql, &[&request.lease.worker, &signed(request.lease.claim)]).await?;
    let before = load(connection, &chosen).await?;
    give(connection, before, request, counted).await
}

/// The worker, if this is its present incarnation and no later claim of it was given anything. Its row is locked:
/// claims of one worker go one after the other.
async fn claimant(connection: &Connection, lease: &Lease) -> Result<Option<Worker>, Failed> {
    let sql = format!(
        "SELECT {} FROM workers WHERE name = $1 AND incarnation = $2 AND claims <= $3 FOR UPDATE",
        row::WORKER
    );
    let found =
        connection.one(&sql, &[&lease.worker, &signed(lease.incarnation), &signed(lease.claim)]).await?;
    found.as_ref().map(row::worker).transpose()
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

/// The first runs of each lane that the worker may serve and that has room, locked, and without those that others are
/// at; and how much room there is. Steps from lane to lane in the index of what is ready.
async fn candidates(
    connection: &Connection,
    request: &Claim,
    offer: &Offer,
) -> Result<(Vec<Candidate>, Rooms), Failed> {
    let sql = "WITH RECURSIVE ready AS (\
            (SELECT lane FROM runs WHERE rank IS NOT NULL ORDER BY lane LIMIT 1) \
            UNION ALL \
            SELECT (SELECT lane FROM runs WHERE rank IS NOT NULL AND lane > ready.lane ORDER BY lane LIMIT 1) \
            FROM ready WHERE ready.lane IS NOT NULL) \
        SELECT namespace, coalesce(pool, class), slots, requires, lanes.id \
        FROM ready JOIN lanes ON lanes.id = ready.lane ORDER BY lanes.id";
    let mut lanes = Vec::new();
    for row in connection.all(sql, &[]).await? {
        let lane = read_lane(&row)?;
        if offer.meets(&lane.requires) {
            lanes.push((row.try_get::<_, i64>(4)?, lane));
        }
    }
    let rooms = rooms(connection, &lanes, &request.shares).await?;
    let mut candidates = Vec::new();
    for (place, Lane { namespace, class, .. }) in lanes {
        let limit = request.slots.min(rooms.of(&namespace, &class));
        let sql = "SELECT id, rank FROM runs WHERE lane = $1 AND rank IS NOT NULL ORDER BY rank, id LIMIT $2 \
            FOR UPDATE SKIP LOCKED";
        for row in connection.all(sql, &[&place, &most(limit)]).await? {
            let (run, rank) = (id(&row, 0)?, row.try_get(1)?);
            candidates.push(Candidate { run, namespace: namespace.clone(), class: class.clone(), rank });
        }
    }
    Ok((candidates, rooms))
}

fn read_lane(row: &tokio_postgres::Row) -> Result<Lane, Failed> {
    let unreadable = |error: serde_json::Error| Failed::Body(error.to_string());
    let limit = row.try_get::<_, Option<i64>>(2)?.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
    let requires = Requirements::from_text(row.try_get(3)?).map_err(unreadable)?;
    Ok(Lane { limit, requires, ..Lane::new(row.try_get::<_, String>(0)?, row.try_get::<_, String>(1)?) })
}

/// How many more there may be where there is a limit, counted from the leases themselves, behind the locks of all lanes
/// that share it: without them two claims would both see the last slot. All are locked at once, in one order.
async fn rooms(connection: &Connection, lanes: &[(i64, Lane)], shares: &Shares) -> Result<Rooms, Failed> {
    let lanes = lanes.iter().map(|(_, lane)| lane);
    let limited: Vec<&Lane> = lanes.clone().filter(|lane| lane.limit.is_some()).collect();
    let capped: Vec<&str> = lanes
        .filter(|lane| shares.of(&lane.namespace).limit.is_some())
        .map(|lane| lane.namespace.as_str())
        .collect();
    if limited.is_empty() && capped.is_empty() {
        return Ok(Rooms::default());
    }
    let namespaces: Vec<&str> = limited.iter().map(|lane| lane.namespace.as_str()).collect();
    let classes: Vec<&str> = limited.iter().map(|lane| lane.class.as_str()).collect();
    let lock = "SELECT namespace, coalesce(pool, class), slots FROM lanes WHERE namespace = ANY($3) \
        OR (namespace, coalesce(pool, class)) IN (SELECT * FROM unnest($1::text[], $2::text[])) \
        ORDER BY id FOR UPDATE";
    let locked = connection.all(lock, &[&namespaces, &classes, &capped]).await?;
    let busy = busy(connection, &[namespaces, capped.clone()].concat()).await?;
    let mut rooms = Rooms::default();
    for row in locked {
        // As it is now that the lock is ours.
        let Some(limit) = row.try_get::<_, Option<i64>>(2)? else { continue };
        let class: (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let room = limit.saturating_sub(busy.get(&class).copied().unwrap_or(0));
        rooms.classes.insert(class, usize::try_from(room).unwrap_or(0));
    }
    for namespace in capped {
        let of_namespace = busy.iter().filter(|((other, _), _)| other == namespace).map(|(_, busy)| busy);
        let limit = shares.of(namespace).limit.map_or(i64::MAX, i64::from);
        let room = limit.saturating_sub(of_namespace.sum());
        rooms.namespaces.insert(namespace.to_owned(), usize::try_from(room).unwrap_or(0));
    }
    Ok(rooms)
}

/// How many runs of each class hold a lease.
async fn busy(
    connection: &Connection,
    namespaces: &[&str],
) -> Result<BTreeMap<(String, String), i64>, Failed> {
    let sql = "SELECT namespace, coalesce(pool, class), count(*) FROM runs JOIN lanes ON lanes.id = runs.lane \
        WHERE worker IS NOT NULL AND namespace = ANY($1) GROUP BY 1, 2";
    let mut busy = BTreeMap::new();
    for row in connection.all(sql, &[&namespaces]).await? {
        busy.insert((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?);
    }
    Ok(busy)
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
