//! A worker, as a store sees it: a name, an incarnation, and claims with numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use ostler_kernel::{
    Lease, RunId, Worker,
    queue::Shares,
    worker::{Offer, Standing, register, renew, stand},
};

use super::World;
use crate::{Claim, Claimed, StoreExt};

pub struct Hand<'w> {
    world: &'w World,
    pub name: String,
    pub incarnation: u64,
    claims: AtomicU64,
}

impl<'w> Hand<'w> {
    /// Starts the worker, again if it was there before.
    pub(super) async fn register(world: &'w World, name: &str, offer: Offer) -> Self {
        let (former, instance) = (row(world, name).await, world.fresh());
        let (worker, bundle) = register(name, instance, offer, former.as_ref(), world.now());
        world.must(bundle).await;
        let incarnation = worker.incarnation;
        Self { world, name: worker.name, incarnation, claims: AtomicU64::new(0) }
    }

    pub async fn row(&self) -> Worker {
        row(self.world, &self.name).await.expect("the worker is there")
    }

    /// The lease of its `claim`-th claim.
    pub fn lease(&self, claim: u64) -> Lease {
        Lease { worker: self.name.clone(), incarnation: self.incarnation, claim }
    }

    /// Makes its next claim.
    pub async fn claim(&self, slots: usize) -> Vec<Claimed> {
        let number = self.claims.fetch_add(1, Ordering::Relaxed) + 1;
        self.claim_number(number, slots).await
    }

    /// Makes its last claim again, as if the answer had been lost.
    pub async fn claim_again(&self, slots: usize) -> Vec<Claimed> {
        self.claim_number(self.claims.load(Ordering::Relaxed), slots).await
    }

    pub async fn claim_number(&self, number: u64, slots: usize) -> Vec<Claimed> {
        let claim = Claim::new(self.lease(number), slots, self.world.now());
        self.world.store.claim(claim).await.expect("the store answers")
    }

    /// Which runs its next claim gets, in the order they were given.
    pub async fn claim_runs(&self, slots: usize) -> Vec<RunId> {
        self.claim(slots).await.into_iter().map(|claimed| claimed.run.id).collect()
    }

    /// Which runs its next claim gets if namespaces share so.
    pub async fn claim_sharing(&self, slots: usize, shares: &Shares) -> Vec<RunId> {
        let number = self.claims.fetch_add(1, Ordering::Relaxed) + 1;
        let claim =
            Claim { shares: shares.clone(), ..Claim::new(self.lease(number), slots, self.world.now()) };
        let claimed = self.world.store.claim(claim).await.expect("the store answers");
        claimed.into_iter().map(|claimed| claimed.run.id).collect()
    }

    /// Someone decides about it.
    pub async fn stand(&self, standing: Standing) {
        self.world.must(stand(&self.row().await, standing)).await;
    }

    pub fn renew(&self, counter: u64) -> ostler_kernel::Bundle {
        renew(&self.name, self.incarnation, counter)
    }
}

async fn row(world: &World, name: &str) -> Option<Worker> {
    let workers = world.store.workers().await.expect("the store answers");
    workers.into_iter().find(|worker| worker.name == name)
}
