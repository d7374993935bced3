//! A task's log: typed values, never text to be parsed. Trace, timeline, metrics, SSE and CLI all read it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    BlockerId, Failure, RunId, TaskId, TaskState, Timestamp,
    message::Message,
    run::AttemptEnd,
    step::{StepKind, StepOutcome, Usage},
};

/// An entry of a task's log, as it is read back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its place in the task's log: 1, 2, 3 without a gap.
    pub seq: u64,
    /// Its place among all events of the store.
    pub position: u64,
    pub task: TaskId,
    pub at: Timestamp,
    pub body: EventBody,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    TaskAccepted {
        /// The system that it is for, if it is for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system: Option<String>,
        /// Who begins.
        agent: String,
        run: RunId,
    },
    AttemptStarted {
        run: RunId,
        attempt: u32,
        worker: String,
        /// The step at which it starts or goes on.
        step: u32,
    },
    StepFinished(Box<StepFinished>),
    AttemptEnded {
        run: RunId,
        attempt: u32,
        end: AttemptEnd,
    },
    RunRetrying {
        run: RunId,
        failure: Failure,
        failures: u32,
        not_before: Timestamp,
    },
    RunWaiting {
        run: RunId,
        blocker: BlockerId,
        summary: String,
    },
    RunSleeping {
        run: RunId,
        until: Timestamp,
        /// What it waits to pass, if something failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
    RunReady {
        run: RunId,
        reason: ReadyReason,
    },
    InputAccepted {
        run: RunId,
        /// Its place among the task's inputs.
        input: u64,
    },
    /// Work for an agent of a system: its run waits in the queue.
    MessageSent {
        run: RunId,
        message: Message,
    },
    /// A run has ended well, and its task goes on with another.
    RunEnded {
        run: RunId,
        usage: Usage,
    },
    TaskEnded {
        state: TaskState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        usage: Usage,
    },
    /// Of no task: a resource was written or deleted. It stands in a log of its own.
    ResourceChanged(ResourceChanged),
    /// Written by a newer version, while servers are brought up to date one by one. It keeps its place in the log, and is
    /// passed on as it is.
    #[serde(untagged)]
    Unknown(UnknownEvent),
}

/// All that it says. Its type may be known, and what is in it not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnknownEvent(serde_json::Map<String, serde_json::Value>);

impl UnknownEvent {
    /// What the newer version calls it.
    pub fn written_as(&self) -> &str {
        self.0.get("type").and_then(serde_json::Value::as_str).unwrap_or_default()
    }
}

/// What those who watch resources are told; how the resource is now, they read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceChanged {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    /// As its manifest says, unless it is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    pub change: Change,
    /// Of a deleted one, its last.
    pub version: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What it had before, so that whoever selects by labels is told when it no longer counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub former_labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Created,
    Updated,
    /// Only what was found out about it.
    Status,
    Deleted,
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Change::Created => "created",
            Change::Updated => "updated",
            Change::Status => "status",
            Change::Deleted => "deleted",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFinished {
    pub run: RunId,
    pub step: u32,
    pub attempt: u32,
    pub kind: StepKind,
    #[serde(flatten)]
    pub outcome: StepOutcome,
    pub started_at: Timestamp,
    pub took_ms: u64,
    pub usage: Usage,
    /// The start of what it gave: the model's words or the tool's result.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preview: String,
    /// What of the agent's contract it breaks, where that is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_violation: Option<String>,
    /// The steps that begin now, because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opened: Vec<OpenedStep>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenedStep {
    pub step: u32,
    pub kind: StepKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadyReason {
    /// Its time has come: a retry's delay, or the end of a sleep.
    Due,
    /// The run before it in the session ended.
    SessionFree,
    /// What it waited for was answered.
    Answered,
    /// An input came for it.
    Input,
}

impl EventBody {
    /// The run that it tells of.
    pub fn run(&self) -> Option<RunId> {
        match self {
            EventBody::TaskAccepted { run, .. }
            | EventBody::AttemptStarted { run, .. }
            | EventBody::AttemptEnded { run, .. }
            | EventBody::RunRetrying { run, .. }
            | EventBody::RunWaiting { run, .. }
            | EventBody::RunSleeping { run, .. }
            | EventBody::RunReady { run, .. }
            | EventBody::InputAccepted { run, .. }
            | EventBody::MessageSent { run, .. }
            | EventBody::RunEnded { run, .. } => Some(*run),
            EventBody::StepFinished(step) => Some(step.run),
            EventBody::TaskEnded { .. } | EventBody::ResourceChanged(_) | EventBody::Unknown(_) => None,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            EventBody::TaskAccepted { .. } => "task_accepted",
            EventBody::AttemptStarted { .. } => "attempt_started",
            EventBody::StepFinished(_) => "step_finished",
            EventBody::AttemptEnded { .. } => "attempt_ended",
            EventBody::RunRetrying { .. } => "run_retrying",
            EventBody::RunWaiting { .. } => "run_waiting",
            EventBody::RunSleeping { .. } => "run_sleeping",
            EventBody::RunReady { .. } => "run_ready",
            EventBody::InputAccepted { .. } => "input_accepted",
            EventBody::MessageSent { .. } => "message_sent",
            EventBody::RunEnded { .. } => "run_ended",
            EventBody::TaskEnded { .. } => "task_ended",
            EventBody::ResourceChanged(_) => "resource_changed",
            EventBody::Unknown(_) => "unknown",
        }
    }

    /// Nothing follows it in its task's log.
    pub fn is_last(&self) -> bool {
        matches!(self, EventBody::TaskEnded { .. })
            || matches!(self, EventBody::Unknown(unknown) if unknown.written_as() == "task_ended")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_version_wrote_is_passed_on_as_it_is() {
        for (text, is_last) in [
            (r#"{"type":"run_pondered","run":"r","about":{"what":[1,2]}}"#, false),
            (r#"{"type":"run_ready","run":"r","reason":"full_moon"}"#, false),
            (r#"{"type":"task_ended","state":{"state":"evaporated"}}"#, true),
        ] {
            let event: EventBody = serde_json::from_str(text).unwrap();
            assert_eq!((event.name(), event.is_last(), event.run()), ("unknown", is_last, None));
            let again: serde_json::Value = serde_json::to_value(&event).unwrap();
            assert_eq!(again, serde_json::from_str::<serde_json::Value>(text).unwrap());
        }
        assert!(serde_json::from_str::<EventBody>("[]").is_err(), "that is no event");
    }

    #[test]
    fn what_is_known_is_not_taken_for_unknown() {
        let run = RunId::from_bytes([7; 16]);
        let event = EventBody::RunReady { run, reason: ReadyReason::Due };
        let again: EventBody = serde_json::from_str(&serde_json::to_string(&event).unwrap()).unwrap();
        assert_eq!(event, again);
    }
}
