//! A task as its caller sees it.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use ostler_control::{Telling, store::TaskRow};
use ostler_kernel::{
    Failure, Run, RunId, SessionId, Task, TaskId, TaskState, Timestamp, Usage,
    failure::ErrorClass,
    queue::{Priority, Requirements},
    resource::API_VERSION,
    retry::{Jitter, RetryPolicy},
    run::blocker::{Blocker, BlockerKind},
    task::TaskRequest,
};
use ostler_spec::{GoDuration, TaskMode};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{
    history::{self, HistoryItem},
    message::{self, IdempotencyView, MessageView},
    output::{self, Output},
    trace::{self, TraceItem},
};

/// Every phase, and the states that are seen as it.
pub const PHASES: [(&str, &[&str]); 6] = [
    ("Pending", &["queued"]),
    ("Running", &["running", "sleeping"]),
    ("WaitingApproval", &["waiting"]),
    ("Succeeded", &["succeeded"]),
    ("Failed", &["failed", "cancelled", "dropped"]),
    ("DeadLetter", &["dead_letter"]),
];

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
    api_version: &'a str,
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
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'a str, Cow<'a, str>>,
    #[serde(serialize_with = "as_text")]
    resource_version: u64,
    generation: u64,
    #[serde(serialize_with = "as_text")]
    created_at: Timestamp,
}

#[derive(Debug, Serialize)]
struct Spec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    /// Templates are no tasks, and are seen as any other resource.
    mode: TaskMode,
    input: BTreeMap<&'a str, Cow<'a, str>>,
    priority: Priority,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    #[serde(skip_serializing_if = "is_unbounded")]
    max_turns: u32,
    retry: Retry,
    message_retry: MessageRetry<'a>,
    /// Counted from acceptance.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<GoDuration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requirements: Option<Requires<'a>>,
}

/// What a worker must have, in the words of a manifest.
#[derive(Debug, Serialize)]
struct Requires<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    gpu: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
}

/// In the words of a manifest.
#[derive(Debug, Serialize)]
struct Retry {
    max_attempts: u32,
    backoff: GoDuration,
}

/// In the words of a manifest.
#[derive(Debug, Serialize)]
struct MessageRetry<'a> {
    #[serde(flatten)]
    tries: Retry,
    max_backoff: GoDuration,
    jitter: Jitter,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    non_retryable: &'a [String],
}

impl From<&RetryPolicy> for Retry {
    fn from(policy: &RetryPolicy) -> Self {
        Self { max_attempts: policy.max_attempts, backoff: duration(policy.backoff_ms) }
    }
}

impl<'a> From<&'a TaskRequest> for MessageRetry<'a> {
    fn from(request: &'a TaskRequest) -> Self {
        let TaskRequest { retry: policy, non_retryable, .. } = request;
        let max_backoff = duration(policy.max_backoff_ms);
        Self { tries: policy.into(), max_backoff, jitter: policy.jitter, non_retryable }
    }
}

fn duration(millis: u64) -> GoDuration {
    GoDuration::from(Duration::from_millis(millis))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_unbounded(max_turns: &u32) -> bool {
    *max_turns == 0
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
    #[serde(skip_serializing_if = "Option::is_none")]
    sleeping: Option<Sleeping<'a>>,
    usage: Usage,
    last_event: u64,
    observed_generation: u64,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    archived_at: Option<Timestamp>,
    /// In lists: the fields of which only the beginning is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shortened: Vec<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

/// What is shown of one task, and is too much for a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    assigned_worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claimed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    next_attempt_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    last_heartbeat: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    lease_until: Option<Timestamp>,
    history: Vec<HistoryItem>,
    trace: Vec<TraceItem>,
    messages: Vec<MessageView>,
    #[serde(rename = "message_idempotency")]
    message_idempotency: Vec<IdempotencyView>,
    /// Agents of a line wait for nobody but the one before them, so there are none.
    #[serde(rename = "join_states")]
    join_states: [(); 0],
}

/// The most of a value that a list shows.
const MOST_LISTED: usize = 4 * 1024;

/// What was asked for never changes, and is looked at before a task is accepted.
const GENERATION: u64 = 1;

#[derive(Debug, Serialize)]
struct WaitingFor<'a> {
    kind: BlockerKind,
    summary: &'a str,
}

#[derive(Debug, Serialize)]
struct Sleeping<'a> {
    #[serde(serialize_with = "as_text")]
    until: Timestamp,
    /// What it waits to pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorView<'a>>,
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

    /// As one of many: of what is long only the beginning is shown, and it is said of which fields.
    pub fn listed(row: &'a TaskRow) -> Self {
        let mut view = Self::from(row);
        let input = view.spec.input.iter_mut().map(|(name, value)| (format!("spec.input.{name}"), value));
        let output = view.status.output.iter_mut().flatten();
        let output = output.map(|(name, value)| (format!("status.output.{name}"), value));
        for (field, value) in input.chain(output).filter(|(_, value)| value.len() > MOST_LISTED) {
            *value = output::bounded(value, MOST_LISTED).into_owned().into();
            view.status.shortened.push(field);
        }
        view
    }

    /// What the task waits for, if someone has looked.
    #[must_use]
    pub fn waiting_for(mut self, blocker: Option<&'a Blocker>) -> Self {
        self.status.waiting_for =
            blocker.map(|blocker| WaitingFor { kind: blocker.kind, summary: &blocker.summary });
        self
    }

    /// What was found out, without what was asked for.
    pub fn status_alone(&self) -> Value {
        json!({ "metadata": self.metadata, "status": self.status })
    }

    /// With what its runs and its log tell.
    #[must_use]
    pub fn in_full(mut self, task: &'a Task, telling: &'a Telling) -> Self {
        let runs = &telling.runs;
        let worker = telling.held().and_then(Run::lease).map(|lease| lease.worker.clone());
        let messages = message::messages(task, telling);
        self.status.details = Some(Details {
            attempts: runs.iter().map(|run| run.attempt).max().unwrap_or(0),
            assigned_worker: worker.clone(),
            claimed_by: worker,
            next_attempt_at: runs.iter().find_map(Run::wake_at),
            last_heartbeat: telling.heartbeat.map(|heartbeat| heartbeat.last),
            lease_until: telling.heartbeat.map(|heartbeat| heartbeat.lease_until),
            history: cut(history::history(&telling.events), history::MOST_HISTORY),
            trace: cut(trace::trace(task, telling), trace::MOST_TRACE),
            message_idempotency: messages.iter().filter_map(MessageView::idempotency).collect(),
            messages,
            join_states: [],
        });
        if let Some(output) = &mut self.status.output {
            output::tell_how(output, task, telling);
        }
        self
    }

    fn with(task: &'a Task, last_event: u64, archived_at: Option<Timestamp>) -> Self {
        Self {
            api_version: task.request.api_version.as_deref().unwrap_or(API_VERSION),
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
        annotations: annotations(task),
        resource_version: task.version,
        generation: GENERATION,
        created_at: task.created_at,
    }
}

/// As they were declared; where in a trace it belongs is told by them too, if its caller said so in another way.
fn annotations(task: &Task) -> BTreeMap<&str, Cow<'_, str>> {
    let declared = task.request.annotations.iter();
    let mut annotations: BTreeMap<&str, Cow<'_, str>> =
        declared.map(|(name, value)| (name.as_str(), Cow::from(value))).collect();
    let is_told = annotations.keys().any(|name| ostler_control::is_of_trace(name));
    if let Some(trace) = task.request.trace.as_ref().filter(|_| !is_told) {
        annotations.insert("ostler.dev/traceparent", trace.parent.to_string().into());
        let state = trace.state.as_deref();
        annotations.extend(state.map(|state| ("ostler.dev/tracestate", state.into())));
    }
    annotations
}

fn spec(task: &Task) -> Spec<'_> {
    let request = &task.request;
    Spec {
        agent: request.system.is_none().then_some(request.agent.as_str()),
        system: request.system.as_ref().map(|system| system.name.as_str()),
        mode: TaskMode::Run,
        input: request.input.iter().map(|(name, value)| (name.as_str(), Cow::from(value))).collect(),
        priority: request.priority,
        session: request.session_key.as_deref(),
        idempotency_key: request.idempotency_key.as_deref(),
        max_turns: request.max_turns,
        retry: request.whole_retry.as_ref().unwrap_or(&request.retry).into(),
        message_retry: request.into(),
        deadline: request.deadline.map(|deadline| GoDuration::from(deadline.since(task.created_at))),
        requirements: requires(&task.request.requires),
    }
}

fn requires(asked: &Requirements) -> Option<Requires<'_>> {
    let Requirements { region, capabilities, model } = asked;
    let (region, model, gpu) = (region.as_deref(), model.as_deref(), capabilities.contains("gpu"));
    (region.is_some() || model.is_some() || gpu).then_some(Requires { region, gpu, model })
}

fn status(task: &Task, last_event: u64, archived_at: Option<Timestamp>) -> Status<'_> {
    Status {
        phase: phase(&task.state),
        state: task.state.name(),
        run: task.run,
        session: task.session,
        started_at: task.started_at,
        completed_at: task.ended_at,
        output: output::short(task),
        last_error: last_error(task),
        error: task.failure.as_ref().map(error),
        waiting_for: None,
        sleeping: sleeping(&task.state),
        usage: task.usage,
        last_event,
        observed_generation: GENERATION,
        archived_at,
        shortened: Vec::new(),
        details: None,
    }
}

fn sleeping(state: &TaskState) -> Option<Sleeping<'_>> {
    match state {
        TaskState::Sleeping { until, why } => {
            Some(Sleeping { until: *until, error: why.as_ref().map(error) })
        }
        TaskState::Queued
        | TaskState::Running
        | TaskState::Waiting { .. }
        | TaskState::Succeeded
        | TaskState::Failed
        | TaskState::DeadLetter
        | TaskState::Cancelled
        | TaskState::Dropped { .. } => None,
    }
}

/// The last so many.
fn cut<T>(mut items: Vec<T>, count: usize) -> Vec<T> {
    let surplus = items.len().saturating_sub(count);
    items.drain(..surplus);
    items
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
