//! Passes text on as the model gives it: in order, many pieces at a time, and never in the way of the work.

use ostler_link::{DeltasRequest, WorkerPortExt};

use crate::Incarnation;

/// Pieces that may wait to be shown; more are dropped.
pub const ROOM: usize = 1024;

const AT_ONCE: usize = 256;

impl Incarnation {
    /// Ends only when nobody can emit any more, which is when the incarnation is over.
    pub(crate) async fn show_deltas(&self) {
        let mut emitted = self.emitted.lock().await;
        let mut batch = Vec::new();
        while emitted.recv_many(&mut batch, AT_ONCE).await > 0 {
            let deltas = std::mem::take(&mut batch);
            let request = DeltasRequest { caller: self.caller.clone(), deltas };
            if let Err(error) = self.equipment.port.deltas(request).await {
                tracing::debug!(%error, "deltas were not shown");
            }
        }
    }
}
