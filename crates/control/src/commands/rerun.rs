//! Asks for a task again under its name: a new task `<name>-run-<n>`, made from one that ended or from a template.

use ostler_kernel::Task;
use ostler_spec::{ApiVersion, Kind, Resource, Spec, TaskMode};
use ostler_store::{StoreExt, TaskFilter, TaskRef};

use super::{
    create_task::without_trace,
    retry::{ORLOJ_SOURCE_NAMESPACE, ORLOJ_SOURCE_TASK, SOURCE_TASK, version_of},
};
use crate::{Control, ControlError, Created, NewTask};

/// Between two that ask for the same at the same time, one is told the next number.
const TRIES: u64 = 32;

impl Control {
    /// With an idempotency key the same again is the same new task.
    pub async fn rerun(
        &self,
        namespace: &str,
        name: &str,
        api_version: ApiVersion,
        idempotency_key: Option<String>,
    ) -> Result<Created, ControlError> {
        let mut source = self.source(namespace, name).await?;
        source.spec.idempotency_key = idempotency_key;
        source.labels.insert(SOURCE_TASK.to_owned(), name.to_owned());
        if api_version == ApiVersion::Orloj {
            source.api_version = api_version;
            source.labels.insert(ORLOJ_SOURCE_TASK.to_owned(), name.to_owned());
            source.labels.insert(ORLOJ_SOURCE_NAMESPACE.to_owned(), namespace.to_owned());
        }
        let first = self.runs_so_far(namespace, name).await? + 1;
        for number in first..first + TRIES {
            let again = NewTask { name: Some(format!("{name}-run-{number}")), ..source.clone() };
            match self.create_task(again).await {
                Err(ControlError::NameTaken { .. }) => {}
                created => return created?.of_source(name),
            }
        }
        Err(ControlError::Contended)
    }

    /// What is asked for again.
    async fn source(&self, namespace: &str, name: &str) -> Result<NewTask, ControlError> {
        let reference = TaskRef::Name { namespace: namespace.to_owned(), name: name.to_owned() };
        if let Some(row) = self.store.task(reference).await? {
            let task: Task = row.task;
            if !task.state.is_terminal() {
                return Err(ControlError::NotEnded { name: task.name, state: task.state.name() });
            }
            let api_version = version_of(&task);
            let (spec, labels) = (self.spec_of(&task).await?, task.request.labels);
            let (namespace, annotations) = (task.namespace, without_trace(task.request.annotations));
            return Ok(NewTask {
                api_version,
                namespace,
                name: None,
                labels,
                annotations,
                spec,
                trace: None,
            });
        }
        match self.declared(Kind::Task, namespace, name).await? {
            Some(Resource { api_version, metadata, spec: Spec::Task(mut spec), .. }) => {
                spec.mode = TaskMode::Run;
                // Each is a task of its own.
                spec.idempotency_key = None;
                let (namespace, labels) = (metadata.namespace, metadata.labels);
                let annotations = without_trace(metadata.annotations);
                Ok(NewTask { api_version, namespace, name: None, labels, annotations, spec, trace: None })
            }
            _ => Err(ControlError::NotFound { kind: "task", name: name.to_owned() }),
        }
    }

    /// The highest number that the newest of them have, as far as one looks.
    async fn runs_so_far(&self, namespace: &str, name: &str) -> Result<u64, ControlError> {
        // A name is a value that any selector can hold, or else there is nothing to be found.
        let labels = format!("{SOURCE_TASK}={name}").parse().unwrap_or_default();
        let namespace = Some(namespace.to_owned());
        let (archived, limit, look_at) = (true, 100, Some(10_000));
        let filter = TaskFilter { namespace, labels, archived, limit, look_at, ..TaskFilter::default() };
        let rows = self.store.tasks(filter).await?;
        let prefix = format!("{name}-run-");
        let numbers = rows.iter().filter_map(|row| row.task.name.strip_prefix(&prefix)?.parse::<u64>().ok());
        Ok(numbers.max().unwrap_or(0))
    }
}
