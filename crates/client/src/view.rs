//! What the server says, typed.

mod event;
mod message;
mod step;
mod task;

use serde::{Deserialize, Serialize};

pub use event::{
    AttemptEnd, DeltaView, EventBody, EventView, EventsPage, LogView, OpenedStep, StateName, StepFinished,
};
pub use message::MessageView;
pub use step::{Fallback, Instead, StepId, StepKind, StepOutcome, StepState, StepView, ToolCall};
pub use task::{
    TaskMessageRetry, TaskMetadata, TaskOutput, TaskRequires, TaskRetry, TaskSpecView, TaskStatus, TaskView,
    WaitingFor,
};

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureView {
    pub code: String,
    /// Decides about retries: `transient`, `permanent`, `limit`, `timeout`, `outcome_unknown`, `cancelled`.
    pub class: String,
    pub message: String,
}

/// Tokens, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageView {
    pub input_tokens: u64,
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
    /// What they cost, in millionths of a US dollar, if a price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// Some of them have no known price, or a call was stopped and nobody knows what it used: it was more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_incomplete: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl UsageView {
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Both of them, as the server adds them up: what has no known price is not free, so the sum says that it lacks something.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let parts = [self, other];
        let lacks_some = parts.iter().any(|part| part.cost_micro_usd.is_none() && part.total() > 0);
        let is_incomplete = parts.iter().any(|part| part.cost_incomplete);
        let cost_micro_usd = parts.iter().filter_map(|part| part.cost_micro_usd).reduce(u64::saturating_add);
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            estimated: self.estimated || other.estimated,
            cache_read_tokens: self.cache_read_tokens.saturating_add(other.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            cost_micro_usd,
            cost_incomplete: is_incomplete || cost_micro_usd.is_some() && lacks_some,
        }
    }
}
