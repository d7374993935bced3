//! What one agent of a system sends to another. The run that works on a message carries it; how far the message
//! has come is told by the run.

use serde::{Deserialize, Serialize};

use crate::Task;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The how manyeth it is on its way through the system, from 1 on.
    pub hop: u32,
    /// An agent, or [`Message::SYSTEM`].
    pub from: String,
    pub to: String,
    /// The branch of the graph that it belongs to: `b001`, and `b001.002` where that one divides.
    pub branch: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_branch: Option<String>,
    /// The message that led to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    #[serde(rename = "type")]
    pub kind: MessageKind,
    pub content: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    TaskStart,
    TaskHandoff,
}

impl MessageKind {
    pub fn name(self) -> &'static str {
        match self {
            MessageKind::TaskStart => "task_start",
            MessageKind::TaskHandoff => "task_handoff",
        }
    }
}

impl Message {
    /// Who sends the first message.
    pub const SYSTEM: &'static str = "system";

    /// The message that a task begins with.
    pub fn start(to: &str, content: &str) -> Self {
        Self {
            hop: 1,
            from: Self::SYSTEM.to_owned(),
            to: to.to_owned(),
            branch: "b001".to_owned(),
            parent_branch: None,
            parent: None,
            kind: MessageKind::TaskStart,
            content: content.to_owned(),
        }
    }

    /// What the agent that got this one sends on.
    #[must_use]
    pub fn hand_on(&self, task: &Task, to: &str, content: &str) -> Self {
        Self {
            hop: self.hop + 1,
            from: self.to.clone(),
            to: to.to_owned(),
            branch: self.branch.clone(),
            parent_branch: Some(self.branch.clone()),
            parent: Some(self.id(task)),
            kind: MessageKind::TaskHandoff,
            content: content.to_owned(),
        }
    }

    /// The message once its content has entered the conversation.
    #[must_use]
    pub fn begun(self) -> Self {
        Self { content: String::new(), ..self }
    }

    /// The same for whoever asks again: made of what never changes.
    pub fn id(&self, task: &Task) -> String {
        format!("{}/h{:03}/{}/{}", trace_id(task), self.hop, self.from, self.to)
    }

    /// What the agent is told: what the whole is about, and what the one before it made of it.
    pub fn told(&self, about: &str) -> String {
        match self.kind {
            MessageKind::TaskStart => about.to_owned(),
            MessageKind::TaskHandoff => {
                format!("{about}\n\n{} has done its part:\n{}", self.from, self.content)
            }
        }
    }
}

/// Names one try at a whole task. A task is tried once: a retry is a task of its own.
pub fn trace_id(task: &Task) -> String {
    format!("{}/{}/a001", task.namespace, task.name)
}
