//! What a run works by: its agent with model, tools and limits, frozen when the task was accepted, so that a
//! change of a resource never changes a run half-way. Many tasks share one plan; it is stored by its hash.

mod rules;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Price;
pub use rules::{AfterTool, Duplicates, OnViolation, Rules};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentPlan {
    pub namespace: String,
    pub agent: String,
    /// What people say that it is for. No model is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub prompt: String,
    pub model: ModelPlan,
    /// Asked in this order when the model before can't answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<ModelPlan>,
    pub tools: Vec<ToolPlan>,
    pub limits: Limits,
    #[serde(default)]
    pub rules: Rules,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelPlan {
    /// Where the ModelEndpoint lives; empty in plans of before this was told, and for the built-in model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The ModelEndpoint it came from.
    pub endpoint: String,
    pub provider: String,
    pub base_url: String,
    pub model: String,
    pub options: BTreeMap<String, String>,
    /// Names a secret; never holds one.
    pub secret_ref: Option<String>,
    pub allow_private: bool,
    #[serde(default, skip_serializing_if = "ModelLimits::is_default")]
    pub limits: ModelLimits,
    /// What its tokens cost, if the endpoint says so; or else a worker's table may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// How much is asked of an endpoint at most, by each worker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelLimits {
    /// Calls under way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Calls begun in any minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Tokens read and written by the calls begun in any minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// How long a call waits for its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
    /// Faults in a row behind which the endpoint is left alone; 0 is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker_failures: Option<u32>,
    /// For how long it is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker_cooldown_ms: Option<u64>,
}

impl ModelLimits {
    /// Whether calls may have to wait for one another.
    pub fn has_turns(&self) -> bool {
        self.concurrency.is_some() || self.requests_per_minute.is_some() || self.tokens_per_minute.is_some()
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolPlan {
    pub name: String,
    /// The way it is called, such as `http`.
    pub way: String,
    pub endpoint: String,
    pub description: String,
    /// JSON schema of its arguments.
    pub input_schema: Option<serde_json::Value>,
    /// Whether a call of unknown outcome may be made again under the same request id.
    pub idempotent: bool,
    pub timeout_ms: u64,
    pub retry: crate::retry::RetryPolicy,
    pub allow_private: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthPlan>,
}

/// How a call shows who makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthPlan {
    /// Names a secret; never holds one.
    pub secret_ref: String,
    pub shown: AuthForm,
}

/// Where the secret stands in the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "snake_case")]
pub enum AuthForm {
    /// `Authorization: Bearer <secret>`.
    Bearer,
    /// `Authorization: Basic <secret in base64>`; the secret is `user:password`.
    Basic,
    /// `<header>: <secret>`.
    Header { header: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Model calls in one run.
    pub max_steps: u32,
    /// Time one run may work, over all its attempts.
    pub timeout_ms: Option<u64>,
    /// Tokens one run may use.
    pub token_budget: Option<u64>,
    /// Bytes of a tool's result that the model gets to see.
    pub max_tool_output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 10, timeout_ms: None, token_budget: None, max_tool_output: 64 * 1024 }
    }
}

impl AgentPlan {
    pub fn tool(&self, name: &str) -> Option<&ToolPlan> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Every secret that a run of this plan may ask for.
    pub fn secret_refs(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter().filter_map(|tool| tool.auth.as_ref());
        let of_tools = tools.map(|auth| auth.secret_ref.as_str());
        let models = std::iter::once(&self.model).chain(&self.fallbacks);
        models.filter_map(|model| model.secret_ref.as_deref()).chain(of_tools)
    }
}
