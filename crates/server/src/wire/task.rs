//! A task as its caller sees it.

use std::{collections::BTreeMap, time::Duration};

use ostler_control::store::TaskRow;
use ostler_kernel::{
    Failure, RunId, SessionId, Task, TaskId, TaskState, Timestamp, Usage,
    failure::ErrorClass,
    queue::Priority,
    retry::RetryPolicy,
    run::blocker::{Blocker, BlockerKind},
};
use ostler_spec::GoDuration;
use serde::{Serialize, Serializer};

/// Every state, by the name that lists filter by.
pub const STATES: [&str; 9] = [
    "queued",
    "running",
    "waiting",
    "sleeping",
    "succeeded",
    "failed",
    "dead_letter",
    "cancelled",
    "dropped",
];

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskView<'a> {
    api_version: &'static str,
    kind: &'static str,
    pub metadata: Metadata<'a>,
    spec: Spec<'a>,
    status: Status<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
    pub uid: TaskId,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
    #[serde(serialize_with = "as_text")]
    resource_version: u64,
    #[serde(serialize_with = "as_text")]
    created_at: Timestamp,
}

#[derive(Debug, Serialize)]
struct Spec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    input: &'a BTreeMap<String, String>,
    priority: Priority,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    retry: Retry,
}

/// In the words of a manifest.
#[derive(Debug, Serialize)]
struct Retry {
    max_attempts: u32,
    backoff: GoDuration,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    phase: &'static str,
    state: &'static str,
    run: RunId,
    session: SessionId,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    completed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Output<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<WaitingFor<'a>>,
    usage: Usage,
    last_event: u64,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    archived_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct WaitingFor<'a> {
    kind: BlockerKind,
    summary: &'a str,
}

#[derive(Debug, Serialize)]
struct Output<'a> {
    last_output: &'a str,
}

#[derive(Debug, Serialize)]
struct ErrorView<'a> {
    code: &'a str,
    class: ErrorClass,
    message: &'a str,
}

impl<'a> TaskView<'a> {
    /// A task that has just been accepted: its log holds that, and nothing else.
    pub fn new(task: &'a Task) -> Self {
        Self::with(task, 1, None)
    }

    /// What the task waits for, if someone has looked.
    #[must_use]
    pub fn waiting_for(mut self, blocker: Option<&'a Blocker>) -> Self {
        self.status.waiting_for =
            blocker.map(|blocker| WaitingFor { kind: blocker.kind, summary: &blocker.summary });
        self
    }

    fn with(task: &'a Task, last_event: u64, archived_at: Option<Timestamp>) -> Self {
        Self {
            api_version: "ostler.dev/v1",
            kind: "Task",
            metadata: metadata(task),
            spec: spec(task),
            status: status(task, last_event, archived_at),
        }
    }
}

impl<'a> From<&'a TaskRow> for TaskView<'a> {
    fn from(row: &'a TaskRow) -> Self {
        Self::with(&row.task, row.last_seq, row.archived_at)
    }
}

fn metadata(task: &Task) -> Metadata<'_> {
    Metadata {
        name: &task.name,
        namespace: &task.namespace,
        uid: task.id,
        labels: &task.request.labels,
        resource_version: task.version,
        created_at: task.created_at,
    }
}

fn spec(task: &Task) -> Spec<'_> {
    let request = &task.request;
    let RetryPolicy { max_attempts, backoff_ms, .. } = request.retry;
    Spec {
        agent: request.system.is_none().then_some(request.agent.as_str()),
        system: request.system.as_ref().map(|system| system.name.as_str()),
        input: &request.input,
        priority: request.priority,
        session: request.session_key.as_deref(),
        idempotency_key: request.idempotency_key.as_deref(),
        retry: Retry { max_attempts, backoff: GoDuration::from(Duration::from_millis(backoff_ms)) },
    }
}

fn status(task: &Task, last_event: u64, archived_at: Option<Timestamp>) -> Status<'_> {
    Status {
        phase: phase(&task.state),
        state: task.state.name(),
        run: task.run,
        session: task.session,
        started_at: task.started_at,
        completed_at: task.ended_at,
        output: task.output.as_deref().map(|last_output| Output { last_output }),
        last_error: last_error(task),
        error: task.failure.as_ref().map(error),
        waiting_for: None,
        usage: task.usage,
        last_event,
        archived_at,
    }
}

fn phase(state: &TaskState) -> &'static str {
    match state {
        TaskState::Queued => "Pending",
        TaskState::Running | TaskState::Sleeping { .. } => "Running",
        TaskState::Waiting { .. } => "WaitingApproval",
        TaskState::Succeeded => "Succeeded",
        TaskState::Failed | TaskState::Cancelled | TaskState::Dropped { .. } => "Failed",
        TaskState::DeadLetter => "DeadLetter",
    }
}

fn last_error(task: &Task) -> Option<String> {
    match (&task.failure, &task.state) {
        (Some(failure), _) => Some(failure.to_string()),
        (None, TaskState::Dropped { reason }) => Some(format!("dropped: {reason}")),
        (None, _) => None,
    }
}

fn error(failure: &Failure) -> ErrorView<'_> {
    ErrorView { code: &failure.code, class: failure.class, message: &failure.message }
}

fn as_text<T: std::fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn as_optional_text<S: Serializer>(value: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(time) => serializer.collect_str(time),
        None => serializer.serialize_none(),
    }
}
