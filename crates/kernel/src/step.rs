//! Steps: the journaled effects inside a run. A step is open from its intent on, which rides in the commit
//! before it, until its outcome is committed.

use serde::{Deserialize, Serialize};

use crate::{Failure, StepId, Timestamp, conversation::ToolCallRef};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub id: StepId,
    pub kind: StepKind,
    pub state: StepState,
    /// The attempt that opened it.
    pub attempt: u32,
    pub opened_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StepKind {
    Model { model: String },
    Tool { call: ToolCallRef, arguments: String, idempotent: bool },
    Wait,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StepState {
    Open,
    Done {
        outcome: StepOutcome,
        at: Timestamp,
        /// Milliseconds the effect itself took, as the worker measured it.
        took_ms: u64,
        usage: Usage,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum StepOutcome {
    Ok,
    Failed {
        failure: Failure,
    },
    /// Its run ended while it was under way.
    Interrupted,
}

/// Tokens, as the vendor counted them, or as we estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The vendor reported nothing, so these were estimated.
    #[serde(default)]
    pub estimated: bool,
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    pub fn add(&mut self, other: &Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.estimated |= other.estimated;
    }
}

impl Step {
    pub fn open(id: StepId, kind: StepKind, attempt: u32, now: Timestamp) -> Self {
        Self { id, kind, state: StepState::Open, attempt, opened_at: now }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.state, StepState::Open)
    }
}

impl StepKind {
    /// What people read in a list: the model's or the tool's name.
    pub fn name(&self) -> &str {
        match self {
            StepKind::Model { model } => model,
            StepKind::Tool { call, .. } => &call.name,
            StepKind::Wait => "wait",
        }
    }
}
