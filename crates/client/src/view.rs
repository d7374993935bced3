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
pub use step::{StepId, StepKind, StepOutcome, StepState, StepView, ToolCall};
pub use task::{
    TaskMetadata, TaskOutput, TaskRequires, TaskRetry, TaskSpecView, TaskStatus, TaskView, WaitingFor,
};

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureView {
    pub code: String,
    /// Decides about retries: `transient`, `permanent`, `limit`, `timeout`, `outcome_unknown`, `cancelled`.
    pub class: String,
    pub message: String,
}

/// Tokens.
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
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl UsageView {
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}
