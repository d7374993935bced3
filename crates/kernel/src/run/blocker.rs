//! Blockers: what a run waits for. While it waits it holds no worker and uses no retry.

use serde::{Deserialize, Serialize};

use super::Run;
use crate::{BlockerId, RunId, TaskId, Timestamp};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blocker {
    pub id: BlockerId,
    pub task: TaskId,
    pub run: RunId,
    pub kind: BlockerKind,
    /// What a person needs to know to answer.
    pub summary: String,
    pub opened_at: Timestamp,
    #[serde(flatten)]
    pub state: BlockerState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockerKind {
    /// Any input for the task answers it.
    Input,
    Approval,
    /// The run lost its workers again and again; a person decides whether it may go on.
    Quarantine,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum BlockerState {
    Open,
    Resolved {
        resolution: String,
        at: Timestamp,
    },
    /// Its run ended before anybody answered; nobody can any more.
    Void {
        at: Timestamp,
    },
}

impl Blocker {
    pub(super) fn open(
        id: BlockerId,
        run: &Run,
        kind: BlockerKind,
        summary: String,
        now: Timestamp,
    ) -> Blocker {
        Blocker { id, task: run.task, run: run.id, kind, summary, opened_at: now, state: BlockerState::Open }
    }

    #[must_use]
    pub(crate) fn resolved(&self, resolution: &str, now: Timestamp) -> Blocker {
        let state = BlockerState::Resolved { resolution: resolution.to_owned(), at: now };
        Blocker { state, ..self.clone() }
    }

    #[must_use]
    pub(super) fn void(&self, now: Timestamp) -> Blocker {
        Blocker { state: BlockerState::Void { at: now }, ..self.clone() }
    }
}
