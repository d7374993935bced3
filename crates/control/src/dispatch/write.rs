//! A worker's writes: its journal, and how it leaves a run.

use ostler_kernel::{
    Expect, Refusal, RunId,
    bundle::{Reason, WriteKey},
    run::{
        RunView,
        end::{Leave, leave},
        hand_on::{Next, hand_on},
        journal::journal,
    },
};
use ostler_link::{Caller, JournalRequest, LeaveRequest, LinkError};
use ostler_store::StoreExt;

use super::unavailable;
use crate::{Control, commands::create_task::subject, leases::is_held_by};

impl Control {
    pub(super) async fn journal(&self, request: JournalRequest) -> Result<(), LinkError> {
        let JournalRequest { caller, key, progress } = request;
        let view = self.held(&caller, key).await?;
        let bundle = journal(&view.run, key, &progress, self.runtime.now());
        let answer = self.commit(bundle.clone()).await;
        match answer.map_err(|error| self.in_doubt(key, error))? {
            Ok(committed) if committed.duplicate => self.leases.drop(key.run),
            Ok(_) => self.leases.absorb(key, &bundle),
            Err(refusal) => return Err(self.refused(key, refusal)),
        }
        Ok(())
    }

    pub(super) async fn leave(&self, request: LeaveRequest) -> Result<(), LinkError> {
        let LeaveRequest { caller, key, progress, leave: how } = request;
        let mut view = self.held(&caller, key).await?;
        loop {
            let (now, random) = (self.runtime.now(), self.runtime.random());
            let handed_on = match &how {
                Leave::Ok { output } => match self.next(&view).await? {
                    Some(next) => hand_on(&view, key, &progress, output, next, now),
                    None => None,
                },
                _ => None,
            };
            let bundle = handed_on.unwrap_or_else(|| leave(&view, key, &progress, how.clone(), now, random));
            let answer = self.commit(bundle).await;
            match answer.map_err(|error| self.in_doubt(key, error))? {
                Ok(_) => {
                    self.leases.drop(key.run);
                    return Ok(());
                }
                Err(refusal) => match refusal.unmet() {
                    // Someone spoke in the session, or the run behind this one was cancelled: look again.
                    Some(Expect::Session { .. } | Expect::SessionKey { .. }) => {
                        view = self.read_held(key.run).await?;
                    }
                    Some(Expect::Inputs { .. }) => return Err(LinkError::InputArrived),
                    _ => return Err(self.refused(key, refusal)),
                },
            }
        }
    }

    /// Where the next agent of a system will work, if there is one.
    async fn next(&self, view: &RunView) -> Result<Option<Next>, LinkError> {
        let Some((stage, _)) = view.next_stage() else { return Ok(None) };
        let subject = subject(&view.task.request, &stage.agent);
        let key = view.task.request.session_key.clone();
        let session = self.session(&view.task.namespace, &subject, key).await.map_err(unavailable)?;
        let lane = self.lane_now(&stage.lane);
        Ok(Some(Next { run: RunId::new(&*self.runtime), session, lane }))
    }

    /// The run as this server knows it, or else as the store does.
    async fn held(&self, caller: &Caller, key: WriteKey) -> Result<RunView, LinkError> {
        if key.number == 0 {
            return Err(LinkError::Rejected { message: "writes are numbered from 1".into() });
        }
        let known = self.leases.get(key.run).filter(|view| view.run.epoch == key.epoch);
        let view = match known {
            Some(view) if view.run.journal + 1 == key.number => view,
            _ => {
                let view = self.read_held(key.run).await?;
                // Its worker came from another server, or this one was restarted: from now on it is known here.
                if is_held_by(&view.run, caller) {
                    self.leases.put(view.clone());
                }
                view
            }
        };
        // Without a lease it has been left, by this very write perhaps: the store knows.
        let is_open = view.run.lease().is_none() || is_held_by(&view.run, caller);
        if is_open { Ok(view) } else { Err(LinkError::Fenced { found: "another worker".into() }) }
    }

    pub(super) async fn read_held(&self, run: RunId) -> Result<RunView, LinkError> {
        let view = self.store.run_view(run).await.map_err(unavailable)?;
        view.map(|view| *view).ok_or_else(|| LinkError::Fenced { found: "no such run".into() })
    }

    fn refused(&self, key: WriteKey, refusal: Refusal) -> LinkError {
        self.leases.drop(key.run);
        match refusal.reason {
            Reason::Unmet { found, .. } => LinkError::Fenced { found },
            // The run is the worker's, but what it wrote can't be true.
            Reason::Clash { .. } | Reason::Inputs { .. } => {
                LinkError::Rejected { message: refusal.to_string() }
            }
        }
    }

    /// Nobody knows whether it counted: forget what we believed, and let the worker send it again.
    fn in_doubt(&self, key: WriteKey, error: ostler_store::StoreError) -> LinkError {
        self.leases.drop(key.run);
        unavailable(error)
    }
}
