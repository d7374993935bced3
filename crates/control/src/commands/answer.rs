//! What a live task is given: an input, or the answer to what it waits for.

use ostler_kernel::{
    InputId, TaskId,
    run::{blocker::BlockerKind, wake::resolve},
    task::input::accept_input,
};
use ostler_link::SignalKind;
use ostler_store::{StoreExt, TaskRef};

use super::{TRIES, ended};
use crate::{Control, ControlError};

impl Control {
    /// Adds an input to a task that has not ended.
    pub async fn input(&self, task: TaskId, text: &str) -> Result<(), ControlError> {
        let id = InputId::new(&*self.runtime);
        for _ in 0..TRIES {
            let view = self.live_view(task).await?;
            let now = self.runtime.now();
            let bundle = accept_input(&view, id, text, now).map_err(|_| ended(&view))?;
            if self.commit(bundle).await?.is_ok() {
                self.signals.send(&view.run, SignalKind::Input);
                return Ok(());
            }
        }
        Err(ControlError::Contended)
    }

    /// Answers the blocker that the task waits for.
    pub async fn resolve(&self, task: TaskId, resolution: &str) -> Result<(), ControlError> {
        for _ in 0..TRIES {
            let view = self.live_view(task).await?;
            let waits_for_nothing = || {
                let (name, state) = (&view.task.name, view.task.state.name());
                ControlError::Conflict(format!("task {name:?} is {state}: it waits for nothing"))
            };
            let now = self.runtime.now();
            let bundle = resolve(&view, resolution, now).map_err(|_| waits_for_nothing())?;
            if self.commit(bundle).await?.is_ok() {
                return Ok(());
            }
        }
        Err(ControlError::Contended)
    }

    /// Lets a quarantined task go on.
    pub async fn release(&self, task: TaskId) -> Result<(), ControlError> {
        let view = self.live_view(task).await?;
        match &view.blocker {
            Some(blocker) if blocker.kind == BlockerKind::Quarantine => self.resolve(task, "released").await,
            _ => {
                let (name, state) = (&view.task.name, view.task.state.name());
                Err(ControlError::Conflict(format!("task {name:?} is {state}, and not quarantined")))
            }
        }
    }

    async fn live_view(&self, task: TaskId) -> Result<Box<ostler_kernel::run::RunView>, ControlError> {
        let missing = || ControlError::NotFound { kind: "task", name: task.to_string() };
        let row = self.store.task(TaskRef::Id(task)).await?.ok_or_else(missing)?;
        let view = self.store.run_view(row.task.run).await?.ok_or_else(missing)?;
        if view.run.is_terminal() { Err(ended(&view)) } else { Ok(view) }
    }
}
