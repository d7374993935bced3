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

/// Tokens, as the vendor counted them, or as we estimated. What is beside the first two is part of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Everything the model read, from a cache or not.
    pub input_tokens: u64,
    /// Everything it wrote, its thinking included.
    pub output_tokens: u64,
    /// The vendor reported nothing, so these were estimated.
    #[serde(default)]
    pub estimated: bool,
    /// Of the input: read from the vendor's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read_tokens: u64,
    /// Of the input: put into the vendor's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Of the output: thinking.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    pub fn add(&mut self, other: &Usage) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.cache_read_tokens, other.cache_read_tokens);
        add(&mut self.cache_write_tokens, other.cache_write_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_before_there_were_caches_is_read_and_written_alike() {
        let old = r#"{"input_tokens":7,"output_tokens":2,"estimated":false}"#;
        let usage: Usage = serde_json::from_str(old).unwrap();
        assert_eq!((usage.total(), usage.cache_read_tokens, usage.reasoning_tokens), (9, 0, 0));
        assert_eq!(serde_json::to_string(&usage).unwrap(), old);
    }

    #[test]
    fn every_count_adds_up_and_none_overflows() {
        let mut sum = Usage { cache_read_tokens: u64::MAX, ..Usage::default() };
        let one = Usage {
            input_tokens: 1,
            output_tokens: 2,
            estimated: true,
            cache_read_tokens: 3,
            cache_write_tokens: 4,
            reasoning_tokens: 5,
        };
        sum.add(&one);
        assert_eq!(sum, Usage { cache_read_tokens: u64::MAX, ..one });
    }
}
