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
}

impl UsageView {
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}
