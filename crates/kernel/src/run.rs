//! Runs: one agent working on one message of one task, in one session. Each file below this folder is one
//! thing that can happen to a run; it takes the run as it was read and returns the bundle that moves it.
//!
//! The epoch rises whenever a run changes hands: it is claimed, ends, yields, is taken over or cancelled.
//! So whoever holds an older one can't write, whatever its clock says.

pub mod blocker;
pub mod cancel;
pub mod claim;
pub mod end;
pub mod hand_on;
pub mod journal;
pub mod take_over;
pub mod wake;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    BlobId, Block, BlockerId, Entry, Expect, Failure, RunId, Session, SessionId, Step, Task, TaskId,
    Timestamp, Write,
    message::Message,
    queue::{self, Lane, Priority},
    retry::RetryPolicy,
    run::blocker::Blocker,
    step::{Fallback, Usage},
    worker::Lease,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub task: TaskId,
    pub session: SessionId,
    /// What it works on, where its task is a system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Its place among the runs of its session.
    pub order: u64,
    pub agent: String,
    pub plan: BlobId,
    /// The model of the plan, for lists and traces.
    pub model: String,
    pub lane: Lane,
    pub priority: Priority,
    pub retry: RetryPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    pub created_at: Timestamp,

    #[serde(flatten)]
    pub state: RunState,
    pub epoch: u64,
    /// Attempts begun.
    pub attempt: u32,
    /// When the last of them began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_at: Option<Timestamp>,
    /// Who makes the last of them, or made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Failures that count against the retry budget.
    pub failures: u32,
    /// Attempts lost since a step was last finished.
    pub lost_in_row: u32,
    /// Attempts given up by a new start of their worker since a step was last finished.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarted_in_row: u32,
    /// Times it slept on a failure since a step was last finished.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slept_in_row: u32,
    /// Journal writes taken, over all attempts.
    pub journal: u64,
    /// The last of them, so that it can be told when it is sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_write: Option<(u64, u64)>,
    pub next_step: u32,
    /// Where the session's next entry stands, once the run has begun.
    pub next_entry: u64,
    /// Model calls that were answered.
    pub model_calls: u32,
    /// Tool calls that are over, however they ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_calls: u32,
    /// Time worked, over all attempts.
    pub worked_ms: u64,
    pub usage: Usage,
    /// The model that it was asking when its journal ended, if that is not the plan's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunState {
    Queued {
        ready: Ready,
    },
    Running {
        lease: Lease,
    },
    Waiting {
        on: BlockerId,
    },
    Sleeping {
        until: Timestamp,
        /// For how long, whatever a calendar made of it. Who wrote it may not have said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        /// What it waits to pass, if something failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Failure>,
    },
    Ok {
        output: String,
    },
    Error {
        failure: Failure,
    },
    Timeout {
        failure: Failure,
    },
    Cancelled {
        failure: Failure,
    },
}

/// Why a queued run may be claimed, or may not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ready", rename_all = "snake_case")]
pub enum Ready {
    /// Claimable. Lower ranks go first.
    Now { rank: i64 },
    NotBefore {
        at: Timestamp,
        /// For how long, whatever a calendar made of it. Who wrote it may not have said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
    },
    /// An earlier run of its session has not ended.
    AfterSession,
}

/// The name of a state, without what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunTag {
    Queued,
    Running,
    Waiting,
    Sleeping,
    Ok,
    Error,
    Timeout,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum AttemptEnd {
    /// Gave its slot back, to wait or because its worker stops; never counted.
    Yielded,
    Error {
        failure: Failure,
    },
    /// Its worker was gone.
    Lost,
}

/// A run with what surrounds it, as read in one look at the store.
#[derive(Debug, Clone, PartialEq)]
pub struct RunView {
    pub task: Task,
    pub run: Run,
    pub session: Session,
    pub open_steps: Vec<Step>,
    /// What the run waits for, if it does.
    pub blocker: Option<Blocker>,
    /// The run behind it in its session that has not ended.
    pub next: Option<Run>,
    /// The number of the task's last input, and of the last one a run consumed.
    pub last_input: u64,
    pub consumed_input: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {state:?}, which doesn't allow that")]
pub struct Illegal {
    pub what: RunId,
    pub state: RunTag,
}

impl RunState {
    pub fn tag(&self) -> RunTag {
        match self {
            RunState::Queued { .. } => RunTag::Queued,
            RunState::Running { .. } => RunTag::Running,
            RunState::Waiting { .. } => RunTag::Waiting,
            RunState::Sleeping { .. } => RunTag::Sleeping,
            RunState::Ok { .. } => RunTag::Ok,
            RunState::Error { .. } => RunTag::Error,
            RunState::Timeout { .. } => RunTag::Timeout,
            RunState::Cancelled { .. } => RunTag::Cancelled,
        }
    }
}

impl RunTag {
    pub fn is_terminal(self) -> bool {
        match self {
            RunTag::Queued | RunTag::Running | RunTag::Waiting | RunTag::Sleeping => false,
            RunTag::Ok | RunTag::Error | RunTag::Timeout | RunTag::Cancelled => true,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            RunTag::Queued => "queued",
            RunTag::Running => "running",
            RunTag::Waiting => "waiting",
            RunTag::Sleeping => "sleeping",
            RunTag::Ok => "ok",
            RunTag::Error => "error",
            RunTag::Timeout => "timeout",
            RunTag::Cancelled => "cancelled",
        }
    }

    pub fn from_name(name: &str) -> Option<RunTag> {
        use RunTag::{Cancelled, Error, Ok, Queued, Running, Sleeping, Timeout, Waiting};
        [Queued, Running, Waiting, Sleeping, Ok, Error, Timeout, Cancelled]
            .into_iter()
            .find(|tag| tag.name() == name)
    }
}

impl Run {
    pub fn tag(&self) -> RunTag {
        self.state.tag()
    }

    pub fn is_terminal(&self) -> bool {
        self.tag().is_terminal()
    }

    /// Claimed once and not ended: the one writer of its session, also while it waits.
    pub fn is_live(&self) -> bool {
        self.attempt > 0 && !self.is_terminal()
    }

    /// Its place among those that may be claimed.
    pub fn rank(&self) -> Option<i64> {
        match self.state {
            RunState::Queued { ready: Ready::Now { rank } } => Some(rank),
            _ => None,
        }
    }

    /// When something must happen to it by itself: the end of a delay or a sleep.
    pub fn wake_at(&self) -> Option<Timestamp> {
        match self.state {
            RunState::Queued { ready: Ready::NotBefore { at, .. } } => Some(at),
            RunState::Sleeping { until, .. } => Some(until),
            _ => None,
        }
    }

    /// How long it is delayed or sleeps, from when that was decided, if it was said.
    pub fn delay(&self) -> Option<Duration> {
        match self.state {
            RunState::Queued { ready: Ready::NotBefore { delay_ms, .. } }
            | RunState::Sleeping { delay_ms, .. } => delay_ms.map(Duration::from_millis),
            _ => None,
        }
    }

    pub fn lease(&self) -> Option<&Lease> {
        match &self.state {
            RunState::Running { lease } => Some(lease),
            _ => None,
        }
    }

    /// What its agent is told to begin with.
    pub fn told(&self, task: &Task) -> String {
        let about = &task.request.message;
        self.message.as_ref().map_or_else(|| about.clone(), |message| message.told(about))
    }

    /// What its conversation begins, or goes on, with: what it is told, and the images that came with its task.
    pub fn opening(&self, task: &Task) -> Entry {
        let mut entry = Entry::user(self.id, self.told(task));
        entry.blocks.extend(task.request.images().map(Block::Image));
        entry
    }

    /// What must still be true when a decision made on this row is committed.
    pub(crate) fn expected(&self) -> Expect {
        Expect::Run { id: self.id, state: self.tag(), epoch: self.epoch, journal: None }
    }

    /// The same, and no journal write came in between.
    fn expected_untouched(&self) -> Expect {
        Expect::Run { id: self.id, state: self.tag(), epoch: self.epoch, journal: Some(self.journal) }
    }

    /// The run in its next state, out of the hands of whoever held it.
    fn moved(&self, state: RunState) -> Run {
        Run { state, epoch: self.epoch + 1, ..self.clone() }
    }

    fn ready_at(&self, at: Timestamp) -> RunState {
        RunState::Queued { ready: Ready::Now { rank: queue::rank(at, self.priority) } }
    }
}

/// The run's row and its task's, which follows from it.
fn rows(task: &Task, run: Run, now: Timestamp) -> [Write; 2] {
    [Write::Task(task.project(&run, now)), Write::Run(run)]
}
