//! Keeps the lease: one counter for all runs. By our own clock, so that nobody's calendar matters.

use std::{sync::atomic::Ordering, time::Duration};

use ostler_kernel::runtime::timeout;
use ostler_link::{LinkError, RenewRequest, Renewed, WorkerPortExt};

use crate::{Incarnation, Over};

/// How soon a renewal that failed is tried again, at first and at most: a server that is back must not be found only when it is
/// too late.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

impl Incarnation {
    /// Renews until that fails for the length of a lease. The lease counts from when a renewal was *sent*:
    /// the judge can't have seen it earlier.
    pub(crate) async fn keep_renewed(&self) -> Over {
        let runtime = &*self.equipment.runtime;
        let mut n_failed = 0;
        loop {
            let sent_at = runtime.monotonic();
            if !self.held.lease_stands(sent_at) {
                return Over::Expired;
            }
            let counter = self.held.next_counter();
            let (lease, left) = (self.held.lease(), self.held.until().saturating_sub(sent_at));
            let (claimed, held) = self.held.claimed_and_held();
            let lease_ms = u64::try_from(lease.as_millis()).ok();
            let request = RenewRequest { caller: self.caller.clone(), counter, claimed, held, lease_ms };
            n_failed += 1;
            match timeout(runtime, left.min(lease / 2), self.equipment.port.renew(request)).await {
                Ok(Ok(Renewed { lost, drain, lease_ms })) => {
                    n_failed = 0;
                    self.held.renewed(sent_at, lease_ms.map(Duration::from_millis));
                    self.drain(drain);
                    lost.into_iter().for_each(|(run, epoch)| self.held.abort(run, epoch));
                }
                Ok(Err(LinkError::Superseded)) => return Over::Superseded,
                Ok(Err(error)) => tracing::debug!(%error, "a renewal failed"),
                Err(error) => tracing::debug!(%error, "a renewal was not answered"),
            }
            // Whoever is late stops what it runs when its lease ends, and not a pause later.
            let stands = self.held.until().saturating_sub(runtime.monotonic());
            let pause = pause(self.held.lease(), n_failed);
            runtime.sleep(pause.min(stands).max(Duration::from_millis(1))).await;
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

/// Before the next renewal, behind so many that failed in a row.
fn pause(lease: Duration, n_failed: u32) -> Duration {
    let (first, most) = AGAIN;
    let again = n_failed.checked_sub(1).map(|n| first.saturating_mul(2_u32.saturating_pow(n)).min(most));
    again.unwrap_or(lease).min(lease / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_that_failed_is_tried_again_soon_and_then_less_often() {
        let lease = Duration::from_secs(30);
        let pauses = [0, 1, 2, 6, 40].map(|n_failed| pause(lease, n_failed).as_millis());
        assert_eq!(pauses, [7500, 50, 100, 1000, 1000]);
        assert_eq!(pause(Duration::from_millis(100), 9), Duration::from_millis(25), "a short lease");
    }
}
