//! Deletes a task that ended: it is forgotten at once, and whoever watches is told.

use ostler_kernel::{TaskId, event::Change, task::forget::forget};
use ostler_store::{StoreExt, TaskRef};

use super::told_change;
use crate::{Control, ControlError};

impl Control {
    pub async fn delete_task(&self, task: TaskId) -> Result<(), ControlError> {
        let missing = || ControlError::NotFound { kind: "task", name: task.to_string() };
        let row = self.store.task(TaskRef::Id(task)).await?.ok_or_else(missing)?;
        let now = self.runtime.now();
        let not_ended =
            || ControlError::NotEnded { name: row.task.name.clone(), state: row.task.state.name() };
        // By its own end, not by this server's calendar, which may be behind.
        let ended_by = row.task.ended_at.unwrap_or(now);
        let told = told_change(&row.task, Change::Deleted, now);
        let bundle = forget(&row.task, ended_by).ok_or_else(not_ended)?.write(told);
        self.commit(bundle).await?.map(drop).map_err(|_| missing())
    }
}
