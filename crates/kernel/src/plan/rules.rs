//! How strictly a run is held to a shape: what its output must be, which tools it has to call, and what becomes of
//! calls that it made before. A plan of an older version says nothing of it, and nothing is asked for then.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// JSON schema that the output must fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
    /// A contract: these tools are called, each at least once, and no others. Empty is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contract: Vec<String>,
    /// Texts that the output must contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<String>,
    pub on_violation: OnViolation,
    pub duplicates: Duplicates,
    pub after_tool: AfterTool,
}

/// What comes of a run that breaks its contract.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnViolation {
    #[default]
    Fail,
    /// It is told, and the run goes on.
    Observe,
}

/// What a call gets that was made before in the same run: same tool, same arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplicates {
    /// It is made again.
    #[default]
    Call,
    /// What the first one gave.
    Reuse,
    /// An error.
    Deny,
}

/// What follows a tool call that went well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterTool {
    /// The model is asked what it makes of it.
    #[default]
    AskModel,
    /// What the tool gave is the output.
    Stop,
}
