//! Tasks: one durable request, as its caller sees it. A task's state is a projection of its runs, written in
//! the commit that moved them. Terminal is terminal.

pub mod accept;
pub mod forget;
pub mod input;
mod tries;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    BlobId, BlockerId, Failure, Run, RunId, RunState, SessionId, TaskId, Timestamp,
    conversation::Image,
    failure::ErrorClass,
    queue::{Lane, Priority, Requirements},
    retry::RetryPolicy,
    step::Usage,
    trace::TraceContext,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub namespace: String,
    pub name: String,
    pub session: SessionId,
    /// The one that is at work, or was last.
    pub run: RunId,
    /// Those before it, in a system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<PastRun>,
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

/// A run of the task that has ended while the task went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRun {
    pub run: RunId,
    pub session: SessionId,
    pub usage: Usage,
    /// How many tries at the whole it used up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tries: u32,
}

/// What was asked for; never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRequest {
    /// The `apiVersion` of its manifest, unless that is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Who does it; of a system, who begins.
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<SystemPlan>,
    /// The frozen plan of the agent, by its hash.
    pub plan: BlobId,
    pub message: String,
    pub input: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    pub priority: Priority,
    /// What whoever does it must have.
    #[serde(default, skip_serializing_if = "Requirements::is_empty")]
    pub requires: Requirements,
    /// How often the work of one agent is tried.
    pub retry: RetryPolicy,
    /// How often the whole is; none where that was declared alike, and the two are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_retry: Option<RetryPolicy>,
    /// What says, in the text of a failure and in any case, that it does not pass by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable: Vec<String>,
    /// How often any one agent may be sent to; 0 is no bound. In a line each is once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_turns: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Where in its caller's trace it belongs, if the caller said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
}

impl TaskRequest {
    /// Whom it was sent to, as its caller named it. A system's agents may change from one task to the next.
    pub fn doer(&self) -> (&'static str, &str) {
        match &self.system {
            Some(system) => ("system", &system.name),
            None => ("agent", &self.agent),
        }
    }

    /// What it brings to look at: every value of its input that is an image, in the order of their names.
    pub fn images(&self) -> impl Iterator<Item = Image> {
        self.input.values().filter_map(|value| Image::from_data_url(value))
    }

    /// Whether it is the same request as another; how often it is tried and how soon is none of it. The message is made of
    /// the input, and not by every version in the same words.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        self.doer() == other.doer() && self.input == other.input && self.session_key == other.session_key
    }

    /// The plans of all who take part in it.
    pub fn plans(&self) -> impl Iterator<Item = BlobId> {
        let stages = self.system.iter().flat_map(|system| &system.line);
        std::iter::once(self.plan).chain(stages.map(|stage| stage.plan))
    }

    /// Whether the agent does it, or takes part in it.
    pub fn has_agent(&self, name: &str) -> bool {
        match &self.system {
            Some(system) => system.line.iter().any(|stage| stage.agent == name),
            None => self.agent == name,
        }
    }
}

/// A system as it was when the task was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemPlan {
    pub name: String,
    /// The agents, one behind the other.
    pub line: Vec<Stage>,
}

/// An agent's place in a system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    pub agent: String,
    /// Its frozen plan, by its hash.
    pub plan: BlobId,
    /// The model of the plan.
    pub model: String,
    pub lane: Lane,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TaskState {
    Queued,
    Running,
    Waiting {
        on: BlockerId,
    },
    Sleeping {
        until: Timestamp,
        /// What it waits to pass, if something failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Failure>,
    },
    Succeeded,
    Failed,
    DeadLetter,
    Cancelled,
    Dropped {
        reason: String,
    },
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
        task.state = match state_of(run) {
            // Between two agents of a system too, the caller sees work that goes on.
            TaskState::Queued if !task.past.is_empty() => TaskState::Running,
            state => state,
        };
        task.usage = task.used(run);
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

impl Task {
    /// What the task has used so far, where `run` is at work.
    pub fn used(&self, run: &Run) -> Usage {
        self.past.iter().fold(run.usage, |mut all, past| {
            all.add(&past.usage);
            all
        })
    }

    /// Every run it had, the present one last.
    pub fn runs(&self) -> impl Iterator<Item = RunId> {
        self.past.iter().map(|past| past.run).chain([self.run])
    }

    /// The task where `ended` is done and `next` goes on.
    pub(crate) fn handed_on(&self, ended: &Run, next: &Run, now: Timestamp) -> Task {
        let mut task = self.clone();
        let tries = task.used_up(ended);
        task.past.push(PastRun { run: ended.id, session: ended.session, usage: ended.usage, tries });
        (task.run, task.session) = (next.id, next.session);
        task.project(next, now)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn state_of(run: &Run) -> TaskState {
    match &run.state {
        // Between two attempts the caller sees work that goes on, not work that starts anew.
        RunState::Queued { .. } if run.attempt > 0 => TaskState::Running,
        RunState::Queued { .. } => TaskState::Queued,
        RunState::Running { .. } => TaskState::Running,
        RunState::Waiting { on } => TaskState::Waiting { on: *on },
        RunState::Sleeping { until, why, .. } => TaskState::Sleeping { until: *until, why: why.clone() },
        RunState::Ok { .. } => TaskState::Succeeded,
        // Retryable, and yet here: its retries are used up.
        RunState::Error { failure } if failure.class == ErrorClass::Transient => TaskState::DeadLetter,
        RunState::Error { .. } | RunState::Timeout { .. } => TaskState::Failed,
        RunState::Cancelled { .. } => TaskState::Cancelled,
    }
}
