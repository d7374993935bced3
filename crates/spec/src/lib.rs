//! What people declare: every resource kind, manifests, defaults, validation. Pure.
//!
//! People's text goes through [`parse`] and programs' bodies through [`from_json`]: both refuse what they
//! do not know and report every problem at once. Serde on the types reads back only what it wrote itself
//! (a store's documents, a worker's messages) and lets unknown fields pass, so that an older reader
//! survives a newer writer. A kind is one spec with its reader, plus one line in `kind.rs`; its JSON schema
//! follows from the spec (see [`schema`]).

mod manifest;
mod resource;
mod together;

mod kind;
mod later;
pub mod schema;

mod agent;
pub mod agent_system;
mod approval;
mod context_adapter;
mod eval;
mod governance;
mod mcp_server;
mod memory;
mod model_endpoint;
mod quota;
mod secret;
mod session;
mod task;
mod task_schedule;
mod task_webhook;
mod tool;
mod worker;

mod condition;
mod cron;
mod execution_policy;

mod choice;
mod duration;
mod reference;
mod references;
mod url;

mod fields;
mod image;
mod leaves;
mod node;
pub mod output_schema;
mod problem;
mod reader;
mod suggest;

pub use agent::{
    AgentExecution, AgentLimits, AgentMemory, AgentSpec, ContractViolation, DuplicateToolCall,
    ExecutionProfile, MemoryOperation, Runner, ToolUseBehavior,
};
pub use agent_system::AgentSystemSpec;
pub use approval::{TaskApprovalSpec, ToolApprovalSpec};
pub use condition::Condition;
pub use context_adapter::ContextAdapterSpec;
pub use cron::Cron;
pub use duration::GoDuration;
pub use eval::{EvalDatasetSpec, EvalRunSpec};
pub use execution_policy::{
    Ask, ExecutionPolicy, Host, PolicyRetry, SandboxRuntime, Security, WorkspaceAccess,
};
pub use governance::{AgentPolicySpec, AgentRoleSpec, PolicyScope, ToolPermissionSpec};
pub use kind::{Kind, KindInfo, Spec, kinds};
pub use later::{Later, later};
pub use leaves::{Leaf, leaves};
pub use manifest::{MAX_BYTES, Origin, Parsed, from_json, mistakes_between, parse, parse_with_notices};
pub use mcp_server::McpServerSpec;
pub use memory::MemorySpec;
pub use model_endpoint::{
    Dollars, EndpointAuth, EndpointBreaker, EndpointLimits, EndpointPrice, ModelEndpointSpec, PROVIDERS,
};
pub use node::MAX_DEPTH;
pub use problem::{Location, Path, Problem, Segment};
pub use quota::QuotaSpec;
pub use reference::{Reference, SecretRef};
pub use references::Named;
pub use resource::{ApiVersion, DEFAULT_NAMESPACE, Metadata, Resource, check_name, check_namespace};
pub use secret::{KEPT, SealedSecretSpec, SecretSpec};
pub use session::SessionSpec;
pub use suggest::nearest;
pub use task::{MessageRetry, Priority, TaskMode, TaskRequirements, TaskRetry, TaskSpec};
pub use task_schedule::TaskScheduleSpec;
pub use task_webhook::TaskWebhookSpec;
pub use tool::{
    A2aTool, AuthProfile, CliTool, IsolationMode, Jitter, OperationClass, RiskLevel, ToolAuth, ToolRetry,
    ToolRuntime, ToolSpec, ToolType, WasmTool,
};
pub use worker::WorkerSpec;
