//! Stops a task: one commit, whatever it is doing. The worker is told, but nothing depends on it hearing.

use ostler_kernel::{TaskId, run};
use ostler_link::SignalKind;

use super::ended;
use crate::{Control, ControlError};

impl Control {
    pub async fn cancel(&self, task: TaskId, reason: &str) -> Result<(), ControlError> {
        let now = self.runtime.now();
        let view =
            self.decide(task, |view| run::cancel::cancel(view, reason, now).map_err(|_| ended(view))).await?;
        self.stopped(&view);
        Ok(())
    }

    /// The run was taken out of its worker's hands.
    pub(crate) fn stopped(&self, view: &run::RunView) {
        self.leases.drop(view.run.id);
        self.signals.send(&view.run, SignalKind::Stop);
    }
}
