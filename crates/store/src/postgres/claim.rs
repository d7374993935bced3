//! Gives ready runs to a worker, in a transaction of its own. What needs no earlier answer is asked for at once.

use std::collections::BTreeMap;

use ostler_kernel::{
    Lease, RunId, RunTag, Worker,
    queue::{self, Candidate, Lane, Requirements, Rooms, Shares},
    run::claim::claim,
    worker::{Offer, Standing},
};
use tokio_postgres::Row;

use super::{
    Failed,
    apply::{self, Care, apply},
    connection::{Connection, Params},
    known::Known,
    row::{self, Id, from_json, id, most, signed},
    writer::{Counted, place_events},
};
use crate::{Claim, Claimed, Hint, body, planted::Bug, turns::Turns};

/// Locked, so that claims of one worker go one after the other.
const WORKER: &str = "SELECT name, incarnation, counter, claims, registered_at, instance, offer, standing \
    FROM workers WHERE name = $1 FOR UPDATE";

/// What this very claim was given before, if its answer was lost.
const HELD: &str =
    "SELECT id FROM runs WHERE worker = $1 AND incarnation = $2 AND claim = $3 AND state = $4 ORDER BY id";

/// Lanes in which something is ready. Steps from lane to lane in the index of what is ready.
const LANES: &str = "WITH RECURSIVE ready AS (\
        (SELECT lane FROM runs WHERE rank IS NOT NULL ORDER BY lane LIMIT 1) \
        UNION ALL \
        SELECT (SELECT lane FROM runs WHERE rank IS NOT NULL AND lane > ready.lane ORDER BY lane LIMIT 1) \
        FROM ready WHERE ready.lane IS NOT NULL) \
    SELECT namespace, coalesce(pool, class), slots, requires, lanes.id \
    FROM ready JOIN lanes ON lanes.id = ready.lane";

/// All lanes that share a limit with one of these classes, or lie in one of these namespaces.
const LOCK_LANES: &str = "SELECT namespace, coalesce(pool, class), slots FROM lanes WHERE namespace = ANY($3) \
    OR (namespace, coalesce(pool, class)) IN (SELECT * FROM unnest($1::text[], $2::text[])) ORDER BY id FOR UPDATE";

/// How many runs of each class hold a lease.
const BUSY: &str = "SELECT namespace, coalesce(pool, class), count(*) FROM runs JOIN lanes ON lanes.id = runs.lane \
    WHERE worker IS NOT NULL AND namespace = ANY($1) GROUP BY 1, 2";

/// The first runs of each lane, as many as are wanted of it, locked, and without those that others are at.
const READY: &str = "SELECT wanted.lane, first.id, first.rank FROM unnest($1::bigint[], $2::bigint[]) AS wanted (lane, most) \
    CROSS JOIN LATERAL (SELECT id, rank FROM runs WHERE runs.lane = wanted.lane AND rank IS NOT NULL \
        ORDER BY rank, id LIMIT wanted.most FOR UPDATE SKIP LOCKED) AS first";

const REMEMBER: &str = "UPDATE workers SET claims = $2 WHERE name = $1";

const ROWS: &str = "SELECT request, tasks.body, runs.body, sessions.body \
    FROM runs JOIN tasks ON tasks.id = runs.task JOIN sessions ON sessions.id = runs.session \
    WHERE runs.id = ANY($1) ORDER BY tasks.id FOR NO KEY UPDATE OF tasks";

/// Makes a connection ready to claim: a statement that had to be prepared first would be late.
pub async fn prepare(connection: &Connection) -> Result<(), Failed> {
    connection.prepare_all(&[WORKER, HELD, LANES, LOCK_LANES, BUSY, READY, REMEMBER, ROWS]).await
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
        load_worker(connection, lease),
        held(connection, lease),
        connection.all(LANES, &[]),
    );
    begun?;
    let (worker, held, lanes) = (worker?, held?, lanes?);
    let Some(worker) = worker.filter(|worker| turns.admit(lease, worker, connection.planted)) else {
        return Ok(Default::default());
    };
    if !held.is_empty() && !connection.planted.is(Bug::LostClaimServedAnew) {
        return Ok((load(connection, &held).await?, Hint::default()));
    }
    if worker.standing != Standing::Open {
        return Ok(Default::default());
    }
    let lanes = open_to(&worker.offer, &lanes)?;
    let rooms = rooms(connection, &lanes, &request.shares).await?;
    let candidates = candidates(connection, request.slots, &rooms, lanes).await?;
    let chosen = queue::choose(candidates, request.slots, rooms, &request.shares, &mut turns.served);
    if chosen.is_empty() {
        return Ok(Default::default());
    }
    give(connection, &chosen, request).await
}

async fn load_worker(connection: &Connection, lease: &Lease) -> Result<Option<Worker>, Failed> {
    connection.one(WORKER, &[&lease.worker]).await?.as_ref().map(row::worker).transpose()
}

async fn held(connection: &Connection, lease: &Lease) -> Result<Vec<RunId>, Failed> {
    let (incarnation, claim) = (signed(lease.incarnation), signed(lease.claim));
    let state = RunTag::Running.name();
    let rows = connection.all(HELD, &[&lease.worker, &incarnation, &claim, &state]).await?;
    rows.iter().map(|row| id(row, 0)).collect()
}

/// Lanes by their number.
type Lanes = BTreeMap<i64, Lane>;

/// The lanes whose runs a worker with this offer may take.
fn open_to(offer: &Offer, rows: &[Row]) -> Result<Lanes, Failed> {
    let mut lanes = Lanes::new();
    for row in rows {
        let unreadable = |error: serde_json::Error| Failed::Body(error.to_string());
        let limit = row.try_get::<_, Option<i64>>(2)?.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
        let requires = Requirements::from_text(row.try_get(3)?).map_err(unreadable)?;
        if offer.meets(&requires) {
            let lane = Lane::new(row.try_get::<_, String>(0)?, row.try_get::<_, String>(1)?);
            lanes.insert(row.try_get(4)?, Lane { limit, requires, ..lane });
        }
    }
    Ok(lanes)
}

/// How many more there may be where there is a limit. Leases are counted behind the locks of all lanes that share it, by
/// a statement of its own: otherwise two claims would both see the last place. All are locked at once, in one order.
async fn rooms(connection: &Connection, lanes: &Lanes, shares: &Shares) -> Result<Rooms, Failed> {
    let limited = lanes.values().filter(|lane| lane.limit.is_some());
    let (namespaces, classes): (Vec<&str>, Vec<&str>) =
        limited.map(|lane| (lane.namespace.as_str(), lane.class.as_str())).unzip();
    let namespaces_of_lanes = lanes.values().map(|lane| lane.namespace.as_str());
    let capped: Vec<&str> =
        namespaces_of_lanes.filter(|namespace| shares.of(namespace).limit.is_some()).collect();
    if namespaces.is_empty() && capped.is_empty() {
        return Ok(Rooms::default());
    }
    let concerned = [&namespaces[..], &capped[..]].concat();
    let (locking, counting): (Params<'_>, Params<'_>) = (&[&namespaces, &classes, &capped], &[&concerned]);
    let (locked, busy) =
        tokio::join!(biased; connection.all(LOCK_LANES, locking), connection.all(BUSY, counting));
    let (mut rooms, mut of_namespaces) = (Rooms::default(), BTreeMap::<String, i64>::new());
    let mut of_classes = BTreeMap::new();
    for row in busy? {
        let (namespace, class, busy): (String, String, i64) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let busy = if connection.planted.is(Bug::LimitPerClaim) { 0 } else { busy };
        *of_namespaces.entry(namespace.clone()).or_default() += busy;
        of_classes.insert((namespace, class), busy);
    }
    let left = |limit: i64, busy: Option<&i64>| {
        usize::try_from(limit.saturating_sub(busy.copied().unwrap_or(0))).unwrap_or(0)
    };
    for row in locked? {
        // As it is now that the lock is ours.
        let Some(limit) = row.try_get::<_, Option<i64>>(2)? else { continue };
        let class = (row.try_get(0)?, row.try_get(1)?);
        let room = left(limit, of_classes.get(&class));
        rooms.classes.insert(class, room);
    }
    for namespace in capped {
        let limit = shares.of(namespace).limit.map_or(i64::MAX, i64::from);
        rooms.namespaces.insert(namespace.to_owned(), left(limit, of_namespaces.get(namespace)));
    }
    Ok(rooms)
}

async fn candidates(
    connection: &Connection,
    slots: usize,
    rooms: &Rooms,
    lanes: Lanes,
) -> Result<Vec<Candidate>, Failed> {
    let wanted = |lane: &Lane| most(slots.min(rooms.of(&lane.namespace, &lane.class)));
    let (places, limits): (Vec<i64>, Vec<i64>) =
        lanes.iter().map(|(place, lane)| (*place, wanted(lane))).unzip();
    let rows = connection.all(READY, &[&places, &limits]).await?;
    let mut candidates = Vec::with_capacity(rows.len());
    for row in &rows {
        let Some(Lane { namespace, class, .. }) = lanes.get(&row.try_get(0)?) else { continue };
        let (namespace, class) = (namespace.clone(), class.clone());
        candidates.push(Candidate { run: id(row, 1)?, namespace, class, rank: row.try_get(2)? });
    }
    Ok(candidates)
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
    counted.check()?;
    apply(connection, &rows, Care::Gathered).await?;
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
