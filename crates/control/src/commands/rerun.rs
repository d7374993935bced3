//! Asks for a task again under its name: a new task `<name>-run-<n>`, made from one that ended or from a template. Whoever says
//! what is wanted gets that; and where nothing has the name, the task of that name.

use ostler_kernel::{Task, TaskId};
use ostler_spec::{ApiVersion, Kind, Resource, Spec, TaskMode};
use ostler_store::{StoreExt, TaskFilter, TaskRef};

use super::{
    create_task::{made_up_name, without_trace},
    retry::{ORLOJ_SOURCE_NAMESPACE, ORLOJ_SOURCE_TASK, SOURCE_TASK, spec_of, version_of},
};
use crate::{Control, ControlError, Created, NewTask};

/// Between two that ask for the same at the same time, one is told the next number. Whoever finds so many taken gets letters.
const TRIES: u64 = 8;

/// A task that is asked for again.
#[derive(Debug, Clone)]
pub struct Again {
    pub namespace: String,
    pub name: String,
    /// Whose words it is asked for in.
    pub api_version: ApiVersion,
    /// With a key the same again is the same new task.
    pub idempotency_key: Option<String>,
    /// What is wanted this time; without it, the same as before, but for what is changed.
    pub wanted: Option<NewTask>,
}

impl Control {
    /// `change` says what of the former request is to be otherwise.
    pub async fn rerun(
        &self,
        again: Again,
        change: impl FnOnce(NewTask) -> Result<NewTask, ControlError>,
    ) -> Result<Created, ControlError> {
        let Again { namespace, name, api_version, idempotency_key, mut wanted } = again;
        if let Some(wanted) = &mut wanted {
            wanted.spec.idempotency_key.clone_from(&idempotency_key);
            if self.is_first(wanted, &name).await? {
                return self.create_task(NewTask { name: Some(name), ..wanted.clone() }).await;
            }
        }
        let former = self.source(&namespace, &name).await?;
        let mut next = match wanted {
            Some(wanted) => wanted,
            None => change(former)?,
        };
        next.spec.idempotency_key = idempotency_key;
        next.labels.insert(SOURCE_TASK.to_owned(), name.clone());
        if api_version == ApiVersion::Orloj {
            next.api_version = api_version;
            next.labels.insert(ORLOJ_SOURCE_TASK.to_owned(), name.clone());
            next.labels.insert(ORLOJ_SOURCE_NAMESPACE.to_owned(), namespace.clone());
        }
        self.create_next(&namespace, &name, next).await?.of_source(&name)
    }

    /// Whether nothing has its name yet, or what has it was made by this very request.
    async fn is_first(&self, wanted: &NewTask, name: &str) -> Result<bool, ControlError> {
        let (namespace, key) = (&wanted.namespace, &wanted.spec.idempotency_key);
        let reference = TaskRef::Name { namespace: namespace.clone(), name: name.to_owned() };
        match self.store.task(reference).await? {
            Some(row) => Ok(key.is_some() && row.task.request.idempotency_key == *key),
            None => Ok(self.declared(Kind::Task, namespace, name).await?.is_none()),
        }
    }

    /// Under the next number; or, where those at hand are taken, under letters that nobody has had.
    async fn create_next(&self, namespace: &str, name: &str, next: NewTask) -> Result<Created, ControlError> {
        let called = |name: String| NewTask { name: Some(name), ..next.clone() };
        let first = self.runs_so_far(namespace, name).await? + 1;
        for number in first..first + TRIES {
            let numbered = format!("{name}-run-{number}");
            if self.declared(Kind::Task, namespace, &numbered).await?.is_some() {
                continue;
            }
            match self.create_another(&called(numbered)).await {
                Err(ControlError::NameTaken { .. }) => {}
                created => return created,
            }
        }
        let free = made_up_name(&format!("{name}-run"), TaskId::new(&*self.runtime));
        self.create_another(&called(free)).await
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
            let (spec, labels) = (spec_of(&task), task.request.labels);
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

    /// The highest number that the newest of them have, as far as one looks: in a busy namespace they may be further back.
    async fn runs_so_far(&self, namespace: &str, name: &str) -> Result<u64, ControlError> {
        // Some names are no value that a selector can hold: then nothing is found, or nothing of theirs.
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
