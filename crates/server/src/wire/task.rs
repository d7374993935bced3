//! A task as its caller sees it.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use ostler_control::store::TaskRow;
use ostler_kernel::{
    Event, EventBody, Failure, Run, RunId, RunState, SessionId, StepKind, Task, TaskId, TaskState, Timestamp,
    Usage,
    failure::ErrorClass,
    queue::{Priority, Requirements},
    retry::{Jitter, RetryPolicy},
    run::blocker::{Blocker, BlockerKind},
};
use ostler_spec::GoDuration;
use serde::{Serialize, Serializer};

use super::{
    message::{self, MessageView},
    trace::{self, HistoryItem, TraceItem},
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
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'a str, Cow<'a, str>>,
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
    #[serde(skip_serializing_if = "is_unbounded")]
    max_turns: u32,
    retry: Retry,
    message_retry: MessageRetry,
    /// Counted from acceptance.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<GoDuration>,
    /// Told of one task, not in lists.
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
struct MessageRetry {
    #[serde(flatten)]
    tries: Retry,
    max_backoff: GoDuration,
    jitter: Jitter,
}

impl From<&RetryPolicy> for Retry {
    fn from(policy: &RetryPolicy) -> Self {
        Self { max_attempts: policy.max_attempts, backoff: duration(policy.backoff_ms) }
    }
}

impl From<&RetryPolicy> for MessageRetry {
    fn from(policy: &RetryPolicy) -> Self {
        let max_backoff = duration(policy.max_backoff_ms);
        Self { tries: policy.into(), max_backoff, jitter: policy.jitter }
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
    output: Option<BTreeMap<String, Cow<'a, str>>>,
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
    history: Vec<HistoryItem>,
    trace: Vec<TraceItem>,
    messages: Vec<MessageView>,
}

#[derive(Debug, Serialize)]
struct WaitingFor<'a> {
    kind: BlockerKind,
    summary: &'a str,
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

    /// What was found out, without what was asked for.
    pub fn status_alone(&self) -> impl Serialize {
        #[derive(Serialize)]
        struct Alone<'v, 'a> {
            metadata: &'v Metadata<'a>,
            status: &'v Status<'a>,
        }
        Alone { metadata: &self.metadata, status: &self.status }
    }

    /// With what its runs and its log tell.
    #[must_use]
    pub fn in_full(mut self, task: &'a Task, runs: &'a [Run], events: &[Event]) -> Self {
        let last = |count: usize| &events[events.len().saturating_sub(count)..];
        let held = runs.iter().find(|run| run.lease().is_some());
        let worker = held.and_then(|run| run.lease()).map(|lease| lease.worker.clone());
        self.status.details = Some(Details {
            attempts: runs.iter().map(|run| run.attempt).max().unwrap_or(0),
            assigned_worker: worker.clone(),
            claimed_by: worker,
            next_attempt_at: runs.iter().find_map(Run::wake_at),
            history: cut(trace::history(events), trace::MOST_HISTORY),
            trace: trace::trace(task, runs, last(trace::MOST_TRACE)),
            messages: message::messages(task, runs, events),
        });
        self.spec.requirements = runs.first().and_then(requires);
        if let Some(output) = &mut self.status.output {
            tell_how(output, task, runs, events);
        }
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
        annotations: annotations(task),
        resource_version: task.version,
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
        input: &request.input,
        priority: request.priority,
        session: request.session_key.as_deref(),
        idempotency_key: request.idempotency_key.as_deref(),
        max_turns: request.max_turns,
        retry: request.whole_retry.as_ref().unwrap_or(&request.retry).into(),
        message_retry: (&request.retry).into(),
        deadline: request.deadline.map(|deadline| GoDuration::from(deadline.since(task.created_at))),
        requirements: None,
    }
}

fn requires(run: &Run) -> Option<Requires<'_>> {
    let Requirements { region, capabilities, model } = &run.lane.requires;
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
        output: task.output.as_deref().map(|text| BTreeMap::from([("last_output".to_owned(), text.into())])),
        last_error: last_error(task),
        error: task.failure.as_ref().map(error),
        waiting_for: None,
        usage: task.usage,
        last_event,
        archived_at,
        details: None,
    }
}

/// The last so many.
fn cut<T>(mut items: Vec<T>, count: usize) -> Vec<T> {
    let surplus = items.len().saturating_sub(count);
    items.drain(..surplus);
    items
}

/// How the output came about, agent by agent. Every value is text.
fn tell_how<'a>(
    output: &mut BTreeMap<String, Cow<'a, str>>,
    task: &'a Task,
    runs: &'a [Run],
    events: &[Event],
) {
    let mut put = |key: &str, value: Cow<'a, str>| output.insert(key.to_owned(), value);
    let agents: Vec<&str> = runs.iter().map(|run| run.agent.as_str()).collect();
    put("result", "executed".into());
    if let Some(system) = &task.request.system {
        put("system", Cow::from(&system.name));
    }
    put("priority", priority(task.request.priority).into());
    put("execution_order", agents.join(" -> ").into());
    put("agents_executed", runs.len().to_string().into());
    put("tokens_used_total", task.usage.total().to_string().into());
    for (number, run) in (1..).zip(runs) {
        let tool_calls = events.iter().filter(|event| is_tool_call(event, run)).count();
        let values = [
            ("name", Cow::from(&run.agent)),
            ("model", Cow::from(&run.model)),
            ("steps", run.model_calls.to_string().into()),
            ("tool_calls", tool_calls.to_string().into()),
            ("duration_ms", run.worked_ms.to_string().into()),
            ("tokens_used", run.usage.total().to_string().into()),
            ("token_usage_source", trace::usage_source(run.usage.estimated).into()),
        ];
        for (key, value) in values.into_iter().chain(handed_on(run, runs)) {
            put(&format!("agent.{number}.{key}"), value);
        }
    }
    if let Some(last) = runs.last() {
        put("last_agent", Cow::from(&last.agent));
        put("last_steps", last.model_calls.to_string().into());
        put("last_tokens_used", last.usage.total().to_string().into());
        put("last_token_usage_source", trace::usage_source(last.usage.estimated).into());
        put("last_duration_ms", last.worked_ms.to_string().into());
    }
}

/// To whom the run's agent sent what.
fn handed_on<'a>(run: &'a Run, runs: &'a [Run]) -> impl Iterator<Item = (&'static str, Cow<'a, str>)> {
    let next = runs.iter().skip_while(|other| other.id != run.id).nth(1);
    let content = match &run.state {
        RunState::Ok { output } => output.as_str(),
        _ => "",
    };
    let told = |next: &'a Run| [("message_to", Cow::from(&next.agent)), ("message_content", content.into())];
    next.map(told).into_iter().flatten()
}

fn is_tool_call(event: &Event, run: &Run) -> bool {
    matches!(&event.body, EventBody::StepFinished(step)
        if step.run == run.id && matches!(step.kind, StepKind::Tool { .. }))
}

fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
        Priority::Urgent => "urgent",
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
