//! Decides which workers are dead: those whose counter stood still for the length of a lease, by this
//! server's own clock. A judge that has just started has seen nobody yet, so it waits one full length.

use std::{collections::BTreeMap, time::Duration};

use ostler_kernel::{Expect, Worker, run::take_over::Cause};
use ostler_link::LinkError;
use ostler_store::StoreExt;

use crate::Control;

/// What the judge last saw of a worker, and when.
struct Seen {
    incarnation: u64,
    counter: u64,
    at: Duration,
}

impl Control {
    pub(crate) async fn judge_leases(&self) {
        let mut seen = BTreeMap::new();
        loop {
            if let Err(error) = self.judge_once(&mut seen).await {
                tracing::warn!(%error, "leases could not be judged");
            }
            self.signals.forget_unused();
            self.runtime.sleep(self.config.lease / 4).await;
        }
    }

    async fn judge_once(&self, seen: &mut BTreeMap<String, Seen>) -> Result<(), LinkError> {
        let unavailable =
            |error: ostler_store::StoreError| LinkError::Unavailable { message: error.to_string() };
        let now = self.runtime.monotonic();
        let workers = self.store.workers().await.map_err(unavailable)?;
        // A counter may have moved while it was being read: what is seen is seen now, not when we began to look.
        let read_at = self.runtime.monotonic();
        // Whoever will lose its runs soon, here or by another server's judgement, is given no others, nor the same again.
        let soon = self.config.lease * 3 / 4;
        let silent = workers.iter().filter(|worker| is_silent(seen, worker, now, soon));
        self.waiting.set_silent(silent.map(|worker| (worker.name.clone(), worker.incarnation)).collect());
        for run in self.store.leased(None).await.map_err(unavailable)? {
            let Some(lease) = run.lease() else { continue };
            let Some(worker) = workers.iter().find(|worker| worker.name == lease.worker) else { continue };
            if lease.incarnation < worker.incarnation {
                // Its worker registered anew, and the server was lost before it could give the run up.
                self.take(run.id, lease, Cause::Restarted, None).await?;
            } else if lease.incarnation == worker.incarnation
                && is_silent(seen, worker, now, self.config.lease)
            {
                tracing::warn!(worker = worker.name, run = %run.id, "the worker is silent; its run is taken over");
                let Worker { incarnation, counter, .. } = *worker;
                // A sign of life that comes while this is decided still counts, and so does a new start.
                let seen = Some(Expect::Counter { worker: worker.name.clone(), incarnation, counter });
                self.take(run.id, lease, Cause::Silent, seen).await?;
            }
        }
        workers.iter().for_each(|worker| look(seen, worker, read_at));
        Ok(())
    }
}

fn is_silent(seen: &BTreeMap<String, Seen>, worker: &Worker, now: Duration, lease: Duration) -> bool {
    seen.get(&worker.name).is_some_and(|last| {
        last.incarnation == worker.incarnation
            && last.counter == worker.counter
            && now.saturating_sub(last.at) >= lease
    })
}

fn look(seen: &mut BTreeMap<String, Seen>, worker: &Worker, at: Duration) {
    let Worker { incarnation, counter, .. } = *worker;
    let moved =
        seen.get(&worker.name).is_none_or(|last| (last.incarnation, last.counter) != (incarnation, counter));
    if moved {
        seen.insert(worker.name.clone(), Seen { incarnation, counter, at });
    }
}
