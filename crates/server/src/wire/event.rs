//! An event of the log of all, as those who watch everything see it.

use ostler_control::{Phase, Place, WorkerView, access::Namespaces};
use ostler_kernel::{
    Event, EventBody, TaskState, event::ResourceChanged, message::MessageKind, run::AttemptEnd,
};
use serde::Serialize;

use super::log_line;

#[derive(Debug, Serialize)]
pub struct EventView<'a> {
    /// Behind what to go on. Of the words for one event only the last that is told has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    timestamp: String,
    source: &'static str,
    r#type: String,
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    action: &'static str,
    message: String,
    data: &'a EventBody,
}

/// Which events someone wants.
#[derive(Debug)]
pub struct EventFilter {
    pub source: Option<String>,
    pub r#type: Option<String>,
    pub kind: Option<String>,
    pub name: Option<String>,
    /// Those that are shown, whatever else is asked for.
    pub namespaces: Namespaces,
    /// Whether the caller is told of workers.
    pub shows_workers: bool,
}

impl<'a> EventView<'a> {
    /// An event in every word it goes by elsewhere.
    pub fn all(event: &'a Event, place: Option<&'a Place>) -> Vec<Self> {
        actions(&event.body).into_iter().map(|action| Self::new(event, action, place)).collect()
    }

    fn new(event: &'a Event, action: &'static str, place: Option<&'a Place>) -> Self {
        let (source, family, kind) = match &event.body {
            EventBody::ResourceChanged(ResourceChanged { kind, .. }) => {
                ("apiserver", "resource", kind.as_str())
            }
            EventBody::TaskAccepted { .. } => ("apiserver", "resource", "Task"),
            _ => ("task-controller", "task", "Task"),
        };
        let (namespace, name) =
            place.map_or(("", ""), |(namespace, name)| (namespace.as_str(), name.as_str()));
        Self {
            id: None,
            timestamp: event.at.to_string(),
            source,
            r#type: format!("{family}.{action}"),
            kind,
            name,
            namespace,
            action,
            message: message(action, &event.body),
            data: &event.body,
        }
    }
}

/// A worker became ready, or is not any more.
#[derive(Debug, Serialize)]
pub struct WorkerTurn {
    timestamp: Option<String>,
    source: &'static str,
    r#type: &'static str,
    kind: &'static str,
    name: String,
    action: &'static str,
    message: String,
}

impl WorkerTurn {
    pub fn new(view: &WorkerView) -> Self {
        let (kind, action) = match view.phase {
            Phase::Ready => ("worker.ready", "ready"),
            Phase::NotReady | Phase::Pending => ("worker.not_ready", "not_ready"),
        };
        Self {
            timestamp: view.last_seen.map(|at| at.to_string()),
            source: "worker-controller",
            r#type: kind,
            kind: "Worker",
            name: view.worker.name.clone(),
            action,
            message: format!("worker {} is {}", view.worker.name, view.phase.name()),
        }
    }
}

impl EventFilter {
    /// Workers belong to no namespace: who may look at all of them is told.
    pub fn lets_turn_through(&self, turn: &WorkerTurn) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
        };
        self.shows_workers
            && is(&self.source, turn.source)
            && is(&self.r#type, turn.r#type)
            && is(&self.kind, turn.kind)
            && self.name.as_ref().is_none_or(|wanted| *wanted == turn.name)
    }

    pub fn lets_through(&self, view: &EventView<'_>) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
        };
        is(&self.source, view.source)
            && is(&self.r#type, &view.r#type)
            && is(&self.kind, view.kind)
            && self.name.as_ref().is_none_or(|wanted| wanted == view.name)
            && self.namespaces.has(view.namespace)
    }
}

/// A worker that takes a run is given it and begins in the same commit; who tells the three apart hears of each.
fn actions(body: &EventBody) -> Vec<&'static str> {
    match body {
        EventBody::AttemptStarted { .. } => vec![ASSIGNED, action(body), RUNNING],
        other => vec![action(other)],
    }
}

const ASSIGNED: &str = "assigned";
pub const RUNNING: &str = "running";

/// The same in a sentence.
pub fn message(action: &str, body: &EventBody) -> String {
    match (action, body) {
        (ASSIGNED, EventBody::AttemptStarted { worker, .. }) => format!("assigned to {worker}"),
        (RUNNING, EventBody::AttemptStarted { worker, .. }) => format!("running on {worker}"),
        (_, body) => log_line::what(body),
    }
}

/// What happened, in a word.
pub fn action(body: &EventBody) -> &'static str {
    match body {
        EventBody::TaskAccepted { .. } => "created",
        EventBody::AttemptStarted { .. } => "claimed",
        EventBody::StepFinished(_) => "trace",
        EventBody::AttemptEnded { end: AttemptEnd::Error { .. }, .. } => "attempt_failed",
        EventBody::AttemptEnded { end: AttemptEnd::Yielded | AttemptEnd::Lost, .. } => "assignment_cleared",
        EventBody::RunRetrying { .. } => "retry_scheduled",
        EventBody::RunWaiting { .. } => "waiting_approval",
        EventBody::RunSleeping { .. } => "sleeping",
        EventBody::RunReady { .. } => "ready",
        EventBody::InputAccepted { .. } => "input",
        EventBody::MessageSent { message, .. } => match message.kind {
            MessageKind::TaskStart => "runtime_kickoff",
            MessageKind::TaskHandoff => "message",
        },
        EventBody::RunEnded { .. } => "handed_on",
        EventBody::TaskEnded { state, .. } => match state {
            TaskState::Succeeded => "succeeded",
            TaskState::DeadLetter => "deadletter",
            TaskState::Cancelled => "cancelled",
            TaskState::Queued
            | TaskState::Running
            | TaskState::Waiting { .. }
            | TaskState::Sleeping { .. }
            | TaskState::Failed
            | TaskState::Dropped { .. } => "failed",
        },
        EventBody::ResourceChanged(changed) => changed.change.name(),
        EventBody::Unknown(_) => body.name(),
    }
}
