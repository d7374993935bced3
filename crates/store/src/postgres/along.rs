//! Claims that are served in the transaction of a batch, behind the commits in it: a run that is accepted while a worker
//! waits costs no commit more, and nobody else is woken for it.
//!
//! Only what everybody may take is given so, and only if nobody has to be waited for. Where places are limited they have to
//! be counted behind locks that are taken before those of a batch. Such claims are passed on, to be served by
//! [`super::claim`].

use std::collections::{BTreeMap, BTreeSet};

use ostler_kernel::{
    Run, RunId, SessionId, TaskId, Worker, Write,
    queue::{Candidate, Lane, Requirements, Rooms},
    worker::Standing,
};

use super::{
    Failed,
    apply::Row,
    claim,
    row::{most, signed},
    statement::{Call, Found},
};
use crate::{Claim, Claimed, planted::Planted, turns::SharedTurns};

/// In which lanes something is ready, and the first runs of those that are open to everybody. Nothing is locked yet: that
/// would keep it from others. Steps from lane to lane in the index of what is ready, and not too far.
const READY: &str = "WITH RECURSIVE ready AS (\
        (SELECT lane, 1 AS place FROM runs WHERE rank IS NOT NULL ORDER BY lane LIMIT 1) \
        UNION ALL \
        SELECT (SELECT lane FROM runs WHERE rank IS NOT NULL AND lane > ready.lane ORDER BY lane LIMIT 1), place + 1 \
        FROM ready WHERE ready.lane IS NOT NULL AND place <= $2) \
    SELECT 'ready', namespace, coalesce(pool, class), slots, requires, place, first.id, first.rank, first.task, \
        first.session \
    FROM ready JOIN lanes ON lanes.id = ready.lane LEFT JOIN LATERAL (\
        SELECT id, rank, task, session FROM runs WHERE runs.lane = lanes.id AND rank IS NOT NULL \
        AND slots IS NULL AND requires = '' AND namespace <> ALL($3) ORDER BY rank, id LIMIT $1) AS first ON true";

/// With more lanes than that claims are passed on: commits wait for what is done here.
const MAX_LANES: u64 = 32;

/// So many runs are given in one transaction.
const MAX_SLOTS: usize = 64;

/// What scripts call.
pub const NAMED: [&str; 1] = [READY];

/// Claims that came along with a batch.
#[derive(Clone, Copy)]
pub struct Along<'a> {
    pub claims: &'a [&'a Claim],
    pub turns: &'a SharedTurns,
}

/// What they are judged on.
#[derive(Default)]
pub struct Asked {
    workers: BTreeMap<String, Worker>,
    /// One of them was given something before.
    is_sent_again: bool,
    /// Runs that are ready.
    ready: Vec<Ready>,
    /// Lanes in which something is ready that not everybody may take.
    guarded: Vec<Lane>,
    n_lanes: u64,
}

struct Ready {
    candidate: Candidate,
    task: TaskId,
    session: SessionId,
}

/// What they get.
pub struct Chosen {
    /// Of each claim; nothing is said of those that are passed on.
    pub runs: Vec<Option<Vec<RunId>>>,
    /// Those that the batch accepts, as it leaves them.
    pub fresh: BTreeMap<RunId, Claimed>,
}

impl Chosen {
    /// Those that were there before the batch.
    pub fn there(&self) -> Vec<RunId> {
        let all = self.runs.iter().flatten().flatten();
        all.filter(|run| !self.fresh.contains_key(run)).copied().collect()
    }
}

impl<'a> Along<'a> {
    /// Locks the workers who claim. Behind those that the batch names, and before all else.
    pub fn claimants(&self) -> Option<Call<'a>> {
        let names: Vec<&str> = self.claims.iter().map(|claim| claim.lease.worker.as_str()).collect();
        (!names.is_empty()).then(|| claim::free_claimants(names))
    }

    /// What else has to be known of the claims, behind the locks of their workers.
    pub fn questions(&self) -> Vec<Call<'a>> {
        if self.claims.is_empty() {
            return Vec::new();
        }
        let slots = self.claims.iter().map(|claim| claim.slots).fold(0, usize::saturating_add);
        let capped = self.claims.iter().flat_map(|claim| claim.shares.capped()).collect::<Vec<&str>>();
        let values = [most(slots.min(MAX_SLOTS)).into(), signed(MAX_LANES).into(), capped.into()];
        let held = self.claims.iter().map(|claim| claim::held(&claim.lease));
        held.chain([Call::new(READY, values)]).collect()
    }

    /// What each claim gets of what is ready, and of what the rows of the batch make ready, which is as much as `n_ready`.
    /// Passes on whom this can't be said of.
    pub fn choose(&self, rows: &[Row<'_>], n_ready: u64, asked: &Asked, planted: Planted) -> Chosen {
        let (fresh, touched) = if self.claims.is_empty() { Default::default() } else { touched(rows) };
        let is_open =
            |Claimed { run, .. }: &Claimed| !run.lane.is_limited() && !self.is_capped(&run.lane.namespace);
        let is_clear = fresh.len() as u64 == n_ready
            && fresh.values().all(is_open)
            && !asked.is_sent_again
            && asked.n_lanes <= MAX_LANES
            && !touched.has_limits
            && !asked.ready.iter().any(|ready| touched.holds(ready));
        let open = asked.ready.iter().map(|ready| ready.candidate.clone());
        let mut candidates: Candidates = open.map(|candidate| (candidate, Requirements::default())).collect();
        candidates.extend(fresh.values().filter_map(candidate));
        let (mut slots, mut served) = (MAX_SLOTS, BTreeSet::new());
        let choose = |claim: &&'a Claim| {
            let worker = claim.lease.worker.as_str();
            // What a claim was given in here the same one, sent again, would not know of.
            let is_known = is_clear && !touched.workers.contains(worker) && served.insert(worker);
            if !is_known || slots == 0 {
                return None;
            }
            let chosen = self.choose_for(claim, slots, &mut candidates, asked, planted);
            slots -= chosen.as_ref().map_or(0, Vec::len);
            chosen
        };
        Chosen { runs: self.claims.iter().map(choose).collect(), fresh }
    }

    fn is_capped(&self, namespace: &str) -> bool {
        self.claims.iter().any(|claim| claim.shares.of(namespace).limit.is_some())
    }

    fn choose_for(
        &self,
        claim: &Claim,
        slots: usize,
        candidates: &mut Candidates,
        asked: &Asked,
        planted: Planted,
    ) -> Option<Vec<RunId>> {
        let worker = asked.workers.get(&claim.lease.worker)?;
        if !self.turns.admit(&claim.lease, worker, planted) || worker.standing != Standing::Open {
            return Some(Vec::new());
        }
        if asked.guarded.iter().any(|lane| worker.offer.meets(&lane.requires)) {
            return None;
        }
        let fits = candidates.iter().filter(|(_, requires)| worker.offer.meets(requires));
        let fits = fits.map(|(candidate, _)| candidate.clone()).collect();
        let chosen = self.turns.choose(fits, slots.min(claim.slots), Rooms::default(), &claim.shares);
        candidates.retain(|(candidate, _)| !chosen.contains(&candidate.run));
        Some(chosen)
    }
}

/// Who may be given, and what they ask of a worker.
type Candidates = Vec<(Candidate, Requirements)>;

fn candidate(Claimed { run, .. }: &Claimed) -> Option<(Candidate, Requirements)> {
    let Lane { namespace, class, requires, .. } = run.lane.clone();
    run.rank().map(|rank| (Candidate { run: run.id, namespace, class, rank }, requires))
}

impl Asked {
    pub fn of(rows: &[Found]) -> Result<Self, Failed> {
        let mut asked = Self::default();
        for row in rows {
            match row.text(0)? {
                "claimant" => drop(asked.workers.insert(row.text(1)?.to_owned(), claim::claimant(row)?)),
                "held" => asked.is_sent_again = true,
                "ready" => asked.add(row)?,
                _ => {}
            }
        }
        Ok(asked)
    }

    fn add(&mut self, row: &Found) -> Result<(), Failed> {
        let lane = claim::lane(row)?;
        self.n_lanes = row.number(5)?.max(self.n_lanes);
        match row.optional_number(7)? {
            Some(rank) => {
                let (run, rank) = (row.id(6)?, rank.cast_signed());
                let candidate = Candidate { run, namespace: lane.namespace, class: lane.class, rank };
                self.ready.push(Ready { candidate, task: row.id(8)?, session: row.id(9)? });
            }
            None => self.guarded.push(lane),
        }
        Ok(())
    }
}

/// What a batch writes to.
#[derive(Default)]
struct Touched {
    runs: BTreeSet<RunId>,
    tasks: BTreeSet<TaskId>,
    sessions: BTreeSet<SessionId>,
    workers: BTreeSet<String>,
    /// Lanes are not what they were when they were asked for.
    has_limits: bool,
}

impl Touched {
    fn holds(&self, Ready { candidate, task, session }: &Ready) -> bool {
        self.runs.contains(&candidate.run) || self.tasks.contains(task) || self.sessions.contains(session)
    }
}

/// Runs that the batch accepts and that are ready, unless something else in it changes them; and all that it writes to.
fn touched(rows: &[Row<'_>]) -> (BTreeMap<RunId, Claimed>, Touched) {
    let (mut touched, mut runs) = (Touched::default(), BTreeMap::new());
    let (mut tasks, mut sessions) = (BTreeMap::new(), BTreeMap::new());
    for row in rows {
        match row.write {
            Write::NewTask(task) => drop(tasks.insert(task.id, task)),
            Write::NewRun(run) if run.rank().is_some() => drop(runs.insert(run.id, run)),
            Write::Task(task) => drop(touched.tasks.insert(task.id)),
            Write::Run(run) | Write::RunProgress(run) => drop(touched.runs.insert(run.id)),
            Write::Input(input) => drop(touched.tasks.insert(input.task)),
            Write::Session(session) => {
                touched.sessions.insert(session.id);
                if sessions.insert(session.id, session).is_some() {
                    runs.retain(|_, run| run.session != session.id);
                }
            }
            Write::Worker(Worker { name, .. }) | Write::Standing { worker: name, .. } => {
                touched.workers.insert(name.clone());
            }
            Write::Limit { .. } => touched.has_limits = true,
            _ => {}
        }
    }
    let whole = |run: &Run| {
        let (task, session) = (*tasks.get(&run.task)?, *sessions.get(&run.session)?);
        let is_touched = touched.runs.contains(&run.id) || touched.tasks.contains(&task.id);
        let ready = Claimed { task: task.clone(), run: run.clone(), session: session.clone() };
        (!is_touched).then_some((run.id, ready))
    };
    (runs.into_values().filter_map(whole).collect(), touched)
}
