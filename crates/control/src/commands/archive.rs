//! Puts an ended task out of sight, and tells whoever watches. It stays readable by name.

use ostler_kernel::{Bundle, Command, Expect, Task, TaskId, Timestamp, Write, event::Change};
use ostler_store::{StoreExt, TaskRef};

use super::told_change;
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
        self.commit(bundle).await?.map(drop).map_err(|_| missing())
    }
}

/// The bundle for a task that has ended. Terminal is terminal, so it can't have changed; it may have been forgotten. Nothing
/// follows the end in a task's own log, so this is told where its deletion would be.
pub(crate) fn archive(task: &Task, at: Timestamp) -> Bundle {
    let raised = Task { version: task.version + 1, ..task.clone() };
    let told = told_change(&raised, Change::Status, at);
    Bundle::new(Command::Archive)
        .expect(Expect::Ended { run: task.run })
        .write(Write::Task(raised))
        .write(Write::Archive { task: task.id, at })
        .write(told)
}
