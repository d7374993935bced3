//! Gives ready runs to a worker, inside the writing transaction.

use ostler_kernel::{Lease, RunId, RunTag, TaskId, queue, run::claim::claim};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    apply::{Effects, apply},
    row::{self, Key},
};
use crate::{
    Claim, Claimed,
    planted::{Bug, Planted},
    turns::{Claims, Turns},
};

pub fn claim_runs(
    connection: &Connection,
    request: &Claim,
    turns: &mut Turns,
    effects: &mut Effects,
    planted: Planted,
) -> rusqlite::Result<Vec<Claimed>> {
    let worker = known_claims(connection, &request.lease)?;
    if !worker.is_some_and(|known| turns.admit(&request.lease, &known, planted)) {
        return Ok(Vec::new());
    }
    let earlier = held(connection, &request.lease)?;
    if !earlier.is_empty() && !planted.is(Bug::LostClaimServedAnew) {
        return Ok(earlier);
    }
    let candidates = candidates(connection, request.slots, planted)?;
    let chosen = queue::choose(candidates, request.slots, &mut turns.served);
    if !chosen.is_empty() {
        remember(connection, &request.lease)?;
    }
    chosen.into_iter().map(|run| give(connection, run, request, effects)).collect()
}

fn known_claims(connection: &Connection, lease: &Lease) -> rusqlite::Result<Option<Claims>> {
    let sql = "SELECT incarnation, claims FROM workers WHERE name = ?1";
    let claims = |row: &Row<'_>| Ok(Claims { incarnation: row.get(0)?, last: row.get(1)? });
    connection.prepare_cached(sql)?.query_row([&lease.worker], claims).optional()
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

/// The first runs of each lane that has room. Steps from lane to lane in the index of what is ready.
fn candidates(
    connection: &Connection,
    slots: usize,
    planted: Planted,
) -> rusqlite::Result<Vec<queue::Candidate>> {
    let mut candidates = Vec::new();
    let mut lane = i64::MIN;
    loop {
        let sql = "SELECT lane FROM runs WHERE rank IS NOT NULL AND lane > ?1 ORDER BY lane LIMIT 1";
        let next = connection.prepare_cached(sql)?.query_row([lane], |row| row.get(0)).optional()?;
        let Some(next) = next else { return Ok(candidates) };
        lane = next;
        let (namespace, room) = room(connection, lane, planted)?;
        let limit = room.map_or(slots, |room| slots.min(room));
        let sql = "SELECT id, rank FROM runs WHERE lane = ?1 AND rank IS NOT NULL ORDER BY rank, id LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![lane, row::most(limit)])?;
        while let Some(row) = rows.next()? {
            let run = row.get::<_, Key<RunId>>(0)?.0;
            candidates.push(queue::Candidate { run, namespace: namespace.clone(), rank: row.get(1)? });
        }
    }
}

/// Counted from the leases themselves: a counter of its own could go wrong.
fn room(connection: &Connection, lane: i64, planted: Planted) -> rusqlite::Result<(String, Option<usize>)> {
    let sql = "SELECT namespace, slots FROM lanes WHERE id = ?1";
    let (namespace, slots): (String, Option<usize>) =
        connection.prepare_cached(sql)?.query_row([lane], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some(slots) = slots.filter(|_| !planted.is(Bug::LimitPerClaim)) else {
        return Ok((namespace, slots));
    };
    let sql = "SELECT count(*) FROM runs WHERE lane = ?1 AND worker IS NOT NULL";
    let busy: usize = connection.prepare_cached(sql)?.query_row([lane], |row| row.get(0))?;
    Ok((namespace, Some(slots.saturating_sub(busy))))
}

fn give(
    connection: &Connection,
    run: RunId,
    request: &Claim,
    effects: &mut Effects,
) -> rusqlite::Result<Claimed> {
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
