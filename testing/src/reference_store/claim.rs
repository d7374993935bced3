//! Claims: which ready runs a lease gets.

use std::collections::{BTreeMap, BTreeSet};

use ostler_kernel::{
    Lease, RunId, RunTag,
    queue::{self, Candidate, Lane, Requirements, Rooms},
    run::claim,
    worker::{Offer, Standing},
};
use ostler_store::{Claim, Claimed};

use super::tables::Tables;

impl Tables {
    pub fn claim(&mut self, claim: &Claim) -> Vec<Claimed> {
        let lease = &claim.lease;
        let Some(worker) = self.workers.get(&lease.worker).cloned() else { return Vec::new() };
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
        if worker.standing != Standing::Open {
            return Vec::new();
        }
        let (candidates, rooms) = self.candidates(claim, &worker.offer);
        let chosen = queue::choose(candidates, claim.slots, rooms, &claim.shares, &mut self.served);
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

    /// Of each lane that the worker may serve the first runs in its order, no more than there is room for.
    fn candidates(&self, claim: &Claim, offer: &Offer) -> (Vec<Candidate>, Rooms) {
        let mut ready: BTreeMap<(String, String, Requirements), BTreeSet<(i64, RunId)>> = BTreeMap::new();
        for run in self.runs.values() {
            if let Some(rank) = run.rank().filter(|_| offer.meets(&run.lane.requires)) {
                let Lane { namespace, class, requires, .. } = run.lane.clone();
                ready.entry((namespace, class, requires)).or_default().insert((rank, run.id));
            }
        }
        let (mut candidates, mut rooms) = (Vec::new(), Rooms::default());
        for ((namespace, class, _), runs) in ready {
            self.look_for_room(&namespace, &class, claim, &mut rooms);
            let first = runs.into_iter().take(claim.slots.min(rooms.of(&namespace, &class)));
            candidates.extend(first.map(|(rank, run)| {
                let (namespace, class) = (namespace.clone(), class.clone());
                Candidate { run, namespace, class, rank }
            }));
        }
        (candidates, rooms)
    }

    fn look_for_room(&self, namespace: &str, class: &str, claim: &Claim, rooms: &mut Rooms) {
        let running = |is_meant: &dyn Fn(&Lane) -> bool| {
            self.runs.values().filter(|run| run.tag() == RunTag::Running && is_meant(&run.lane)).count()
        };
        let of_class = (namespace.to_owned(), class.to_owned());
        if let Some(limit) = self.classes.get(&of_class).copied().flatten() {
            let busy = running(&|lane| lane.namespace == namespace && lane.class == class);
            rooms.classes.insert(of_class, (limit as usize).saturating_sub(busy));
        }
        if let Some(limit) = claim.shares.of(namespace).limit {
            let busy = running(&|lane| lane.namespace == namespace);
            rooms.namespaces.insert(namespace.to_owned(), (limit as usize).saturating_sub(busy));
        }
    }

    fn give(&mut self, run: RunId, claim: &Claim) -> Option<Claimed> {
        let Claimed { task, run, session } = self.claimed(run)?;
        let (run, writes) = claim::claim(&task, &run, &session, claim.lease.clone(), claim.now);
        writes.into_iter().for_each(|write| self.apply(write));
        self.claimed(run.id).map(|claimed| Claimed { run, ..claimed })
    }

    fn claimed(&self, run: RunId) -> Option<Claimed> {
        let run = self.runs.get(&run)?.clone();
        let task = self.tasks.get(&run.task)?.task.clone();
        let session = self.sessions.get(&run.session)?.clone();
        Some(Claimed { task, run, session })
    }
}
