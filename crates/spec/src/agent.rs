//! Agent: who does the work: a model, a prompt, tools, limits, a runner.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::choice::{FromText, choice};
use crate::duration::GoDuration;
use crate::execution_policy::{self, ExecutionPolicy};
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::output_schema;
use crate::problem::{Path, Problem};
use crate::reference::Reference;
use crate::suggest::nearest;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSpec {
    /// The ModelEndpoint that answers.
    pub model_ref: Reference,
    /// Asked in order when the model before can't answer: it is down, overloaded, or not to be had with this key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback_model_refs: Vec<Reference>,
    /// What it is for: people read it, and the spans of its work tell it. No model is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// The tools the model is offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Reference>,
    /// Tools that need neither a permission nor an approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<Reference>,
    /// The AgentRoles it bears.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Reference>,
    /// What it remembers over conversations.
    #[serde(default, skip_serializing_if = "AgentMemory::is_unset")]
    pub memory: AgentMemory,
    #[serde(default)]
    pub execution: AgentExecution,
    /// What bounds one run.
    #[serde(default)]
    pub limits: AgentLimits,
    /// What drives it: our own loop, or a command-line agent turn by turn.
    #[serde(default)]
    pub runner: Runner,
    /// Where its work runs, and what it may touch there.
    #[serde(default)]
    pub policy: ExecutionPolicy,
}

choice! {
    /// What drives the agent: our own loop, or a command-line agent turn by turn.
    Runner {
        #[default] React = "react",
        ClaudeCode = "claude-code" | "claude_code",
        Codex = "codex",
        Air = "air",
        Command = "command",
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentMemory {
    /// The Memory it uses.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// For people to read.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// For people to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What it may do there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<MemoryOperation>,
}

impl AgentMemory {
    fn is_unset(&self) -> bool {
        *self == Self::default()
    }
}

choice! {
    MemoryOperation {
        #[default] Read = "read" | "memory.read",
        Write = "write" | "memory.write",
        Search = "search" | "memory.search",
        List = "list" | "memory.list",
        Ingest = "ingest" | "memory.ingest",
    }
}

/// How strictly a run is held to a shape.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentExecution {
    /// Whether the tools it calls are prescribed: `contract` holds it to those of `tool_sequence`.
    pub profile: ExecutionProfile,
    /// The tools a contract demands, in any order: each is called and goes well, and no others are called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_sequence: Vec<Reference>,
    /// Texts that the output must contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required_output_markers: Vec<String>,
    /// What a call gets that went well before in the same run: its result again, an error, or (`allow`) it is made anew.
    pub duplicate_tool_call_policy: DuplicateToolCall,
    /// What comes of a run that breaks its contract: it fails, or it is told (`observe`).
    pub on_contract_violation: ContractViolation,
    /// Whether the model is asked again after a tool, or the tool's answer is the output.
    pub tool_use_behavior: ToolUseBehavior,
    /// A JSON schema that the output must fit. If it doesn't, the model is told what is wrong and asked once more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
}

choice! { ExecutionProfile { #[default] Dynamic = "dynamic", Contract = "contract" } }

choice! { DuplicateToolCall { #[default] ShortCircuit = "short_circuit", Deny = "deny", Allow = "allow" } }

choice! { ContractViolation { #[default] NonRetryableError = "non_retryable_error", Observe = "observe" } }

choice! { ToolUseBehavior { #[default] RunModelAgain = "run_llm_again", StopOnFirstTool = "stop_on_first_tool" } }

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentLimits {
    /// Model calls in one run.
    pub max_steps: u32,
    /// Time one run may work. None is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
    /// Tokens one run may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u64>,
    /// Bytes of a tool's result that the model gets to see.
    pub max_tool_output: u64,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { max_steps: 10, timeout: None, token_budget: None, max_tool_output: 65536 }
    }
}

impl AgentSpec {
    /// An agent with nothing but a model.
    pub fn new(model_ref: Reference) -> Self {
        Self {
            model_ref,
            fallback_model_refs: Vec::new(),
            description: String::new(),
            prompt: String::new(),
            tools: Vec::new(),
            allowed_tools: Vec::new(),
            roles: Vec::new(),
            memory: AgentMemory::default(),
            execution: AgentExecution::default(),
            limits: AgentLimits::default(),
            runner: Runner::default(),
            policy: ExecutionPolicy::default(),
        }
    }

    fn refusals(&self) -> Vec<Problem> {
        let mut refusals = Refusals::none();
        refusals.refuse_if(self.runner != Runner::React, "spec.runner", format!("runner {}", self.runner));
        refusals.refuse_if(!self.roles.is_empty(), "spec.roles", "the field roles");
        refusals.refuse_if(!self.memory.is_unset(), "spec.memory", "the field memory");
        for (index, tool) in self.tools.iter().enumerate() {
            let path = Path::of("spec.tools").index(index);
            refusals.refuse_at(comes_with_memory(tool), &path, format_args!("the memory tool {tool}"));
            refusals.refuse_at(
                is_of_mcp_server(tool),
                &path,
                format_args!("{tool}, a tool of an MCP server,"),
            );
        }
        self.policy.refuse_unsupported(&mut refusals);
        refusals.into_problems()
    }
}

impl Declared for AgentSpec {
    const NAME: &'static str = "Agent";
    const PLURAL: &'static str = "agents";
    const SHORT_NAMES: &'static [&'static str] = &["ag"];
    const SUMMARY: &'static str = "Who does the work: a model, a prompt, tools, limits.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let retired = fields.retire("model", "no longer read: name a ModelEndpoint in model_ref instead");
        let model_ref = match retired {
            true => fields.optional("model_ref").unwrap_or_default(),
            false => fields.required("model_ref"),
        };
        Self {
            model_ref,
            fallback_model_refs: fields.distinct("fallback_model_refs"),
            description: fields.verbatim("description"),
            prompt: fields.verbatim("prompt"),
            tools: fields.distinct("tools"),
            allowed_tools: fields.distinct("allowed_tools"),
            roles: read_roles(fields),
            memory: fields.child("memory", read_memory),
            execution: fields.child("execution", read_execution),
            limits: fields.child("limits", read_limits),
            runner: fields.optional("runner").unwrap_or_default(),
            policy: fields.child("policy", execution_policy::read),
        }
    }

    fn settle(&mut self, own: &str) {
        let (tools, sequence) = (&mut self.tools, &mut self.execution.tool_sequence);
        tools.iter_mut().chain(sequence).for_each(|tool| tool.settle(own));
    }

    fn mistakes(&self) -> Vec<Problem> {
        let mut mistakes = self.unknown_memory_tools();
        mistakes.extend(self.named_twice());
        mistakes.extend(self.prescribed_in_vain());
        mistakes
    }

    fn unsupported(&self) -> Vec<Problem> {
        self.refusals()
    }
}

/// Whether it is one of the tools that an agent with a memory is given.
pub(crate) fn comes_with_memory(tool: &Reference) -> bool {
    tool.name.starts_with(MEMORY_TOOLS)
}

/// How the names of memory tools begin.
const MEMORY_TOOLS: &str = "memory.";

/// Whether it is called as the tools of MCP servers are: `<server>--<tool>`.
pub(crate) fn is_of_mcp_server(tool: &Reference) -> bool {
    tool.name.contains("--")
}

impl AgentSpec {
    fn unknown_memory_tools(&self) -> Vec<Problem> {
        let named = self.tools.iter().enumerate().filter(|(_, tool)| comes_with_memory(tool));
        let unknown = named.filter(|(_, tool)| MemoryOperation::from_text(&tool.name).is_err());
        let told = unknown.map(|(index, tool)| {
            let known = MemoryOperation::ALL.iter().map(|operation| format!("{MEMORY_TOOLS}{operation}"));
            let known = known.collect::<Vec<_>>();
            let suggestion = nearest(&tool.name, known.iter().map(String::as_str)).map(str::to_owned);
            let message = format!("unknown memory tool, there are {}", known.join(", "));
            Problem { suggestion, ..Problem::new(Path::of("spec.tools").index(index), message) }
        });
        told.collect()
    }

    /// As `t` and as `own/t`, or the tools of one name in two namespaces: the model could not tell them apart.
    fn named_twice(&self) -> Vec<Problem> {
        let named =
            |tool: &Reference, others: &[Reference]| others.iter().any(|other| other.name == tool.name);
        let again = self.tools.iter().enumerate().filter(|(index, tool)| named(tool, &self.tools[..*index]));
        let told = again.map(|(index, tool)| {
            let message = format!(
                "a tool called {} is there already, and the model knows tools by their names",
                tool.name
            );
            Problem::new(Path::of("spec.tools").index(index), message)
        });
        told.collect()
    }

    /// A contract that names what the agent can't call could never be kept.
    fn prescribed_in_vain(&self) -> Vec<Problem> {
        if self.execution.profile != ExecutionProfile::Contract {
            return Vec::new();
        }
        let named = self.execution.tool_sequence.iter().enumerate();
        let others = named.filter(|(_, tool)| !comes_with_memory(tool) && !self.tools.contains(tool));
        let told = others.map(|(index, tool)| {
            let path = Path::of("spec.execution.tool_sequence").index(index);
            Problem::new(path, format!("{tool} is not among the agent's tools"))
        });
        told.collect()
    }
}

/// Roles are compared without regard to case, as permissions are.
fn read_roles(fields: &mut Fields<'_, '_>) -> Vec<Reference> {
    let mut roles: Vec<Reference> = Vec::new();
    for role in fields.words::<Reference>("roles") {
        let known = |other: &Reference| other.to_string().eq_ignore_ascii_case(&role.to_string());
        if !roles.iter().any(known) {
            roles.push(role);
        }
    }
    roles
}

fn read_memory(fields: &mut Fields<'_, '_>) -> AgentMemory {
    let memory = AgentMemory {
        reference: fields.optional("ref"),
        kind: fields.optional("type"),
        provider: fields.optional("provider"),
        allow: fields.distinct("allow"),
    };
    if !memory.allow.is_empty() && memory.reference.is_none() {
        fields.refuse("allow", "needs memory.ref to say which memory is meant");
    }
    memory
}

fn read_execution(fields: &mut Fields<'_, '_>) -> AgentExecution {
    let execution = AgentExecution {
        profile: fields.optional("profile").unwrap_or_default(),
        tool_sequence: fields.distinct("tool_sequence"),
        required_output_markers: fields.words("required_output_markers"),
        duplicate_tool_call_policy: fields.optional("duplicate_tool_call_policy").unwrap_or_default(),
        on_contract_violation: fields.optional("on_contract_violation").unwrap_or_default(),
        tool_use_behavior: fields.optional("tool_use_behavior").unwrap_or_default(),
        output_schema: fields.json_object("output_schema").filter(|schema| *schema != serde_json::json!({})),
    };
    if execution.profile == ExecutionProfile::Contract && execution.tool_sequence.is_empty() {
        fields.refuse("tool_sequence", "required when profile is contract");
    }
    if let Some(complaint) = execution.output_schema.as_ref().and_then(output_schema::complaint) {
        fields.refuse("output_schema", complaint);
    }
    execution
}

fn read_limits(fields: &mut Fields<'_, '_>) -> AgentLimits {
    let default = AgentLimits::default();
    let timeout: Option<GoDuration> = fields.optional("timeout");
    AgentLimits {
        max_steps: fields.count_or_default("max_steps").unwrap_or(default.max_steps),
        timeout: timeout.filter(|timeout| !timeout.is_zero()),
        token_budget: fields.positive("token_budget"),
        max_tool_output: fields.positive("max_tool_output").unwrap_or(default.max_tool_output),
    }
}
