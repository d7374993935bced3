//! What a store remembers of claims between them, and may lose.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ostler_kernel::{
    Lease, RunId, Worker,
    queue::{self, Candidate, Rooms, Shares},
};

use crate::planted::{Bug, Planted};

/// Workers whose last claims are remembered. Past it all are forgotten: a claim that was overtaken on its way is then served once,
/// and what it is given comes back with its worker's next renewal.
const ROOM: usize = 10_000;

#[derive(Clone, Default)]
pub struct Turns {
    /// How often each namespace was served lately.
    pub served: BTreeMap<String, u64>,
    /// The last claim of each worker, as incarnation and number, whether it got something or not.
    asked: BTreeMap<String, (u64, u64)>,
}

impl Turns {
    /// Whether a claim is its worker's to make: of its present incarnation, and no later one was made before it.
    pub fn admit(&mut self, lease: &Lease, worker: &Worker, planted: Planted) -> bool {
        if worker.incarnation != lease.incarnation && !planted.is(Bug::FormerIncarnation) {
            return false;
        }
        let overtaken = lease.claim < worker.claims || self.overtook(lease);
        !overtaken || planted.is(Bug::OvertakenClaim)
    }

    fn overtook(&mut self, lease: &Lease) -> bool {
        let this = (lease.incarnation, lease.claim);
        if self.asked.len() >= ROOM && !self.asked.contains_key(&lease.worker) {
            self.asked.clear();
        }
        let last = self.asked.entry(lease.worker.clone()).or_insert(this);
        *last = this.max(*last);
        this < *last
    }
}

/// The same for several who claim at once.
#[derive(Default)]
pub struct SharedTurns(Mutex<Turns>);

impl SharedTurns {
    pub fn admit(&self, lease: &Lease, worker: &Worker, planted: Planted) -> bool {
        self.lock().admit(lease, worker, planted)
    }

    pub fn choose(
        &self,
        candidates: Vec<Candidate>,
        slots: usize,
        rooms: Rooms,
        shares: &Shares,
    ) -> Vec<RunId> {
        queue::choose(candidates, slots, rooms, shares, &mut self.lock().served)
    }

    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
