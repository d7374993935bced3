//! Claims: which ready runs a lease gets.

use std::collections::{BTreeMap, BTreeSet};

use ostler_kernel::{
    Lease, Run, RunId, RunTag,
    queue::{self, Candidate},
    run::claim,
};
use ostler_store::{Claim, Claimed};

use super::tables::Tables;

impl Tables {
    pub fn claim(&mut self, claim: &Claim) -> Vec<Claimed> {
        let lease = &claim.lease;
        let Some(worker) = self.workers.get(&lease.worker) else { return Vec::new() };
        if worker.incarnation != lease.incarnation || lease.claim < worker.claims {
            return Vec::new();
        }
        if self.was_overtaken(lease) {
            return Vec::new();
        }
        let held: Vec<RunId> =
            self.runs.values().filter(|run| run.lease() == Some(lease)).map(|run| run.id).collect();
        if !held.is_empty() {
            return held.into_iter().filter_map(|run| self.claimed(run)).collect();
        }
        let chosen = queue::choose(self.candidates(claim.slots), claim.slots, &mut self.served);
        if !chosen.is_empty() {
            self.remember(lease);
        }
        chosen.into_iter().filter_map(|run| self.give(run, claim)).collect()
    }

    /// Whether a later claim of its worker was made before this one.
    fn was_overtaken(&mut self, lease: &Lease) -> bool {
        let this = (lease.incarnation, lease.claim);
        let last = self.asked.entry(lease.worker.clone()).or_insert(this);
        *last = this.max(*last);
        this < *last
    }

    /// A claim that got nothing is not written down: it can be made again under its number.
    fn remember(&mut self, lease: &Lease) {
        if let Some(worker) = self.workers.get_mut(&lease.worker) {
            worker.claims = lease.claim;
        }
    }

    /// Of each lane the first runs in its order, no more than the lane has room for.
    fn candidates(&self, slots: usize) -> Vec<Candidate> {
        let mut ready: BTreeMap<(String, String), BTreeSet<(i64, RunId)>> = BTreeMap::new();
        for run in self.runs.values() {
            if let Some(rank) = run.rank() {
                ready.entry(lane_of(run)).or_default().insert((rank, run.id));
            }
        }
        let mut candidates = Vec::new();
        for (lane, runs) in ready {
            let first = runs.into_iter().take(slots.min(self.room(&lane)));
            let namespace = lane.0;
            candidates.extend(first.map(|(rank, run)| Candidate { run, namespace: namespace.clone(), rank }));
        }
        candidates
    }

    fn room(&self, lane: &(String, String)) -> usize {
        let Some(limit) = self.lanes.get(lane).copied().flatten() else { return usize::MAX };
        let running =
            self.runs.values().filter(|run| run.tag() == RunTag::Running && lane_of(run) == *lane).count();
        (limit as usize).saturating_sub(running)
    }

    fn give(&mut self, run: RunId, claim: &Claim) -> Option<Claimed> {
        let Claimed { task, run, session } = self.claimed(run)?;
        let (run, writes) = claim::claim(&task, &run, &session, claim.lease.clone(), claim.now);
        writes.into_iter().for_each(|write| self.apply(write));
        self.claimed(run.id)
    }

    fn claimed(&self, run: RunId) -> Option<Claimed> {
        let run = self.runs.get(&run)?.clone();
        let task = self.tasks.get(&run.task)?.task.clone();
        let session = self.sessions.get(&run.session)?.clone();
        Some(Claimed { task, run, session })
    }
}

fn lane_of(run: &Run) -> (String, String) {
    (run.lane.namespace.clone(), run.lane.class.clone())
}
