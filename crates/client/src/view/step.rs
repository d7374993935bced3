//! A step: one journaled effect inside a run.

use serde::{Deserialize, Serialize};

use super::{FailureView, UsageView};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepView {
    pub id: StepId,
    /// Whose it is; an older server doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub kind: StepKind,
    pub state: StepState,
    pub attempt: u32,
    /// Milliseconds since 1970.
    #[serde(rename = "opened_at")]
    pub opened_at_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepId {
    pub run: String,
    pub index: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StepKind {
    Model {
        model: String,
        /// Set where one of the agent's fallbacks was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fallback: Option<Fallback>,
    },
    Tool {
        call: ToolCall,
        /// As the model wrote them: not always valid JSON.
        arguments: String,
        idempotent: bool,
        /// Set where it was answered without a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instead: Option<Instead>,
    },
    Wait,
    /// Of a newer server.
    #[serde(other)]
    Other,
}

/// A model that was asked because those before it could not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fallback {
    /// The first is 1.
    pub place: u32,
    pub endpoint: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "instead", rename_all = "snake_case")]
pub enum Instead {
    /// By what this step gave.
    Reuse { step: u32 },
    /// By a refusal: the step's failure.
    Refused,
    /// Of a newer server.
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StepState {
    Open,
    Done {
        outcome: StepOutcome,
        /// Milliseconds since 1970.
        #[serde(rename = "at")]
        at_ms: i64,
        took_ms: u64,
        usage: UsageView,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum StepOutcome {
    Ok,
    Failed {
        failure: FailureView,
    },
    /// Its run ended while it was under way.
    Interrupted,
    /// Of a newer server.
    #[serde(other)]
    Other,
}

impl StepKind {
    /// The model's or the tool's name.
    pub fn name(&self) -> &str {
        match self {
            StepKind::Model { model, .. } => model,
            StepKind::Tool { call, .. } => &call.name,
            StepKind::Wait => "wait",
            StepKind::Other => "step",
        }
    }

    /// What is special about it, in a few words.
    pub fn remark(&self) -> Option<String> {
        match self {
            StepKind::Model { fallback: Some(fallback), .. } => {
                Some(format!("fallback {}", fallback.endpoint))
            }
            StepKind::Tool { instead: Some(Instead::Reuse { step }), .. } => Some(format!("as step {step}")),
            StepKind::Model { .. } | StepKind::Tool { .. } | StepKind::Wait | StepKind::Other => None,
        }
    }
}
