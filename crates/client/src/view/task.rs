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
    pub resource_version: String,
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskSpecView {
    /// One of the two did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    #[serde(default)]
    pub input: BTreeMap<String, String>,
    pub priority: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    pub retry: TaskRetry,
}

/// Durations are written as in manifests: `1.5s`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRetry {
    pub max_attempts: u32,
    pub backoff: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatus {
    /// Pending, Running, WaitingApproval, Succeeded, Failed or DeadLetter.
    pub phase: String,
    /// The finer state: queued, running, waiting, sleeping, succeeded, failed, dead_letter, cancelled, dropped.
    pub state: String,
    pub run: String,
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
    #[serde(default)]
    pub usage: UsageView,
    /// The place of the last event in the task's log.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOutput {
    pub last_output: String,
}

impl TaskSpecView {
    /// Who does it, in words: `agent hello`.
    pub fn doer(&self) -> String {
        match (&self.agent, &self.system) {
            (Some(agent), _) => format!("agent {agent}"),
            (None, Some(system)) => format!("system {system}"),
            (None, None) => "nobody".to_owned(),
        }
    }

    /// The name of the agent or system that does it.
    pub fn doer_name(&self) -> &str {
        self.agent.as_ref().or(self.system.as_ref()).map_or("", String::as_str)
    }
}

impl TaskView {
    /// Nothing will change any more.
    pub fn is_ended(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed" | "DeadLetter")
    }

    pub fn succeeded(&self) -> bool {
        self.status.phase == "Succeeded"
    }

    /// What it gave, if it ended well.
    pub fn output(&self) -> Option<&str> {
        self.status.output.as_ref().map(|output| output.last_output.as_str())
    }
}
