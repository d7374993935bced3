//! Stops a task: one commit, whatever it is doing. The worker is told, but nothing depends on it hearing.

use ostler_kernel::{TaskId, TaskState, run};
use ostler_link::SignalKind;

use super::ended;
use crate::{Control, ControlError};

impl Control {
    pub async fn cancel(&self, task: TaskId, reason: &str) -> Result<(), ControlError> {
        let now = self.runtime.now();
        let decided =
            self.decide(task, |view| run::cancel::cancel(view, reason, now).map_err(|_| ended(view))).await;
        match decided {
            Ok(view) => self.stopped(&view),
            // Who asks again may have missed the answer; what was wanted is so.
            Err(ControlError::Ended { state, .. }) if state == TaskState::Cancelled.name() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The run was taken out of its worker's hands.
    pub(crate) fn stopped(&self, view: &run::RunView) {
        self.leases.drop(view.run.id);
        self.signals.send(&view.run, SignalKind::Stop);
    }
}
