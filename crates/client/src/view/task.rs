//! A task as its caller sees it. Times are RFC 3339.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{FailureView, UsageView};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    pub api_version: String,
    pub kind: String,
    pub metadata: TaskMetadata,
    pub spec: TaskSpecView,
    pub status: TaskStatus,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskMetadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    pub resource_version: String,
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskSpecView {
    /// Either this or a system.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    #[serde(default)]
    pub input: BTreeMap<String, String>,
    #[serde(default)]
    pub priority: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// 0 is no bound.
    #[serde(default, skip_serializing_if = "is_unbounded")]
    pub max_turns: u32,
    /// How often the whole is tried.
    #[serde(default)]
    pub retry: TaskRetry,
    /// How often the work of one agent is; a server of before tells only the one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_retry: Option<TaskMessageRetry>,
    /// Counted from acceptance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirements: Option<TaskRequires>,
}

impl TaskSpecView {
    /// How often an agent's work is tried at most. Where the two say the same, they are one.
    pub fn attempts(&self) -> u32 {
        match &self.message_retry {
            Some(each) if each.tries != self.retry => {
                each.tries.max_attempts.saturating_mul(self.retry.max_attempts)
            }
            Some(_) | None => self.retry.max_attempts,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_unbounded(max_turns: &u32) -> bool {
    *max_turns == 0
}

/// What a worker must have to take it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskRequires {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    pub gpu: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl TaskRequires {
    /// `region eu, a GPU, model large`
    pub fn words(&self) -> String {
        let region = self.region.iter().map(|region| format!("region {region}"));
        let gpu = self.gpu.then(|| "a GPU".to_owned());
        let model = self.model.iter().map(|model| format!("model {model}"));
        region.chain(gpu).chain(model).collect::<Vec<_>>().join(", ")
    }
}

/// Durations are written as in manifests: `1.5s`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskRetry {
    pub max_attempts: u32,
    pub backoff: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMessageRetry {
    #[serde(flatten)]
    pub tries: TaskRetry,
    #[serde(default)]
    pub max_backoff: String,
    #[serde(default)]
    pub jitter: String,
    /// What in a failure's text makes it final.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatus {
    /// Pending, Running, WaitingApproval, Succeeded, Failed or DeadLetter.
    #[serde(default)]
    pub phase: String,
    /// The finer state: queued, running, waiting, sleeping, succeeded, failed, dead_letter, cancelled, dropped.
    #[serde(default)]
    pub state: String,
    /// The first run; the agents of a system have one each.
    #[serde(default)]
    pub run: String,
    #[serde(default)]
    pub session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<TaskOutput>,
    /// `code: message`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureView>,
    /// What a waiting task waits for; told of one task, not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleeping: Option<Sleeping>,
    #[serde(default)]
    pub usage: UsageView,
    /// The place of the last event in the task's log.
    #[serde(default)]
    pub last_event: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingFor {
    /// `input`, `approval` or `quarantine`.
    pub kind: String,
    pub summary: String,
}

/// Until when a task sleeps, and what is to have passed by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sleeping {
    #[serde(default)]
    pub until: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureView>,
}

/// What a task has to show; there are more keys for the task of a system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOutput {
    #[serde(default)]
    pub last_output: String,
}

impl TaskView {
    /// Nothing will change any more.
    pub fn is_ended(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed" | "DeadLetter")
    }

    pub fn succeeded(&self) -> bool {
        self.status.phase == "Succeeded"
    }

    /// Who works on it: `hello`, or `system/report`.
    pub fn subject(&self) -> String {
        match &self.spec.system {
            Some(system) => format!("system/{system}"),
            None => self.spec.agent.clone(),
        }
    }

    /// What it gave, if it ended well.
    pub fn output(&self) -> Option<&str> {
        self.status.output.as_ref().map(|output| output.last_output.as_str())
    }
}
