//! Claims runs whenever there is a free slot, and sets agents to work on them.

use std::{sync::Arc, time::Duration};

use ostler_link::{Assignment, ClaimRequest, LinkError, WorkerPortExt};
use tracing::Instrument as _;

use crate::{Backoff, Incarnation, Over, ahead::Named, insist, run_port::RunPort, secrets::Holder};

/// How long a claim waits for work before it is asked again.
const WAIT: Duration = Duration::from_secs(20);

impl Incarnation {
    pub(crate) async fn claim_runs(&self) -> Over {
        let mut number = 0;
        let mut delay = Backoff::new();
        loop {
            self.held.wait_until_below(self.slots).await;
            number += 1;
            self.held.send_claim(number);
            let request = ClaimRequest {
                caller: self.caller.clone(),
                number,
                slots: self.slots.saturating_sub(self.held.len()),
                wait_ms: WAIT.as_millis() as u64,
            };
            let port = &self.equipment.port;
            match insist(&*self.equipment.runtime, || port.claim(request.clone())).await {
                Ok(assignments) => {
                    delay = Backoff::new();
                    for assignment in assignments {
                        self.set_to_work(assignment);
                    }
                    self.held.claim_answered(number);
                }
                Err(LinkError::Superseded) => return Over::Superseded,
                Err(error) => {
                    tracing::error!(%error, "a claim was refused");
                    delay.wait(&*self.equipment.runtime).await;
                }
            }
        }
    }

    fn set_to_work(&self, assignment: Assignment) {
        let (id, epoch) = (assignment.run.id, assignment.run.epoch);
        let named = Arc::new(Named::by(&assignment.plan));
        let port = Arc::new(RunPort::new(assignment, self));
        self.held.insert(id, Arc::clone(&port));
        let (held, caller) = (Arc::clone(&self.held), self.caller.clone());
        let runner = Arc::clone(&self.equipment.runner);
        let work = async move {
            let trace = Arc::clone(port.trace());
            let span =
                tracing::error_span!("run", task = %port.task(), run = %id, trace_id = %trace.trace_id());
            let running = trace.scope(async {
                if let Err(stopped) = runner.run(&*port).await {
                    tracing::debug!(%stopped, "stopped");
                }
            });
            let holder = Holder { caller, held: Arc::clone(&held), named };
            holder.scope(running.instrument(span)).await;
            held.remove(id, epoch);
        };
        let spawned = self.equipment.runtime.spawn("run", Box::pin(work));
        self.held.started(id, epoch, spawned);
    }
}
