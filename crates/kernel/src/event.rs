//! A task's log: typed values, never text to be parsed. Trace, timeline, metrics, SSE and CLI all read it.

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
    StepFinished(StepFinished),
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
        }
    }

    /// Nothing follows it in its task's log.
    pub fn is_last(&self) -> bool {
        matches!(self, EventBody::TaskEnded { .. })
    }
}
