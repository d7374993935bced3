//! Gives ready runs to a worker, in a transaction of its own, where places are limited or something is asked of workers:
//! the rest is given [along](super::along) with commits. What needs no earlier answer is asked for in one message.

use std::collections::BTreeMap;

use ostler_kernel::{
    Lease, Run, RunId, RunTag, Timestamp, Worker, Write,
    queue::{Candidate, Lane, Requirements, Rooms, Shares},
    run::claim::claim,
    worker::{Offer, Standing},
};

use super::{
    Failed, apply,
    connection::{Connection, Params},
    known::{self, Known},
    row::{Id, id, most, parse, signed},
    statement::{Call, Found, Script, Value},
    writer::{Counted, place_events},
};
use crate::{
    Claim, Claimed, Hint,
    body::{self, TaskBody},
    planted::Bug,
    turns::SharedTurns,
};

macro_rules! claimants {
    ($end:literal) => {
        concat!(
            "SELECT 'claimant', name, incarnation, counter, claims, registered_at, instance, offer, standing \
            FROM workers WHERE name = ANY($1) ORDER BY name FOR UPDATE",
            $end
        )
    };
}

/// Locked, so that claims of one worker go one after the other.
const CLAIMANTS: &str = claimants!("");

const FREE_CLAIMANTS: &str = claimants!(" SKIP LOCKED");

/// What this very claim was given before, if its answer was lost.
const HELD: &str = "SELECT 'held', id FROM runs WHERE worker = $1 AND incarnation = $2 AND claim = $3 AND state = $4 ORDER BY id";

/// Lanes in which something is ready. Steps from lane to lane in the index of what is ready.
const LANES: &str = "WITH RECURSIVE ready AS (\
        (SELECT lane FROM runs WHERE rank IS NOT NULL ORDER BY lane LIMIT 1) \
        UNION ALL \
        SELECT (SELECT lane FROM runs WHERE rank IS NOT NULL AND lane > ready.lane ORDER BY lane LIMIT 1) \
        FROM ready WHERE ready.lane IS NOT NULL) \
    SELECT 'lane', namespace, coalesce(pool, class), slots, requires, lanes.id \
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
        ORDER BY rank, id LIMIT wanted.most FOR UPDATE OF runs SKIP LOCKED) AS first";

const REMEMBER: &str = "UPDATE workers SET claims = $2 WHERE name = $1";

macro_rules! rows {
    ($end:literal) => {
        concat!(
            "SELECT 'row', request, tasks.body, runs.body, sessions.body \
            FROM runs JOIN tasks ON tasks.id = runs.task JOIN sessions ON sessions.id = runs.session \
            WHERE runs.id = ANY($1)",
            $end
        )
    };
}

const ROWS: &str = rows!("");

const LOCKED_ROWS: &str = rows!(" ORDER BY tasks.id FOR NO KEY UPDATE OF tasks");

/// Those that are still ready, locked, and without what others are at.
const FREE_ROWS: &str = rows!(
    " AND rank IS NOT NULL ORDER BY tasks.id \
    FOR UPDATE OF runs SKIP LOCKED FOR NO KEY UPDATE OF tasks SKIP LOCKED"
);

/// What scripts call.
pub const NAMED: [&str; 8] = [CLAIMANTS, FREE_CLAIMANTS, HELD, LANES, REMEMBER, ROWS, LOCKED_ROWS, FREE_ROWS];

/// Makes a connection ready for the rest: a statement that had to be prepared first would be late.
pub async fn prepare(connection: &Connection) -> Result<(), Failed> {
    connection.prepare_all(&[LOCK_LANES, BUSY, READY]).await
}

/// In a transaction that begins here, and ends unless it fails.
pub async fn claim_runs(
    connection: &Connection,
    request: &Claim,
    turns: &SharedTurns,
) -> Result<(Vec<Claimed>, Hint), Failed> {
    let Asked { worker, held, lanes } = ask(connection, &request.lease).await?;
    let worker = worker.filter(|worker| turns.admit(&request.lease, worker, connection.planted));
    let is_sent_again = !held.is_empty() && !connection.planted.is(Bug::LostClaimServedAnew);
    let (mut n_candidates, mut chosen) = (0, Vec::new());
    match worker {
        Some(_) if is_sent_again => {
            let mut script = Script::on(connection);
            script.call(&Call::new(ROWS, [ids(&held)]))?;
            script.say("ROLLBACK");
            let mut rows = claimed(&script.run().await?)?;
            return Ok((held.iter().filter_map(|run| rows.remove(run)).collect(), Hint::default()));
        }
        Some(worker) if worker.standing == Standing::Open => {
            let lanes = open_to(&worker.offer, lanes);
            let rooms = rooms(connection, &lanes, &request.shares).await?;
            let candidates = candidates(connection, request.slots, &rooms, lanes).await?;
            n_candidates = candidates.len();
            chosen = turns.choose(candidates, request.slots, rooms, &request.shares);
        }
        Some(_) | None => {}
    }
    if chosen.is_empty() {
        // Nothing was written: no need to wait for a disk.
        connection.client.batch_execute("ROLLBACK").await?;
        return Ok(Default::default());
    }
    let (given, mut hint) = give(connection, &chosen, request).await?;
    // Others passed over what was locked here, and is not taken.
    hint.ready += u64::from(given.len() == request.slots && n_candidates > given.len());
    Ok((given, hint))
}

/// Who claims, what it holds by this very claim, and in which lanes something is ready.
#[derive(Default)]
struct Asked {
    worker: Option<Worker>,
    held: Vec<RunId>,
    lanes: Lanes,
}

async fn ask(connection: &Connection, lease: &Lease) -> Result<Asked, Failed> {
    let mut script = Script::on(connection);
    script.say("BEGIN");
    script.call(&Call::new(CLAIMANTS, [vec![lease.worker.as_str()].into()]))?;
    script.call(&held(lease))?;
    script.call(&Call::new(LANES, []))?;
    let mut asked = Asked::default();
    for row in script.run().await? {
        match row.text(0)? {
            "claimant" => asked.worker = Some(claimant(&row)?),
            "held" => asked.held.push(row.id(1)?),
            _ => drop(asked.lanes.insert(row.number(5)?.cast_signed(), lane(&row)?)),
        }
    }
    Ok(asked)
}

/// What this very claim was given before.
pub fn held(lease: &Lease) -> Call<'_> {
    let (incarnation, claim) = (signed(lease.incarnation), signed(lease.claim));
    let state = RunTag::Running.name();
    Call::new(HELD, [(&lease.worker).into(), incarnation.into(), claim.into(), state.into()])
}

/// Locks those of these workers that nobody else is at: others may be held up, and with them whoever waits for them.
pub fn free_claimants(names: Vec<&str>) -> Call<'_> {
    Call::new(FREE_CLAIMANTS, [names.into()])
}

pub fn claimant(row: &Found) -> Result<Worker, Failed> {
    let standing = row.text(8)?;
    Ok(Worker {
        name: row.text(1)?.to_owned(),
        incarnation: row.number(2)?,
        counter: row.number(3)?,
        claims: row.number(4)?,
        registered_at: Timestamp::from_millis(row.number(5)?.cast_signed()),
        instance: row.number(6)?,
        offer: parse(row.text(7)?)?,
        standing: Standing::from_name(standing)
            .ok_or_else(|| Failed::Body(format!("a worker is {standing:?}")))?,
    })
}

pub fn lane(row: &Found) -> Result<Lane, Failed> {
    let requires = Requirements::from_text(row.text(4)?).map_err(|error| Failed::Body(error.to_string()))?;
    let limit = row.optional_number(3)?.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
    Ok(Lane { limit, requires, ..Lane::new(row.text(1)?, row.text(2)?) })
}

/// Lanes by their number.
type Lanes = BTreeMap<i64, Lane>;

/// The lanes whose runs a worker with this offer may take.
fn open_to(offer: &Offer, mut lanes: Lanes) -> Lanes {
    lanes.retain(|_, lane| offer.meets(&lane.requires));
    lanes
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
    let Locked { mut rows, mut known, position } = Locked::all(connection, chosen).await?;
    let ready = chosen.iter().filter_map(|run| rows.remove(run)).collect();
    let (gift, mut counted) = (Gift::of(ready, request)?, Counted::from(position));
    let rows = place_events(&mut known, &gift.writes, &gift.texts, &mut counted);
    counted.check()?;
    let mut script = Script::on(connection);
    script.call(&remember(&request.lease))?;
    apply::add_to(&mut script, &rows)?;
    script.say("COMMIT");
    script.run().await.map_err(Failed::of_commit)?;
    Ok((gift.runs, counted.hint))
}

/// Runs that are locked, with the rows around them, and what it takes to number their events.
pub struct Locked {
    pub rows: BTreeMap<RunId, Claimed>,
    pub known: Known,
    position: u64,
}

impl Locked {
    async fn all(connection: &Connection, runs: &[RunId]) -> Result<Self, Failed> {
        Self::found_by(connection, LOCKED_ROWS, runs).await
    }

    /// Locks those that are still ready. Without what others are at: they may wait for rows that the batch holds.
    pub async fn if_ready(connection: &Connection, runs: &[RunId]) -> Result<Self, Failed> {
        Self::found_by(connection, FREE_ROWS, runs).await
    }

    async fn found_by(connection: &Connection, sql: &'static str, runs: &[RunId]) -> Result<Self, Failed> {
        let mut script = Script::on(connection);
        script.call(&Call::new(sql, [ids(runs)]))?;
        script.call(&known::logs_of(runs))?;
        let (rows, logs): (Vec<Found>, Vec<Found>) =
            script.run().await?.into_iter().partition(|row| matches!(row.text(0), Ok("row")));
        let (known, position) = Known::of(&logs)?;
        Ok(Self { rows: claimed(&rows)?, known, position })
    }
}

/// Runs for a claim, as they are when it has them, and the rows that make them so.
pub struct Gift {
    pub runs: Vec<Claimed>,
    pub writes: Vec<Write>,
    pub texts: Vec<String>,
}

impl Gift {
    /// Of runs that are ready.
    pub fn of(ready: Vec<Claimed>, request: &Claim) -> Result<Self, Failed> {
        let (mut runs, mut writes) = (Vec::new(), Vec::new());
        for Claimed { task, run, session } in ready {
            let (run, rows) = claim(&task, &run, &session, request.lease.clone(), request.now);
            writes.extend(rows);
            runs.push(Claimed { task: task.project(&run, request.now), run, session });
        }
        let texts = writes.iter().map(body::text_of).collect::<Result<Vec<_>, _>>();
        Ok(Self { runs, texts: texts.map_err(|error| Failed::Body(error.to_string()))?, writes })
    }
}

/// That this was the worker's last claim that got something.
pub fn remember(lease: &Lease) -> Call<'_> {
    Call::new(REMEMBER, [(&lease.worker).into(), signed(lease.claim).into()])
}

fn ids(runs: &[RunId]) -> Value<'static> {
    Value::Ids(runs.iter().map(Id::from).collect())
}

fn claimed(rows: &[Found]) -> Result<BTreeMap<RunId, Claimed>, Failed> {
    let mut found = BTreeMap::new();
    for row in rows {
        let task: TaskBody = parse(row.text(2)?)?;
        let (run, session): (Run, _) = (parse(row.text(3)?)?, parse(row.text(4)?)?);
        found.insert(run.id, Claimed { task: task.with(parse(row.text(1)?)?), run, session });
    }
    Ok(found)
}
