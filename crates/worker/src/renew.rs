//! Keeps the lease: one counter for all runs. By our own clock, so that nobody's calendar matters.

use std::{sync::atomic::Ordering, time::Duration};

use ostler_kernel::runtime::timeout;
use ostler_link::{LinkError, RenewRequest, Renewed, WorkerPortExt};

use crate::{Incarnation, Over};

impl Incarnation {
    /// Renews until that fails for the length of a lease. The lease counts from when a renewal was *sent*:
    /// the judge can't have seen it earlier.
    pub(crate) async fn keep_renewed(&self) -> Over {
        let runtime = &*self.equipment.runtime;
        let pause = self.lease / 4;
        loop {
            let sent_at = runtime.monotonic();
            if !self.held.lease_stands(sent_at) {
                return Over::Expired;
            }
            let counter = self.held.next_counter();
            let silent = sent_at.saturating_sub(self.held.renewed_at());
            let (claimed, held) = self.held.claimed_and_held();
            let request = RenewRequest { caller: self.caller.clone(), counter, claimed, held };
            let left = self.lease.saturating_sub(silent);
            match timeout(runtime, left.min(self.lease / 2), self.equipment.port.renew(request)).await {
                Ok(Ok(Renewed { lost, drain })) => {
                    self.held.renewed(sent_at, self.lease);
                    self.drain(drain);
                    lost.into_iter().for_each(|(run, epoch)| self.held.abort(run, epoch));
                }
                Ok(Err(LinkError::Superseded)) => return Over::Superseded,
                Ok(Err(error)) => tracing::debug!(%error, "a renewal failed"),
                Err(error) => tracing::debug!(%error, "a renewal was not answered"),
            }
            runtime.sleep(pause.max(Duration::from_millis(1))).await;
        }
    }

    /// Someone wants this worker empty, or doesn't any more.
    fn drain(&self, drain: bool) {
        if self.draining.swap(drain, Ordering::SeqCst) != drain {
            let worker = &self.caller.worker;
            if drain {
                tracing::info!(worker, "draining: runs are given back as their steps end");
            } else {
                tracing::info!(worker, "at work again");
            }
        }
    }
}
