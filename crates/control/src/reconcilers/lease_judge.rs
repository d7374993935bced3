//! Decides which workers are dead: those whose counter stood still for the length of a lease, by this
//! server's own clock. A judge that has just started has seen nobody yet, so it waits one full length.

use ostler_kernel::{Expect, Worker, run::take_over::Cause};
use ostler_link::LinkError;
use ostler_store::StoreExt;

use crate::{Control, dispatch::unavailable};

impl Control {
    pub(crate) async fn judge_leases(&self) {
        loop {
            if let Err(error) = self.judge_once().await {
                tracing::warn!(%error, "leases could not be judged");
            }
            self.signals.forget_unused();
            self.runtime.sleep(self.config.lease / 4).await;
        }
    }

    async fn judge_once(&self) -> Result<(), LinkError> {
        let now = self.runtime.monotonic();
        let workers = self.store.workers().await.map_err(unavailable)?;
        // A counter may have moved while it was being read: what is seen is seen now, not when we began to look.
        let read_at = self.runtime.monotonic();
        // Whoever will lose its runs soon, here or by another server's judgement, is given no others, nor the same again.
        let lease_of = |worker: &Worker| self.workers.lease_of(worker, self.config.lease);
        let silent =
            workers.iter().filter(|worker| self.workers.is_silent(worker, now, lease_of(worker) * 3 / 4));
        self.waiting.set_silent(silent.map(|worker| (worker.name.clone(), worker.incarnation)).collect());
        for run in self.store.leased(None).await.map_err(unavailable)? {
            let Some(lease) = run.lease() else { continue };
            let Some(worker) = workers.iter().find(|worker| worker.name == lease.worker) else { continue };
            if lease.incarnation < worker.incarnation {
                // Its worker registered anew, and the server was lost before it could give the run up.
                self.take(run.id, lease, Cause::Restarted, None).await?;
            } else if lease.incarnation == worker.incarnation
                && self.workers.is_silent(worker, now, lease_of(worker))
            {
                tracing::warn!(worker = worker.name, run = %run.id, "the worker is silent; its run is taken over");
                let Worker { incarnation, counter, .. } = *worker;
                // A sign of life that comes while this is decided still counts, and so does a new start.
                let seen = Some(Expect::Counter { worker: worker.name.clone(), incarnation, counter });
                self.take(run.id, lease, Cause::Silent, seen).await?;
            }
        }
        let today = self.runtime.now();
        workers.iter().for_each(|worker| self.workers.look(worker, read_at, today));
        Ok(())
    }
}
