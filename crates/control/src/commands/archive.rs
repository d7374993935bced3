//! Puts an ended task out of sight. It stays readable by name.

use ostler_kernel::{Bundle, Command, Task, TaskId, Timestamp, Write};
use ostler_store::{StoreExt, TaskRef};

use crate::{Control, ControlError};

impl Control {
    pub async fn archive(&self, task: TaskId) -> Result<(), ControlError> {
        let missing = || ControlError::NotFound { kind: "task", name: task.to_string() };
        let row = self.store.task(TaskRef::Id(task)).await?.ok_or_else(missing)?;
        if !row.task.state.is_terminal() {
            let (name, state) = (row.task.name.clone(), row.task.state.name());
            return Err(ControlError::NotEnded { name, state });
        }
        if row.archived_at.is_some() {
            return Ok(());
        }
        let bundle = archive(&row.task, self.runtime.now());
        self.commit(bundle).await?.map_err(|refusal| ControlError::Conflict(refusal.to_string()))?;
        Ok(())
    }
}

/// The bundle for a task that has ended. Terminal is terminal, so there is nothing to expect: it can't have changed.
pub(crate) fn archive(task: &Task, at: Timestamp) -> Bundle {
    Bundle::new(Command::Archive).write(Write::Archive { task: task.id, at })
}
