//! A worker starts. What its former incarnation held is given to others at once.

use ostler_kernel::{
    BlockerId, Bundle, Expect, Lease, RunId, Worker,
    run::take_over::{Cause, take_over},
    worker,
};
use ostler_link::{Caller, LinkError, RegisterRequest, Registered};
use ostler_store::StoreExt;

use super::unavailable;
use crate::Control;

impl Control {
    pub(super) async fn register(&self, request: RegisterRequest) -> Result<Registered, LinkError> {
        let worker = match self.incarnation_of(request).await? {
            Ok(worker) => worker,
            Err(incarnation) => return Ok(Registered::Present { incarnation }),
        };
        let caller = Caller { worker: worker.name.clone(), incarnation: worker.incarnation };
        self.signals.forget_former(&caller);
        self.give_up_former(&worker.name, worker.incarnation).await?;
        let lease_ms = u64::try_from(self.config.lease.as_millis()).unwrap_or(u64::MAX);
        Ok(Registered::As { incarnation: worker.incarnation, lease_ms })
    }

    /// The worker as it is now registered, or the incarnation of another that has its name.
    async fn incarnation_of(&self, request: RegisterRequest) -> Result<Result<Worker, u64>, LinkError> {
        let RegisterRequest { name, instance, former } = request;
        loop {
            let workers = self.store.workers().await.map_err(unavailable)?;
            let present = workers.into_iter().find(|worker| worker.name == name);
            let incarnation = present.as_ref().map_or(0, |worker| worker.incarnation);
            match present {
                // The answer was lost; it is registered.
                Some(worker) if worker.instance == instance => return Ok(Ok(worker)),
                _ if incarnation != former => return Ok(Err(incarnation)),
                _ => {}
            }
            let now = self.runtime.now();
            let (worker, bundle) = worker::register(&name, instance, present.as_ref(), now);
            if self.commit(bundle).await.map_err(unavailable)?.is_ok() {
                return Ok(Ok(worker));
            }
            // Someone was quicker: another one of the same name, or this very request, sent twice. Look again.
        }
    }

    /// Takes from a worker what it held before its present incarnation.
    pub(crate) async fn give_up_former(&self, name: &str, incarnation: u64) -> Result<(), LinkError> {
        for run in self.store.leased(Some(name.to_owned())).await.map_err(unavailable)? {
            if let Some(lease) = run.lease().filter(|lease| lease.incarnation < incarnation) {
                self.take(run.id, lease, Cause::Restarted, None).await?;
            }
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
        let Some(view) = self.store.run_view(run).await.map_err(unavailable)? else { return Ok(()) };
        if view.run.lease() != Some(lease) {
            return Ok(());
        }
        let quarantine = BlockerId::new(&*self.runtime);
        let Ok(bundle) = take_over(&view, cause, quarantine, self.runtime.now()) else { return Ok(()) };
        let bundle = seen.into_iter().fold(bundle, Bundle::expect);
        if self.commit(bundle).await.map_err(unavailable)?.is_ok() {
            self.stopped(&view);
        }
        Ok(())
    }
}
