//! What a run works by: its agent with model, tools and limits, frozen when the task was accepted, so that a
//! change of a resource never changes a run half-way. Many tasks share one plan; it is stored by its hash.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentPlan {
    pub namespace: String,
    pub agent: String,
    pub prompt: String,
    pub model: ModelPlan,
    pub tools: Vec<ToolPlan>,
    pub limits: Limits,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelPlan {
    /// The ModelEndpoint it came from.
    pub endpoint: String,
    pub provider: String,
    pub base_url: String,
    pub model: String,
    pub options: BTreeMap<String, String>,
    /// Names a secret; never holds one.
    pub secret_ref: Option<String>,
    pub allow_private: bool,
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
        self.model.secret_ref.as_deref().into_iter().chain(of_tools)
    }
}
