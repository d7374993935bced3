//! The execution policy of an agent: where its work runs, what it may touch there, how often it is tried.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::choice::choice;
use crate::fields::Fields;
use crate::kind::Refusals;

/// Whatever is not set, booleans included, takes its default: a partial policy never narrows by accident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExecutionPolicy {
    /// Where it runs.
    pub host: Host,
    /// What of the programs there it may start.
    pub security: Security,
    /// When a person is asked.
    pub ask: Ask,
    /// What isolates it.
    pub runtime: SandboxRuntime,
    /// What it may do with the files of its workspace.
    pub workspace_access: WorkspaceAccess,
    /// Whether it reaches the network.
    pub network: bool,
    /// Whether a person may type into it.
    pub interactive: bool,
    /// Of `cpu`, `memory` and `gpu`, those that were given; empty means the worker's own default.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, Number>,
    /// How often it is tried.
    pub retry: PolicyRetry,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PolicyRetry {
    /// The first included.
    pub max_attempts: u32,
    /// The pause, in milliseconds.
    pub delay_ms: u64,
}

choice! { Host { #[default] Sandbox = "sandbox" } }

choice! { Security { Deny = "deny", #[default] Allowlist = "allowlist", Full = "full" } }

choice! { Ask { #[default] Off = "off", OnMiss = "on-miss" | "on_miss", Always = "always" } }

choice! { SandboxRuntime { #[default] Gvisor = "gvisor", Runc = "runc" } }

choice! { WorkspaceAccess { None = "none", ReadOnly = "ro", #[default] ReadWrite = "rw" } }

impl Default for ExecutionPolicy {
    fn default() -> Self {
        Self {
            host: Host::default(),
            security: Security::default(),
            ask: Ask::default(),
            runtime: SandboxRuntime::default(),
            workspace_access: WorkspaceAccess::default(),
            network: true,
            interactive: false,
            resources: BTreeMap::new(),
            retry: PolicyRetry::default(),
        }
    }
}

impl Default for PolicyRetry {
    fn default() -> Self {
        Self { max_attempts: 2, delay_ms: 0 }
    }
}

impl ExecutionPolicy {
    /// Without a sandbox nothing of a policy can be enforced, so only the default one is accepted.
    pub(crate) fn refuse_unsupported(&self, refusals: &mut Refusals) {
        let default = Self::default();
        let used = [
            ("security", self.security != default.security),
            ("ask", self.ask != default.ask),
            ("runtime", self.runtime != default.runtime),
            ("workspace_access", self.workspace_access != default.workspace_access),
            ("network", self.network != default.network),
            ("interactive", self.interactive != default.interactive),
            ("resources", self.resources != default.resources),
            ("retry", self.retry != default.retry),
        ];
        for (field, used) in used {
            refusals.refuse_if(
                used,
                &format!("spec.policy.{field}"),
                format!("policy.{field} other than its default"),
            );
        }
    }
}

pub(crate) fn read(fields: &mut Fields<'_, '_>) -> ExecutionPolicy {
    ExecutionPolicy {
        host: fields.optional("host").unwrap_or_default(),
        security: fields.optional("security").unwrap_or_default(),
        ask: fields.optional("ask").unwrap_or_default(),
        runtime: fields.optional("runtime").unwrap_or_default(),
        workspace_access: fields.optional("workspace_access").unwrap_or_default(),
        network: fields.flag("network").unwrap_or(true),
        interactive: fields.flag("interactive").unwrap_or(false),
        resources: fields.numbers("resources", &["cpu", "memory", "gpu"]),
        retry: fields.child("retry", read_retry),
    }
}

fn read_retry(fields: &mut Fields<'_, '_>) -> PolicyRetry {
    let default = PolicyRetry::default();
    let delay_ms = fields.integer("delay_ms", i64::MIN..=i64::MAX);
    PolicyRetry {
        max_attempts: fields.count_or_default("max_attempts").unwrap_or(default.max_attempts),
        delay_ms: delay_ms.and_then(|delay| u64::try_from(delay).ok()).unwrap_or(default.delay_ms),
    }
}
