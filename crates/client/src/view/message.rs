//! What one agent of a system sent to another.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageView {
    pub message_id: String,
    pub timestamp: String,
    /// `system` for the first.
    pub from_agent: String,
    pub to_agent: String,
    pub branch_id: String,
    /// `task_start`, `task_handoff`.
    #[serde(rename = "type")]
    pub kind: String,
    pub content: String,
    /// Queued, Running, RetryPending, WaitingApproval, Succeeded or DeadLetter.
    pub phase: String,
    pub attempts: u32,
    pub max_attempts: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processed_at: Option<String>,
}
