//! Who may do what: AgentPolicy, AgentRole, ToolPermission.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::problem::Problem;
use crate::reference::Reference;
use crate::tool::OperationClass;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentPolicySpec {
    /// Tokens one run may use; 0 is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_run: Option<u64>,
    /// The models that may be asked; none named is any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_models: Vec<String>,
    /// Tools that must not be called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_tools: Vec<Reference>,
    /// Whether it holds for everything in its namespace, whatever it names, or only for what it names: for nothing
    /// until it names something.
    pub apply_mode: PolicyScope,
    /// The systems it holds for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_systems: Vec<Reference>,
    /// The tasks it holds for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_tasks: Vec<Reference>,
    /// The agents it holds for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_agents: Vec<Reference>,
    /// How deep tasks may make tasks.
    pub max_child_depth: u32,
    /// How many tasks one may make.
    pub max_child_tasks: u32,
}

choice! { PolicyScope { #[default] Scoped = "scoped", Global = "global" } }

impl Default for AgentPolicySpec {
    fn default() -> Self {
        Self {
            max_tokens_per_run: None,
            allowed_models: Vec::new(),
            blocked_tools: Vec::new(),
            apply_mode: PolicyScope::default(),
            target_systems: Vec::new(),
            target_tasks: Vec::new(),
            target_agents: Vec::new(),
            max_child_depth: 5,
            max_child_tasks: 20,
        }
    }
}

impl Declared for AgentPolicySpec {
    const NAME: &'static str = "AgentPolicy";
    const PLURAL: &'static str = "agent-policies";
    const SHORT_NAMES: &'static [&'static str] = &["pol", "policy", "policies"];
    const SUMMARY: &'static str = "Which models and tools may be used, and how many tokens.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let default = Self::default();
        Self {
            max_tokens_per_run: fields.positive_or_default("max_tokens_per_run"),
            allowed_models: fields.distinct("allowed_models"),
            blocked_tools: fields.distinct("blocked_tools"),
            apply_mode: fields.optional("apply_mode").unwrap_or_default(),
            target_systems: fields.distinct("target_systems"),
            target_tasks: fields.distinct("target_tasks"),
            target_agents: fields.distinct("target_agents"),
            max_child_depth: fields.count("max_child_depth", 0).unwrap_or(default.max_child_depth),
            max_child_tasks: fields.count("max_child_tasks", 0).unwrap_or(default.max_child_tasks),
        }
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentRoleSpec {
    /// For people to read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What its bearers may do, such as `tool:lookup:invoke` or `capability:web.read`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
}

impl Declared for AgentRoleSpec {
    const NAME: &'static str = "AgentRole";
    const PLURAL: &'static str = "agent-roles";
    const SHORT_NAMES: &'static [&'static str] = &["role", "roles"];
    const SUMMARY: &'static str = "Permissions under a name that agents bear.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self {
            description: fields.verbatim("description"),
            permissions: fields.distinct_words("permissions"),
        }
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolPermissionSpec {
    /// The tool it speaks of; by default the one of its own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_ref: Option<Reference>,
    /// What is asked for; whoever calls a tool asks for `invoke`.
    pub action: String,
    /// What an agent's roles must permit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required_permissions: Vec<String>,
    /// Whether all of the permissions are needed, or any.
    pub match_mode: MatchMode,
    /// Whether it holds for every agent, whatever it names, or for those it names.
    pub apply_mode: PermissionScope,
    /// The agents it holds for, with apply_mode scoped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_agents: Vec<Reference>,
    /// What is said to each class of operation; where several rules speak of one class, the strictest holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operation_rules: Vec<OperationRule>,
}

impl Default for ToolPermissionSpec {
    fn default() -> Self {
        Self {
            tool_ref: None,
            action: invoke(),
            required_permissions: Vec::new(),
            match_mode: MatchMode::default(),
            apply_mode: PermissionScope::default(),
            target_agents: Vec::new(),
            operation_rules: Vec::new(),
        }
    }
}

fn invoke() -> String {
    "invoke".to_owned()
}

choice! { MatchMode { #[default] All = "all", Any = "any" } }

choice! { PermissionScope { #[default] Global = "global", Scoped = "scoped" } }

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OperationRule {
    /// The calls it is about; `*` is all.
    pub operation_class: RuleClass,
    /// What happens to them.
    pub verdict: Verdict,
}

choice! {
    /// A class of operations, or all of them.
    RuleClass { Read = "read", Write = "write", Delete = "delete", Admin = "admin", #[default] Any = "*" }
}

choice! {
    /// From the mildest to the strictest.
    Verdict { #[default] Allow = "allow", ApprovalRequired = "approval_required", Deny = "deny" }
}

impl ToolPermissionSpec {
    /// Whether it speaks of an agent of this name.
    pub fn holds_for(&self, agent: &str) -> bool {
        match self.apply_mode {
            PermissionScope::Global => true,
            PermissionScope::Scoped => self.target_agents.iter().any(|target| target.name == agent),
        }
    }

    /// What is said to a class of operations: by the rules of its own, by those of all where it has none, and by
    /// the strictest where several speak.
    pub fn verdict(&self, class: OperationClass) -> Verdict {
        let strictest = |class: &str| {
            let rules = self.operation_rules.iter().filter(|rule| rule.operation_class.as_str() == class);
            rules.map(|rule| rule.verdict).max()
        };
        let said = strictest(class.as_str()).or_else(|| strictest(RuleClass::Any.as_str()));
        said.unwrap_or_default()
    }
}

impl Declared for ToolPermissionSpec {
    const NAME: &'static str = "ToolPermission";
    const PLURAL: &'static str = "tool-permissions";
    const SHORT_NAMES: &'static [&'static str] = &["perm", "permission", "permissions"];
    const SUMMARY: &'static str = "Who may call a tool, and which calls a person has to approve.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let permission = Self {
            tool_ref: fields.optional("tool_ref"),
            action: fields.optional("action").map_or_else(invoke, |action: String| action.to_lowercase()),
            required_permissions: fields.distinct_words("required_permissions"),
            match_mode: fields.optional("match_mode").unwrap_or_default(),
            apply_mode: fields.optional("apply_mode").unwrap_or_default(),
            target_agents: fields.distinct("target_agents"),
            operation_rules: fields.objects("operation_rules", |fields| OperationRule {
                operation_class: fields.optional("operation_class").unwrap_or_default(),
                verdict: fields.optional("verdict").unwrap_or_default(),
            }),
        };
        match permission.apply_mode {
            _ if fields.is_troubled("apply_mode") => {}
            PermissionScope::Scoped => fields.require("target_agents"),
            PermissionScope::Global => {}
        }
        permission
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}
