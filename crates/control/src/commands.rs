//! What people and programs ask for, one file each.

pub mod answer;
pub mod archive;
pub mod cancel;
pub mod create_task;
pub mod delete;
pub mod rerun;
pub mod retry;

use ostler_kernel::{
    Bundle, EventBody, Task, TaskId, TaskState, Timestamp, Write,
    event::{Change, ResourceChanged},
    resource::{ResourceKey, log_of},
    run::{RunView, blocker::Blocker},
};
use ostler_spec::Kind;
use ostler_store::{StoreExt, TaskRef, TaskRow};

use crate::{Control, ControlError};

/// How often a decision is made anew when someone else was quicker.
pub(crate) const TRIES: usize = 32;

impl Control {
    pub async fn task(&self, namespace: &str, reference: &str) -> Result<TaskRow, ControlError> {
        let by_id = reference.parse().ok().map(TaskRef::Id);
        let by_name = || TaskRef::Name { namespace: namespace.to_owned(), name: reference.to_owned() };
        let row = self.store.task(by_id.unwrap_or_else(by_name)).await?;
        // An id of another namespace is as good as none.
        row.filter(|row| row.task.namespace == namespace)
            .ok_or_else(|| ControlError::NotFound { kind: "task", name: reference.to_owned() })
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

/// Tells in the log of all what became of a task that has ended. Its own log ended with it.
fn told_change(task: &Task, change: Change, at: Timestamp) -> Write {
    let (kind, namespace, name) = (Kind::Task.name().to_owned(), task.namespace.clone(), task.name.clone());
    let key = ResourceKey { kind: kind.clone(), namespace: namespace.clone(), name: name.clone() };
    let labels = || task.request.labels.clone();
    let body = EventBody::ResourceChanged(ResourceChanged {
        kind,
        namespace,
        name,
        api_version: task.request.api_version.clone(),
        change,
        version: task.version,
        labels: if change == Change::Deleted { Default::default() } else { labels() },
        former_labels: labels(),
    });
    Write::Event { task: log_of(&key, 0), at, body }
}
