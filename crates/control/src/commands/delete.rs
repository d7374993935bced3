//! Deletes a task that ended: it is forgotten at once, and whoever watches is told.

use ostler_kernel::EventBody;
use ostler_kernel::{
    TaskId, Timestamp, Write,
    event::{Change, ResourceChanged},
    resource::{ResourceKey, log_of},
    task::forget::forget,
};
use ostler_spec::Kind;
use ostler_store::{StoreExt, TaskRef, TaskRow};

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
        let bundle = forget(&row.task, ended_by).ok_or_else(not_ended)?.write(gone(&row, now));
        self.commit(bundle).await?.map(drop).map_err(|_| missing())
    }
}

fn gone(row: &TaskRow, at: Timestamp) -> Write {
    let (kind, namespace, name) =
        (Kind::Task.name().to_owned(), row.task.namespace.clone(), row.task.name.clone());
    let log =
        log_of(&ResourceKey { kind: kind.clone(), namespace: namespace.clone(), name: name.clone() }, 0);
    let (labels, former_labels) = (Default::default(), row.task.request.labels.clone());
    let (change, version) = (Change::Deleted, row.task.version);
    let body = EventBody::ResourceChanged(ResourceChanged {
        kind,
        namespace,
        name,
        change,
        version,
        labels,
        former_labels,
    });
    Write::Event { task: log, at, body }
}
