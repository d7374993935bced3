//! The worker port over the store: what a worker may ask, checked against its own leases.

mod assign;
mod portions;
mod register;
mod renew;
mod secret;
mod write;

use std::time::Duration;

use async_trait::async_trait;
use ostler_kernel::{Lease, task::input::Input};
use ostler_link::{
    Assignment, ClaimRequest, DeltasRequest, InputsRequest, LinkError, Request, Response, WorkerPort,
};
use ostler_store::{StoreError, StoreExt};

pub use portions::Portions;
use portions::portion;

use crate::{
    Control,
    feed::Feed,
    leases::is_held_by,
    waiting::{Seen, Waited},
};

#[async_trait]
impl WorkerPort for Control {
    async fn call(&self, request: Request) -> Result<Response, LinkError> {
        match request {
            Request::Register(request) => self.register(request).await.map(Response::Registered),
            Request::Claim(request) => self.claim(request).await.map(Response::Assigned),
            Request::Journal(request) => self.journal(request).await.map(Response::Journaled),
            Request::Leave(request) => self.leave(request).await.map(Response::Left),
            Request::Renew(request) => self.renew(request).await.map(Response::Renewed),
            Request::Signals(request) => {
                let wait = Duration::from_millis(request.wait_ms);
                Ok(Response::Signals(self.signals.fetch(&*self.runtime, &request.caller, wait).await))
            }
            Request::Inputs(request) => self.inputs(request).await.map(Response::Inputs),
            Request::Deltas(request) => {
                self.show(request);
                Ok(Response::Shown(()))
            }
            Request::Secret(request) => self.secret(request).await.map(Response::Secret),
        }
    }
}

impl Control {
    /// Waits for runs that are ready. No polling: whoever makes one ready takes this claim along, or else the
    /// store tells; and the worker asks again after its wait, which repairs a wake-up that was lost.
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Assignment>, LinkError> {
        let (mut hints, mut quotas) = (self.store.watch(), self.quotas.watch());
        let deadline = self.runtime.monotonic() + Duration::from_millis(request.wait_ms);
        let lease = Lease {
            worker: request.caller.worker,
            incarnation: request.caller.incarnation,
            claim: request.number,
        };
        let slots = self.portions.slots(&lease, request.slots);
        let mut emptied = self.waiting.take_emptied(&lease);
        loop {
            let left = deadline.saturating_sub(self.runtime.monotonic());
            if self.waiting.is_silent(&lease) {
                if left.is_zero() {
                    return Ok(Vec::new());
                }
                self.runtime.sleep(left.min(self.config.lease / 4)).await;
                continue;
            }
            let seen = Seen { ready: hints.borrow().ready, quotas: quotas.borrow().n_changes };
            let mut claimed = match emptied.take() {
                Some(emptied) if emptied == seen && !self.waiting.is_unclaimed() => Vec::new(),
                _ => {
                    let claim = self.claim_of(lease.clone(), slots);
                    self.store.claim(claim).await.map_err(unavailable)?
                }
            };
            if claimed.is_empty() {
                let left = deadline.saturating_sub(self.runtime.monotonic());
                let changed = async {
                    tokio::select! {
                        _ = hints.wait_for(|hint| hint.ready != seen.ready) => {}
                        _ = quotas.wait_for(|known| known.n_changes != seen.quotas) => {}
                    }
                };
                let place = self.waiting.join(lease.clone(), slots);
                match place.wait(&*self.runtime, left, changed).await {
                    Waited::Answered(answer) => {
                        claimed = answer.map_err(unavailable)?;
                        if claimed.is_empty() {
                            emptied = Some(seen);
                        } else {
                            self.waiting.set_emptied(lease.clone(), seen);
                        }
                    }
                    Waited::Woken => {}
                    Waited::TimeIsUp => return Ok(Vec::new()),
                }
            }
            if !claimed.is_empty() {
                return self.assignments(&lease, claimed).await;
            }
        }
    }

    async fn inputs(&self, request: InputsRequest) -> Result<Vec<Input>, LinkError> {
        let InputsRequest { caller, run, task, after } = request;
        if !self.leases.is_held(run, task, &caller) {
            let view = self.read_held(run).await?;
            if view.run.task != task || !is_held_by(&view.run, &caller) {
                return Err(LinkError::Fenced { found: "another worker".into() });
            }
        }
        let inputs = self.store.inputs(task, after).await.map_err(unavailable)?;
        // Whoever wants to leave without the rest is told that there is more.
        Ok(portion(inputs))
    }

    /// Shows what comes of runs that the caller holds, as far as this server knows of them: the rest is only missed.
    fn show(&self, request: DeltasRequest) {
        let DeltasRequest { caller, deltas } = request;
        for delta in deltas {
            if self.leases.is_held(delta.run, delta.task, &caller) {
                self.feed.show(delta.task, Feed::Delta(delta));
            }
        }
    }
}

/// Whatever is wrong with the store, the worker's only way on is to ask again.
pub(crate) fn unavailable(error: StoreError) -> LinkError {
    LinkError::Unavailable { message: error.to_string() }
}
