//! What people declare: every resource kind, manifests, defaults, validation. Pure.
//!
//! People's text goes through [`parse`] and programs' bodies through [`from_json`]: both refuse what they
//! do not know and report every problem at once. Serde on the types reads back only what it wrote itself
//! (a store's documents, a worker's messages) and lets unknown fields pass, so that an older reader
//! survives a newer writer. A kind is one file plus one arm in `kind.rs` and one in `resource.rs`.

mod manifest;
mod resource;

mod kind;

mod agent;
mod model_endpoint;
mod quota;
mod task;
mod tool;

mod execution_policy;

mod choice;
mod duration;
mod reference;
mod url;

mod fields;
mod leaves;
mod node;
mod problem;
mod reader;
mod suggest;

pub use agent::{
    AgentExecution, AgentLimits, AgentMemory, AgentSpec, ContractViolation, DuplicateToolCall,
    ExecutionProfile, MemoryOperation, Runner, ToolUseBehavior,
};
pub use duration::GoDuration;
pub use execution_policy::{
    Ask, ExecutionPolicy, Host, PolicyRetry, SandboxRuntime, Security, WorkspaceAccess,
};
pub use kind::{Kind, KindInfo, kinds};
pub use leaves::{Leaf, leaves};
pub use manifest::{MAX_BYTES, from_json, parse, parse_supported};
pub use model_endpoint::{EndpointAuth, ModelEndpointSpec};
pub use node::MAX_DEPTH;
pub use problem::{Location, Path, Problem, Segment};
pub use quota::QuotaSpec;
pub use reference::{Reference, SecretRef};
pub use resource::{ApiVersion, DEFAULT_NAMESPACE, Metadata, Resource, Spec, check_name, check_namespace};
pub use task::{MessageRetry, Priority, TaskMode, TaskRequirements, TaskRetry, TaskSpec};
pub use tool::{
    AuthProfile, IsolationMode, Jitter, OperationClass, RiskLevel, ToolAuth, ToolRetry, ToolRuntime,
    ToolSpec, ToolType,
};
