//! Claims that are served in the transaction of a batch, behind the commits in it: a run that is accepted while a worker
//! waits costs no commit more, and nobody else is woken for it.
//!
//! Only what everybody may take is given so. Where places are limited or something is asked of a worker, others would be
//! held up, or have to be counted, behind locks that are taken before those of a batch: such claims are passed on, to be
//! served by [`super::claim`].

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
    row::signed,
    statement::{Call, Found},
};
use crate::{Claim, Claimed, planted::Planted, turns::SharedTurns};

/// In which lanes something is ready, and in those that are open to everybody the first runs, locked, and without what
/// others are at. Nothing is locked if nobody may take it: whoever passes over it in the meantime would wait in vain.
/// Steps from lane to lane in the index of what is ready.
const READY: &str = "WITH RECURSIVE ready AS (\
        (SELECT lane FROM runs WHERE rank IS NOT NULL ORDER BY lane LIMIT 1) \
        UNION ALL \
        SELECT (SELECT lane FROM runs WHERE rank IS NOT NULL AND lane > ready.lane ORDER BY lane LIMIT 1) \
        FROM ready WHERE ready.lane IS NOT NULL) \
    SELECT 'ready', namespace, coalesce(pool, class), slots, requires, first.id, first.rank, first.task, first.session \
    FROM ready JOIN lanes ON lanes.id = ready.lane LEFT JOIN LATERAL (\
        SELECT id, rank, task, session FROM runs WHERE runs.lane = lanes.id AND rank IS NOT NULL \
        AND slots IS NULL AND requires = '' AND namespace <> ALL($2) \
        AND EXISTS (SELECT FROM unnest($3::text[], $4::bigint[]) AS claims (worker, of) \
            JOIN workers ON name = worker AND incarnation = of WHERE standing = $5) \
        ORDER BY rank, id LIMIT $1 FOR UPDATE SKIP LOCKED) AS first ON true";

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
    /// Runs that are ready, and locked.
    ready: Vec<Ready>,
    /// Lanes in which something is ready that was not locked: not everybody may take it, or others are at it.
    others: Vec<Lane>,
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
    /// What has to be known of the claims besides their workers, and behind the locks of those.
    pub fn questions(&self) -> Vec<Call<'a>> {
        if self.claims.is_empty() {
            return Vec::new();
        }
        let slots = self.claims.iter().map(|claim| claim.slots).fold(0, usize::saturating_add);
        let capped = self.claims.iter().flat_map(|claim| claim.shares.capped()).collect::<Vec<&str>>();
        let workers = self.claims.iter().map(|claim| claim.lease.worker.as_str()).collect::<Vec<&str>>();
        let incarnations: Vec<i64> =
            self.claims.iter().map(|claim| signed(claim.lease.incarnation)).collect();
        let values = [
            super::row::most(slots).into(),
            capped.into(),
            workers.into(),
            incarnations.into(),
            Standing::Open.name().into(),
        ];
        let held = self.claims.iter().map(|claim| claim::held(&claim.lease));
        held.chain([Call::new(READY, values)]).collect()
    }

    /// What each claim gets of what is ready, and of what the rows of the batch make ready, which is as much as `n_ready`.
    /// Passes on whom this can't be said of.
    pub fn choose(&self, rows: &[Row<'_>], n_ready: u64, asked: &Asked, planted: Planted) -> Chosen {
        let (fresh, touched) = if self.claims.is_empty() { Default::default() } else { touched(rows) };
        let is_open = |Claimed { run, .. }: &Claimed| !run.lane.is_limited() && !self.is_capped(run);
        let is_clear = fresh.len() as u64 == n_ready
            && fresh.values().all(is_open)
            && !asked.is_sent_again
            && !asked.ready.iter().any(|ready| touched.holds(ready));
        let open = asked.ready.iter().map(|ready| ready.candidate.clone());
        let mut candidates: Candidates = open.map(|candidate| (candidate, Requirements::default())).collect();
        candidates.extend(fresh.values().filter_map(candidate));
        let choose = |claim: &&Claim| {
            let is_known = is_clear && !touched.workers.contains(&claim.lease.worker);
            if is_known { self.choose_for(claim, &mut candidates, asked, planted) } else { None }
        };
        Chosen { runs: self.claims.iter().map(choose).collect(), fresh }
    }

    fn is_capped(&self, run: &Run) -> bool {
        self.claims.iter().any(|claim| claim.shares.of(&run.lane.namespace).limit.is_some())
    }

    fn choose_for(
        &self,
        claim: &Claim,
        candidates: &mut Candidates,
        asked: &Asked,
        planted: Planted,
    ) -> Option<Vec<RunId>> {
        let worker = asked.workers.get(&claim.lease.worker);
        let admitted = worker.filter(|worker| self.turns.admit(&claim.lease, worker, planted));
        let Some(worker) = admitted.filter(|worker| worker.standing == Standing::Open) else {
            return Some(Vec::new());
        };
        let is_guarded = |lane: &&Lane| {
            lane.limit.is_some()
                || !lane.requires.is_empty()
                || claim.shares.of(&lane.namespace).limit.is_some()
        };
        if asked.others.iter().filter(is_guarded).any(|lane| worker.offer.meets(&lane.requires)) {
            return None;
        }
        let fits = candidates.iter().filter(|(_, requires)| worker.offer.meets(requires));
        let fits = fits.map(|(candidate, _)| candidate.clone()).collect();
        let chosen = self.turns.choose(fits, Rooms::default(), claim);
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
                "worker" => drop(asked.workers.insert(row.text(1)?.to_owned(), claim::worker(row)?)),
                "held" => asked.is_sent_again = true,
                "ready" => asked.add(row)?,
                _ => {}
            }
        }
        Ok(asked)
    }

    fn add(&mut self, row: &Found) -> Result<(), Failed> {
        let lane = claim::lane(row)?;
        match row.optional_number(6)? {
            Some(rank) => {
                let (run, rank) = (row.id(5)?, rank.cast_signed());
                let candidate = Candidate { run, namespace: lane.namespace, class: lane.class, rank };
                self.ready.push(Ready { candidate, task: row.id(7)?, session: row.id(8)? });
            }
            None => self.others.push(lane),
        }
        Ok(())
    }

    /// How many were locked.
    pub fn n_ready(&self) -> usize {
        self.ready.len()
    }
}

/// What a batch writes to.
#[derive(Default)]
struct Touched {
    runs: BTreeSet<RunId>,
    tasks: BTreeSet<TaskId>,
    sessions: BTreeSet<SessionId>,
    workers: BTreeSet<String>,
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
