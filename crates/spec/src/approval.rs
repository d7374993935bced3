//! ToolApproval and TaskApproval: what waits for a person's word.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::choice::choice;
use crate::duration::GoDuration;
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::problem::Problem;
use crate::reference::Reference;
use crate::tool::OperationClass;

/// How long an answer is waited for.
const TTL: GoDuration = GoDuration::from_secs(600);

fn ttl() -> GoDuration {
    TTL
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolApprovalSpec {
    /// The task that waits.
    pub task_ref: Reference,
    /// The tool that is to be called.
    pub tool: Reference,
    /// What the call does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_class: Option<OperationClass>,
    /// The agent that wants to call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Reference>,
    /// What it would be called with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// Why a person is asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How long an answer is waited for.
    #[serde(default = "ttl")]
    pub ttl: GoDuration,
}

impl Declared for ToolApprovalSpec {
    const NAME: &'static str = "ToolApproval";
    const PLURAL: &'static str = "tool-approvals";
    const SHORT_NAMES: &'static [&'static str] = &["ta"];
    const SUMMARY: &'static str = "A call of a tool that waits for a person's word.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self {
            task_ref: fields.required("task_ref"),
            tool: fields.required("tool"),
            operation_class: fields.optional("operation_class"),
            agent: fields.optional("agent"),
            input: fields.verbatim("input"),
            reason: fields.verbatim("reason"),
            ttl: fields.positive_duration("ttl").unwrap_or(TTL),
        }
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskApprovalSpec {
    /// The task that waits.
    pub task_ref: Reference,
    /// The review that asks.
    pub checkpoint_id: String,
    /// Whether it is the output of an agent or of the whole task.
    #[serde(default)]
    pub checkpoint_type: CheckpointType,
    /// Whose output it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Reference>,
    /// Why a person is asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How long an answer is waited for.
    #[serde(default = "ttl")]
    pub ttl: GoDuration,
    /// Whether the agent may be sent back to its work.
    #[serde(default = "yes")]
    pub allow_request_changes: bool,
    /// How often it may be; 0 is the default.
    #[serde(default = "review_cycles")]
    pub max_review_cycles: u32,
    /// The how manyeth look this is.
    #[serde(default = "first_cycle")]
    pub review_cycle: u32,
    /// The approval of the look before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Reference>,
    /// What is to be looked at: text, or any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// How to show it; by default text, or json where it is more than text.
    #[serde(default)]
    pub output_format: OutputFormat,
    /// What the engine needs to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Json>>")]
    pub resume_context: Option<Json>,
}

choice! { CheckpointType { #[default] AgentOutput = "agent_output", TaskOutput = "task_output" } }

choice! { OutputFormat { #[default] Text = "text", Json = "json" } }

/// As it is shown unless it is said.
fn format_of(output: Option<&Json>) -> OutputFormat {
    match output {
        None | Some(Json::Null | Json::String(_)) => OutputFormat::Text,
        Some(Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => OutputFormat::Json,
    }
}

fn yes() -> bool {
    true
}

fn review_cycles() -> u32 {
    3
}

fn first_cycle() -> u32 {
    1
}

impl Declared for TaskApprovalSpec {
    const NAME: &'static str = "TaskApproval";
    const PLURAL: &'static str = "task-approvals";
    const SHORT_NAMES: &'static [&'static str] = &[];
    const SUMMARY: &'static str = "An output that waits for a person's word.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let output = fields.anything("output");
        Self {
            task_ref: fields.required("task_ref"),
            checkpoint_id: fields.required("checkpoint_id"),
            checkpoint_type: fields.optional("checkpoint_type").unwrap_or_default(),
            agent: fields.optional("agent"),
            reason: fields.verbatim("reason"),
            ttl: fields.positive_duration("ttl").unwrap_or(TTL),
            allow_request_changes: fields.flag("allow_request_changes").unwrap_or_else(yes),
            max_review_cycles: fields.count_or_default("max_review_cycles").unwrap_or_else(review_cycles),
            review_cycle: fields.count_or_default("review_cycle").unwrap_or_else(first_cycle),
            supersedes: fields.optional("supersedes"),
            output_format: fields.optional("output_format").unwrap_or_else(|| format_of(output.as_ref())),
            output,
            resume_context: fields.json_object("resume_context"),
        }
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}
