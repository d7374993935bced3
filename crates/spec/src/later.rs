//! What of each kind this version can't do, for the reference. What really happens is decided by each kind's
//! `unsupported`; a test holds this list against it, in both directions.

use crate::kind::Kind;

/// A part of a kind that is kept and refused when it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Later {
    /// Below the top of the manifest; `*` stands for an item, or for a name that people choose.
    pub path: &'static str,
    /// What of it; empty is all.
    pub what: &'static str,
}

const fn all(path: &'static str) -> Later {
    Later { path, what: "" }
}

const fn part(path: &'static str, what: &'static str) -> Later {
    Later { path, what }
}

const ANOTHER: &str = "other than the default";
const ELSEWHERE: &str = "of another namespace";

/// What this version can't do with a kind.
pub fn later(kind: Kind) -> &'static [Later] {
    match kind {
        Kind::Quota | Kind::Secret => &[],
        Kind::ModelEndpoint => MODEL_ENDPOINT,
        Kind::Agent => AGENT,
        Kind::AgentSystem => AGENT_SYSTEM,
        Kind::Task => TASK,
        Kind::Tool => TOOL,
        Kind::Worker => WORKER,
        Kind::McpServer
        | Kind::SealedSecret
        | Kind::Memory
        | Kind::AgentRole
        | Kind::ToolPermission
        | Kind::AgentPolicy
        | Kind::ContextAdapter
        | Kind::Session
        | Kind::TaskSchedule
        | Kind::TaskWebhook
        | Kind::ToolApproval
        | Kind::TaskApproval
        | Kind::EvalDataset
        | Kind::EvalRun => WHOLE,
    }
}

const WHOLE: &[Later] = &[all("kind")];

const WORKER: &[Later] =
    &[part("kind", "a worker registers itself where it is started, and is not declared")];

const MODEL_ENDPOINT: &[Later] = &[part("spec.provider", "`bedrock`")];

const AGENT: &[Later] = &[
    part("spec.runner", "other than `react`"),
    all("spec.roles"),
    all("spec.memory"),
    part("spec.tools.*", "of a memory or of an MCP server"),
    part("spec.policy.security", ANOTHER),
    part("spec.policy.ask", ANOTHER),
    part("spec.policy.runtime", ANOTHER),
    part("spec.policy.workspace_access", ANOTHER),
    part("spec.policy.network", ANOTHER),
    part("spec.policy.interactive", ANOTHER),
    all("spec.policy.resources"),
    part("spec.policy.retry", ANOTHER),
];

const AGENT_SYSTEM: &[Later] = &[
    part("spec.agents.*", ELSEWHERE),
    part("spec.graph", "other than a line of agents"),
    all("spec.graph.*.edges.*.condition"),
    all("spec.graph.*.delegates"),
    all("spec.graph.*.review"),
    all("spec.context_adapter"),
    all("spec.completion_review"),
    all("spec.a2a.enabled"),
];

const TASK: &[Later] = &[part("spec.agent", ELSEWHERE), part("spec.system", ELSEWHERE)];

const TOOL: &[Later] = &[
    part("spec.type", "other than `http`"),
    part("spec.runtime.isolation_mode", "other than `none`"),
    part("spec.risk_level", "`high` and `critical`, unless `runtime.isolation_mode` is `none`"),
    part("spec.auth.profile", "`oauth2_client_credentials`"),
    all("spec.cli"),
    all("spec.wasm"),
    all("spec.a2a"),
    all("spec.mcp_server_ref"),
    all("spec.mcp_tool_name"),
];
