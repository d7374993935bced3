//! A worker says that it lives and what it holds; both sides learn where they differ.

use std::time::Duration;

use ostler_kernel::{Run, RunId, run::take_over::Cause, worker};
use ostler_link::{LinkError, RenewRequest, Renewed};
use ostler_store::StoreExt;

use super::unavailable;
use crate::Control;

impl Control {
    /// The runs the worker believes to hold and doesn't. Runs that were given to it in a claim whose answer
    /// it never got are given to others.
    pub(super) async fn renew(&self, request: RenewRequest) -> Result<Renewed, LinkError> {
        let RenewRequest { caller, counter, claimed, held, lease_ms } = request;
        let bundle = worker::renew(&caller.worker, caller.incarnation, counter);
        if self.commit(bundle).await.map_err(unavailable)?.is_err() {
            return Err(LinkError::Superseded);
        }
        self.waiting.heard(&caller.worker, caller.incarnation);
        let (at, on) = (self.runtime.monotonic(), self.runtime.now());
        self.workers.heard(&caller, counter, lease_ms.map(Duration::from_millis), at, on);
        let leased = self.store.leased(Some(caller.worker.clone())).await.map_err(unavailable)?;
        for run in &leased {
            let unknown = run.lease().filter(|lease| {
                lease.incarnation == caller.incarnation
                    && lease.claim <= claimed
                    && !held.contains(&(run.id, run.epoch))
            });
            if let Some(lease) = unknown {
                self.take(run.id, lease, Cause::Untold, None).await?;
            }
        }
        self.leases.keep_held(&caller, claimed, &held);
        if self.store.is_shared() {
            self.get_to_know(&leased, &held).await?;
        }
        let is_held = |held: &(RunId, u64)| leased.iter().any(|run| (run.id, run.epoch) == *held);
        let lost = held.into_iter().filter(|held| !is_held(held)).collect();
        let drain = self.is_draining(&caller.worker).await?;
        Ok(Renewed { lost, drain, lease_ms: Some(self.lease_ms()) })
    }

    /// A worker that came from another server holds runs that were handed out there. What others do to them concerns
    /// this server from now on.
    async fn get_to_know(&self, leased: &[Run], held: &[(RunId, u64)]) -> Result<(), LinkError> {
        let is_new = |run: &&Run| held.contains(&(run.id, run.epoch)) && !self.leases.knows(run.id);
        for run in leased.iter().filter(is_new) {
            let view = self.store.run_view(run.id).await.map_err(unavailable)?;
            if let Some(view) = view {
                self.leases.put(*view);
            }
        }
        Ok(())
    }
}
