//! Tasks: one durable request, as its caller sees it. A task's state is a projection of its runs, written in
//! the commit that moved them. Terminal is terminal.

pub mod accept;
pub mod forget;
pub mod input;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    BlobId, BlockerId, Failure, Run, RunId, RunState, SessionId, TaskId, Timestamp, failure::ErrorClass,
    queue::Priority, retry::RetryPolicy, step::Usage,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub namespace: String,
    pub name: String,
    pub session: SessionId,
    pub run: RunId,
    pub request: TaskRequest,
    #[serde(flatten)]
    pub state: TaskState,
    /// Raised by every write.
    pub version: u64,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    pub usage: Usage,
}

/// What was asked for; never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRequest {
    pub agent: String,
    /// The frozen plan of the agent, by its hash.
    pub plan: BlobId,
    pub message: String,
    pub input: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub priority: Priority,
    pub retry: RetryPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TaskState {
    Queued,
    Running,
    Waiting { on: BlockerId },
    Sleeping { until: Timestamp },
    Succeeded,
    Failed,
    DeadLetter,
    Cancelled,
    Dropped { reason: String },
}

impl TaskState {
    pub fn name(&self) -> &'static str {
        match self {
            TaskState::Queued => "queued",
            TaskState::Running => "running",
            TaskState::Waiting { .. } => "waiting",
            TaskState::Sleeping { .. } => "sleeping",
            TaskState::Succeeded => "succeeded",
            TaskState::Failed => "failed",
            TaskState::DeadLetter => "dead_letter",
            TaskState::Cancelled => "cancelled",
            TaskState::Dropped { .. } => "dropped",
        }
    }

    pub fn is_terminal(&self) -> bool {
        match self {
            TaskState::Queued
            | TaskState::Running
            | TaskState::Waiting { .. }
            | TaskState::Sleeping { .. } => false,
            TaskState::Succeeded
            | TaskState::Failed
            | TaskState::DeadLetter
            | TaskState::Cancelled
            | TaskState::Dropped { .. } => true,
        }
    }
}

impl Task {
    /// The task as its run makes it.
    #[must_use]
    pub fn project(&self, run: &Run, now: Timestamp) -> Task {
        let mut task = self.clone();
        task.version += 1;
        task.state = state_of(run);
        task.usage = run.usage;
        if matches!(task.state, TaskState::Running) && task.started_at.is_none() {
            task.started_at = Some(now);
        }
        if task.state.is_terminal() {
            task.ended_at = Some(now);
        }
        match &run.state {
            RunState::Ok { output } => task.output = Some(output.clone()),
            RunState::Error { failure } | RunState::Timeout { failure } | RunState::Cancelled { failure } => {
                task.failure = Some(failure.clone());
            }
            RunState::Queued { .. }
            | RunState::Running { .. }
            | RunState::Waiting { .. }
            | RunState::Sleeping { .. } => {}
        }
        task
    }
}

fn state_of(run: &Run) -> TaskState {
    match &run.state {
        // Between two attempts the caller sees work that goes on, not work that starts anew.
        RunState::Queued { .. } if run.attempt > 0 => TaskState::Running,
        RunState::Queued { .. } => TaskState::Queued,
        RunState::Running { .. } => TaskState::Running,
        RunState::Waiting { on } => TaskState::Waiting { on: *on },
        RunState::Sleeping { until } => TaskState::Sleeping { until: *until },
        RunState::Ok { .. } => TaskState::Succeeded,
        // Retryable, and yet here: its retries are used up.
        RunState::Error { failure } if failure.class == ErrorClass::Transient => TaskState::DeadLetter,
        RunState::Error { .. } | RunState::Timeout { .. } => TaskState::Failed,
        RunState::Cancelled { .. } => TaskState::Cancelled,
    }
}
