//! A worker starts. What its former incarnation held is given to others at once.

use ostler_kernel::{
    BlockerId, Bundle, Expect, Lease, RunId, Worker,
    run::{
        RunView,
        take_over::{Cause, take_over},
    },
    worker,
};
use ostler_link::{Caller, LinkError, RegisterRequest, Registered};
use ostler_store::StoreExt;

use super::unavailable;
use crate::{Control, workers::worker_key};

impl Control {
    pub(super) async fn register(&self, request: RegisterRequest) -> Result<Registered, LinkError> {
        let worker = match self.incarnation_of(request).await? {
            Ok(worker) => worker,
            Err(incarnation) => return Ok(Registered::Present { incarnation }),
        };
        let caller = Caller { worker: worker.name.clone(), incarnation: worker.incarnation };
        self.signals.forget_former(&caller);
        let (at, on) = (self.runtime.monotonic(), self.runtime.now());
        self.workers.heard(&caller, worker.counter, None, at, on);
        self.give_up_former(&worker.name, worker.incarnation).await?;
        // Asked again, what was said the first time, by whichever server, is what others go by.
        let lease_ms = worker.offer.told_lease_ms.unwrap_or_else(|| self.lease_ms());
        Ok(Registered::As { incarnation: worker.incarnation, lease_ms })
    }

    pub(super) fn lease_ms(&self) -> u64 {
        u64::try_from(self.config.lease.as_millis()).unwrap_or(u64::MAX)
    }

    /// The worker as it is now registered, or the incarnation of another that has its name.
    async fn incarnation_of(&self, request: RegisterRequest) -> Result<Result<Worker, u64>, LinkError> {
        let RegisterRequest { name, instance, former, mut offer } = request;
        offer.told_lease_ms = Some(self.lease_ms());
        loop {
            let workers = self.store.workers().await.map_err(unavailable)?;
            let present = workers.into_iter().find(|worker| worker.name == name);
            let incarnation = present.as_ref().map_or(0, |worker| worker.incarnation);
            match present {
                // The answer was lost; it is registered.
                Some(worker) if worker.instance == instance => return Ok(Ok(worker)),
                Some(_) if incarnation != former => return Ok(Err(incarnation)),
                // One that was gone for so long that it was forgotten may come back.
                _ => {}
            }
            let now = self.runtime.now();
            let (worker, bundle) = match &present {
                Some(present) => worker::register(&name, instance, offer.clone(), Some(present), now),
                None => {
                    let floor = self.floor(&worker_key(&name)).await.map_err(unavailable)?;
                    let (worker, bundle) =
                        worker::register_behind(&name, instance, offer.clone(), floor.first() - 1, now);
                    (worker, floor.under(bundle))
                }
            };
            if self.commit(bundle).await.map_err(unavailable)?.is_ok() {
                return Ok(Ok(worker));
            }
            // Someone was quicker: another one of the same name, or this very request, sent twice. Look again.
        }
    }

    /// Takes from a worker what it held before its present incarnation, all of it in one commit.
    async fn give_up_former(&self, name: &str, incarnation: u64) -> Result<(), LinkError> {
        let leased = self.store.leased(Some(name.to_owned())).await.map_err(unavailable)?;
        let of_former = leased.iter().filter_map(|run| {
            run.lease().filter(|lease| lease.incarnation < incarnation).map(|lease| (run.id, lease))
        });
        self.take_all(of_former, Cause::Restarted).await
    }

    /// Takes these runs out of their worker's hands in one commit, those that still are in them.
    pub(super) async fn take_all(
        &self,
        leased: impl Iterator<Item = (RunId, &Lease)> + Send,
        cause: Cause,
    ) -> Result<(), LinkError> {
        let (mut views, mut bundles, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for (run, lease) in leased {
            if let Some((view, bundle)) = self.taking(run, lease, cause).await? {
                views.push(view);
                told.push(self.spans_of(&bundle).await);
                bundles.push(bundle);
            }
        }
        if bundles.is_empty() {
            return Ok(());
        }
        let results = self.store.commit(bundles).await.map_err(unavailable)?;
        let taken = views.iter().zip(told).zip(results).filter(|(_, result)| result.is_ok());
        for ((view, spans), _) in taken {
            self.stopped(view);
            spans.into_iter().for_each(|span| self.config.telemetry.tell(span));
        }
        Ok(())
    }

    /// Takes a run out of its worker's hands, if it still is in the same ones, and if what was seen of that
    /// worker still holds.
    pub(crate) async fn take(
        &self,
        run: RunId,
        lease: &Lease,
        cause: Cause,
        seen: Option<Expect>,
    ) -> Result<(), LinkError> {
        let Some((view, bundle)) = self.taking(run, lease, cause).await? else { return Ok(()) };
        let bundle = seen.into_iter().fold(bundle, Bundle::expect);
        if self.commit(bundle).await.map_err(unavailable)?.is_ok() {
            self.stopped(&view);
        }
        Ok(())
    }

    /// The bundle that takes a run over, if the lease still holds it.
    async fn taking(
        &self,
        run: RunId,
        lease: &Lease,
        cause: Cause,
    ) -> Result<Option<(RunView, Bundle)>, LinkError> {
        let view = self.store.run_view(run).await.map_err(unavailable)?;
        let Some(view) = view.filter(|view| view.run.lease() == Some(lease)) else { return Ok(None) };
        let quarantine = BlockerId::new(&*self.runtime);
        let bundle = take_over(&view, cause, quarantine, self.runtime.now());
        Ok(bundle.ok().map(|bundle| (*view, bundle)))
    }
}
