//! Follows what the server has to say about runs that are under way. Only hints: what is lost here comes
//! back with the next renewal, or when the run wants to leave.

use std::time::Duration;

use ostler_link::{LinkError, SignalKind, SignalsRequest, WorkerPortExt};

use crate::{Backoff, Incarnation, Over};

const WAIT: Duration = Duration::from_secs(20);

impl Incarnation {
    pub(crate) async fn follow_signals(&self) -> Over {
        let mut delay = Backoff::new();
        loop {
            let request = SignalsRequest { caller: self.caller.clone(), wait_ms: WAIT.as_millis() as u64 };
            match self.equipment.port.signals(request).await {
                Ok(signals) => {
                    delay = Backoff::new();
                    for signal in signals {
                        match signal.kind {
                            SignalKind::Stop => self.held.abort(signal.run, signal.epoch),
                            SignalKind::Input => self.held.input_came(signal.run),
                        }
                    }
                }
                Err(LinkError::Superseded) => return Over::Superseded,
                Err(error) => {
                    tracing::debug!(%error, "signals can't be followed");
                    delay.wait(&*self.equipment.runtime).await;
                }
            }
        }
    }
}
