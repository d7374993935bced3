//! What people and programs ask for, one file each.

pub mod answer;
pub mod archive;
pub mod cancel;
pub mod create_task;
pub mod delete;
pub mod rerun;
pub mod retry;

use ostler_kernel::{
    Bundle, Event, Run, Task, TaskId, TaskState,
    run::{RunView, blocker::Blocker},
};
use ostler_store::{StoreExt, TaskFilter, TaskPage, TaskRef, TaskRow};

use crate::{Control, ControlError};

/// How often a decision is made anew when someone else was quicker.
pub(crate) const TRIES: usize = 32;

/// Events that a task is shown with.
const MOST_TOLD: u64 = 2000;

impl Control {
    pub async fn task(&self, namespace: &str, reference: &str) -> Result<TaskRow, ControlError> {
        let by_id = reference.parse().ok().map(TaskRef::Id);
        let by_name = || TaskRef::Name { namespace: namespace.to_owned(), name: reference.to_owned() };
        let row = self.store.task(by_id.unwrap_or_else(by_name)).await?;
        // An id of another namespace is as good as none.
        row.filter(|row| row.task.namespace == namespace)
            .ok_or_else(|| ControlError::NotFound { kind: "task", name: reference.to_owned() })
    }

    pub async fn tasks(&self, filter: TaskFilter) -> Result<TaskPage, ControlError> {
        let mut page = self.store.task_page(filter).await?;
        for row in &mut page.rows {
            self.count_so_far(row).await?;
        }
        Ok(page)
    }

    /// A step writes no row of its task, so what a task that is at work has used stands in its run alone.
    pub async fn count_so_far(&self, row: &mut TaskRow) -> Result<(), ControlError> {
        if row.task.state == TaskState::Running
            && let Some(run) = self.store.run(row.task.run).await?
        {
            row.task.usage = row.task.used(&run);
        }
        Ok(())
    }

    /// What a task's log tells, and its runs in the order of their acceptance: the last events, if there are many.
    pub async fn told(&self, row: &TaskRow) -> Result<(Vec<Run>, Vec<Event>), ControlError> {
        let after = row.last_seq.saturating_sub(MOST_TOLD);
        let events = self.store.events(row.task.id, after, MOST_TOLD as usize).await?;
        let mut runs = Vec::new();
        for run in row.task.runs() {
            runs.extend(self.store.run(run).await?.map(|run| *run));
        }
        Ok((runs, events))
    }

    /// What a waiting task waits for.
    pub async fn blocker(&self, task: &Task) -> Result<Option<Blocker>, ControlError> {
        match task.state {
            TaskState::Waiting { on } => Ok(self.store.blocker(on).await?),
            _ => Ok(None),
        }
    }

    /// Reads the task's run, decides, commits; again if something changed in between. Returns the view that
    /// the decision which counted was made on.
    async fn decide(
        &self,
        task: TaskId,
        decide: impl Fn(&RunView) -> Result<Bundle, ControlError>,
    ) -> Result<RunView, ControlError> {
        for _ in 0..TRIES {
            let missing = || ControlError::NotFound { kind: "task", name: task.to_string() };
            let row = self.store.task(TaskRef::Id(task)).await?.ok_or_else(missing)?;
            let Some(view) = self.store.run_view(row.task.run).await? else {
                // The conversation of one that ended may have been forgotten.
                let Task { name, state, .. } = row.task;
                let ended = || ControlError::Ended { name, state: state.name() };
                return Err(if state.is_terminal() { ended() } else { missing() });
            };
            // Between the two looks one agent of a system was done, and another goes on.
            if view.task.run != view.run.id {
                continue;
            }
            let bundle = decide(&view)?;
            if self.commit(bundle).await?.is_ok() {
                return Ok(*view);
            }
        }
        Err(ControlError::Contended)
    }
}

fn ended(view: &RunView) -> ControlError {
    ControlError::Ended { name: view.task.name.clone(), state: view.task.state.name() }
}
