//! A worker says that it lives and what it holds; both sides learn where they differ.

use ostler_kernel::{RunId, run::take_over::Cause, worker};
use ostler_link::{LinkError, RenewRequest};
use ostler_store::StoreExt;

use super::unavailable;
use crate::Control;

impl Control {
    /// The runs the worker believes to hold and doesn't. Runs that were given to it in a claim whose answer
    /// it never got are given to others.
    pub(super) async fn renew(&self, request: RenewRequest) -> Result<Vec<(RunId, u64)>, LinkError> {
        let RenewRequest { caller, counter, claimed, held } = request;
        let bundle = worker::renew(&caller.worker, caller.incarnation, counter);
        if self.commit(bundle).await.map_err(unavailable)?.is_err() {
            return Err(LinkError::Superseded);
        }
        let leased = self.store.leased(Some(caller.worker)).await.map_err(unavailable)?;
        for run in &leased {
            let unknown = run.lease().filter(|lease| {
                lease.incarnation == caller.incarnation
                    && lease.claim <= claimed
                    && !held.contains(&(run.id, run.epoch))
            });
            if let Some(lease) = unknown {
                self.take(run.id, lease, Cause::Restarted, None).await?;
            }
        }
        let is_held = |held: &(RunId, u64)| leased.iter().any(|run| (run.id, run.epoch) == *held);
        Ok(held.into_iter().filter(|held| !is_held(held)).collect())
    }
}
