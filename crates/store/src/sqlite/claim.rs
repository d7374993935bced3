//! Gives ready runs to a worker, inside the writing transaction.

use ostler_kernel::{
    Lease, RunId, RunTag, TaskId, Worker,
    queue::{self, Candidate, Lane, Requirements, Rooms, Shares},
    run::claim::claim,
    worker::{Offer, Standing},
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    apply::{Effects, apply},
    row::{self, Key},
};
use crate::{
    Claim, Claimed,
    planted::{Bug, Planted},
    turns::Turns,
};

pub fn claim_runs(
    connection: &Connection,
    request: &Claim,
    turns: &mut Turns,
    effects: &mut Effects,
    planted: Planted,
) -> rusqlite::Result<Vec<Claimed>> {
    let Some(worker) = load_worker(connection, &request.lease)? else { return Ok(Vec::new()) };
    if !turns.admit(&request.lease, &worker, planted) {
        return Ok(Vec::new());
    }
    let earlier = held(connection, &request.lease)?;
    if !earlier.is_empty() && !planted.is(Bug::LostClaimServedAnew) {
        return Ok(earlier);
    }
    if worker.standing != Standing::Open {
        return Ok(Vec::new());
    }
    let (candidates, rooms) = candidates(connection, request, &worker.offer, planted)?;
    let chosen = queue::choose(candidates, request.slots, rooms, &request.shares, &mut turns.served);
    if !chosen.is_empty() {
        remember(connection, &request.lease)?;
    }
    chosen.into_iter().map(|run| give(connection, run, request, effects)).collect()
}

fn load_worker(connection: &Connection, lease: &Lease) -> rusqlite::Result<Option<Worker>> {
    let sql = format!("SELECT {} FROM workers WHERE name = ?1", row::WORKER);
    connection.prepare_cached(&sql)?.query_row([&lease.worker], row::worker).optional()
}

/// Only a claim that gets something is written down: one that gets nothing shall cost no sync.
fn remember(connection: &Connection, lease: &Lease) -> rusqlite::Result<()> {
    let sql = "UPDATE workers SET claims = ?2 WHERE name = ?1";
    connection.prepare_cached(sql)?.execute(params![lease.worker, lease.claim])?;
    Ok(())
}

/// What this very claim was given before, if its answer was lost.
fn held(connection: &Connection, lease: &Lease) -> rusqlite::Result<Vec<Claimed>> {
    let sql = "SELECT id FROM runs WHERE worker = ?1 AND incarnation = ?2 AND claim = ?3 AND state = ?4 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let params = params![lease.worker, lease.incarnation, lease.claim, RunTag::Running.name()];
    let runs: Vec<RunId> =
        statement.query_map(params, |row| Ok(row.get::<_, Key<RunId>>(0)?.0))?.collect::<Result<_, _>>()?;
    runs.into_iter().map(|run| load(connection, run)).collect()
}

/// The first runs of each lane that the worker may serve and that has room, and how much. Steps from lane to lane in
/// the index of what is ready.
fn candidates(
    connection: &Connection,
    request: &Claim,
    offer: &Offer,
    planted: Planted,
) -> rusqlite::Result<(Vec<Candidate>, Rooms)> {
    let (mut candidates, mut rooms) = (Vec::new(), Rooms::default());
    let mut place = i64::MIN;
    loop {
        let sql = "SELECT lane FROM runs WHERE rank IS NOT NULL AND lane > ?1 ORDER BY lane LIMIT 1";
        let next = connection.prepare_cached(sql)?.query_row([place], |row| row.get(0)).optional()?;
        let Some(next) = next else { return Ok((candidates, rooms)) };
        place = next;
        let sql = "SELECT namespace, pool, slots, requires FROM lanes WHERE id = ?1";
        let lane = connection.prepare_cached(sql)?.query_row([place], read_lane)?;
        if !offer.meets(&lane.requires) {
            continue;
        }
        look_for_room(connection, &lane, &request.shares, &mut rooms, planted)?;
        let limit = request.slots.min(rooms.of(&lane.namespace, &lane.class));
        let sql = "SELECT id, rank FROM runs WHERE lane = ?1 AND rank IS NOT NULL ORDER BY rank, id LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![place, row::most(limit)])?;
        while let Some(row) = rows.next()? {
            let (namespace, class) = (lane.namespace.clone(), lane.class.clone());
            let run = row.get::<_, Key<RunId>>(0)?.0;
            candidates.push(Candidate { run, namespace, class, rank: row.get(1)? });
        }
    }
}

fn read_lane(row: &rusqlite::Row<'_>) -> rusqlite::Result<Lane> {
    let requires =
        Requirements::from_text(row.get_ref(3)?.as_str()?).map_err(|error| row::unreadable(3, error))?;
    Ok(Lane { limit: row.get(2)?, requires, ..Lane::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?) })
}

/// How many more there may be where there is a limit, counted from the leases themselves: a counter of its own could
/// go wrong.
fn look_for_room(
    connection: &Connection,
    lane: &Lane,
    shares: &Shares,
    rooms: &mut Rooms,
    planted: Planted,
) -> rusqlite::Result<()> {
    let Lane { namespace, class, .. } = lane;
    let left = |limit: u32, busy: usize| {
        (limit as usize).saturating_sub(if planted.is(Bug::LimitPerClaim) { 0 } else { busy })
    };
    if let Some(limit) = lane.limit {
        let sql = "SELECT count(*) FROM lanes CROSS JOIN runs ON runs.lane = lanes.id AND worker IS NOT NULL \
            WHERE namespace = ?1 AND pool = ?2";
        let busy = connection.prepare_cached(sql)?.query_row([namespace, class], |row| row.get(0))?;
        rooms.classes.insert((namespace.clone(), class.clone()), left(limit, busy));
    }
    if let Some(limit) = shares.of(namespace).limit {
        let sql = "SELECT count(*) FROM lanes CROSS JOIN runs ON runs.lane = lanes.id AND worker IS NOT NULL \
            WHERE namespace = ?1";
        let busy = connection.prepare_cached(sql)?.query_row([namespace], |row| row.get(0))?;
        rooms.namespaces.insert(namespace.clone(), left(limit, busy));
    }
    Ok(())
}

fn give(
    connection: &Connection,
    run: RunId,
    request: &Claim,
    effects: &mut Effects,
) -> rusqlite::Result<Claimed> {
    effects.taken(run);
    let before = load(connection, run)?;
    let (run, writes) = claim(&before.task, &before.run, &before.session, request.lease.clone(), request.now);
    let texts = writes.iter().map(row::text_of).collect::<Result<Vec<_>, _>>()?;
    apply(connection, &writes, &texts, effects)?;
    let task = before.task.project(&run, request.now);
    Ok(Claimed { task, run, session: before.session })
}

fn load(connection: &Connection, id: RunId) -> rusqlite::Result<Claimed> {
    let run =
        connection.prepare_cached("SELECT body FROM runs WHERE id = ?1")?.query_row([Key(&id)], row::run)?;
    let session = connection
        .prepare_cached("SELECT body FROM sessions WHERE id = ?1")?
        .query_row([Key(&run.session)], row::session)?;
    let task = load_task(connection, &run.task)?;
    Ok(Claimed { task, run, session })
}

fn load_task(connection: &Connection, id: &TaskId) -> rusqlite::Result<ostler_kernel::Task> {
    let sql = format!("SELECT {} FROM tasks WHERE id = ?1", row::TASK);
    Ok(connection.prepare_cached(&sql)?.query_row([Key(id)], row::task)?.task)
}
