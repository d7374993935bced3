//! Asks for the same again. Terminal is terminal: it is a new task that says which one it repeats.

use ostler_kernel::{Task, TaskId, queue::Priority, retry::Jitter};
use ostler_spec::{
    ApiVersion, GoDuration, MessageRetry, Reference, TaskMode, TaskRequirements, TaskRetry, TaskSpec,
};
use ostler_store::{StoreExt, TaskRef};

use super::create_task::{key_is_used, without_trace};
use crate::{Control, ControlError, Created, NewTask};

/// The label that names the repeated task.
pub const SOURCE_TASK: &str = "ostler.dev/source-task";

/// The same, for those who wrote their manifests for another system.
pub const ORLOJ_SOURCE_TASK: &str = "orloj.dev/source-task";

/// Where it is, for them.
pub const ORLOJ_SOURCE_NAMESPACE: &str = "orloj.dev/source-task-namespace";

impl Control {
    /// `change` has the last word on what is asked for this time. With an idempotency key the same again is the same new task.
    pub async fn retry(
        &self,
        task: TaskId,
        change: impl FnOnce(TaskSpec) -> Result<TaskSpec, ControlError>,
    ) -> Result<Created, ControlError> {
        let missing = || ControlError::NotFound { kind: "task", name: task.to_string() };
        let former = self.store.task(TaskRef::Id(task)).await?.ok_or_else(missing)?.task;
        if !former.state.is_terminal() {
            return Err(ControlError::NotEnded { name: former.name, state: former.state.name() });
        }
        let mut labels = former.request.labels.clone();
        labels.insert(SOURCE_TASK.to_owned(), former.name.clone());
        let annotations = without_trace(former.request.annotations.clone());
        let spec = change(spec_of(&former))?;
        let (api_version, namespace) = (version_of(&former), former.namespace);
        let again = NewTask { api_version, namespace, name: None, labels, annotations, spec, trace: None };
        self.create_task(again).await?.of_source(&former.name)
    }
}

impl Created {
    /// Two tasks may be asked for in the same words: a key that stands for one is not another's.
    pub(super) fn of_source(self, source: &str) -> Result<Self, ControlError> {
        let repeats = self.task.request.labels.get(SOURCE_TASK).map(String::as_str);
        match self.existed && repeats != Some(source) {
            true => {
                let key = self.task.request.idempotency_key.as_deref().unwrap_or_default();
                Err(key_is_used(key, &self.task.name))
            }
            false => Ok(self),
        }
    }
}

/// Whose words it was asked for in.
pub(super) fn version_of(task: &Task) -> ApiVersion {
    let is_theirs = task.request.api_version.as_deref() == Some(ApiVersion::Orloj.as_str());
    if is_theirs { ApiVersion::Orloj } else { ApiVersion::Ostler }
}

/// The request as it could have been written, with the agent as it is now.
pub(super) fn spec_of(task: &Task) -> TaskSpec {
    let request = &task.request;
    let duration = |millis: u64| GoDuration::from(std::time::Duration::from_millis(millis));
    let whole = request.whole_retry.as_ref().unwrap_or(&request.retry);
    TaskSpec {
        agent: request.system.is_none().then(|| Reference::named(request.agent.clone())),
        system: request.system.as_ref().map(|system| Reference::named(system.name.clone())),
        mode: TaskMode::Run,
        input: request.input.clone(),
        priority: match request.priority {
            Priority::Low => ostler_spec::Priority::Low,
            Priority::Normal => ostler_spec::Priority::Normal,
            Priority::High => ostler_spec::Priority::High,
            Priority::Urgent => ostler_spec::Priority::Urgent,
        },
        max_turns: request.max_turns,
        retry: TaskRetry { max_attempts: whole.max_attempts, backoff: duration(whole.backoff_ms) },
        message_retry: MessageRetry {
            max_attempts: request.retry.max_attempts,
            backoff: duration(request.retry.backoff_ms),
            max_backoff: duration(request.retry.max_backoff_ms),
            jitter: match request.retry.jitter {
                Jitter::None => ostler_spec::Jitter::None,
                Jitter::Full => ostler_spec::Jitter::Full,
                Jitter::Equal => ostler_spec::Jitter::Equal,
            },
            non_retryable: request.non_retryable.clone(),
        },
        requirements: TaskRequirements {
            region: request.requires.region.clone(),
            gpu: request.requires.capabilities.contains("gpu"),
            model: request.requires.model.clone(),
        },
        session: request.session_key.clone(),
        deadline: request.deadline.map(|deadline| GoDuration::from(deadline.since(task.created_at))),
        idempotency_key: None,
    }
}
