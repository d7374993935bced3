//! An entry of a task's log, and what is shown beside it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{FailureView, StepKind, StepOutcome, UsageView};

/// One event. Serialises to exactly what the server sent, known to this version or not.
#[derive(Debug, Clone, PartialEq)]
pub struct EventView {
    /// Its place in the task's log: 1, 2, 3 without a gap.
    pub seq: u64,
    /// Its place among all events of the server.
    pub position: u64,
    pub task: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub body: EventBody,
    /// All of it, as it came.
    pub json: Value,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    TaskAccepted {
        /// Empty for a system.
        #[serde(default)]
        agent: String,
        #[serde(default)]
        system: Option<String>,
        /// The first run.
        #[serde(default)]
        run: String,
    },
    AttemptStarted {
        run: String,
        attempt: u32,
        worker: String,
        /// The step at which it starts or goes on.
        step: u32,
    },
    StepFinished(StepFinished),
    AttemptEnded {
        run: String,
        attempt: u32,
        end: AttemptEnd,
    },
    RunRetrying {
        run: String,
        failure: FailureView,
        failures: u32,
        #[serde(rename = "not_before")]
        not_before_ms: i64,
    },
    RunWaiting {
        run: String,
        blocker: String,
        summary: String,
    },
    RunSleeping {
        run: String,
        #[serde(rename = "until")]
        until_ms: i64,
        /// What it waits to pass, if something failed.
        #[serde(default)]
        failure: Option<FailureView>,
    },
    RunReady {
        run: String,
        /// `due`, `session_free`, `answered` or `input`.
        reason: String,
    },
    InputAccepted {
        run: String,
        /// Its place among the task's inputs.
        input: u64,
    },
    /// Work for an agent of a system.
    MessageSent {
        run: String,
        message: SentMessage,
    },
    /// A run ended well, and its task goes on with another.
    RunEnded {
        run: String,
        usage: UsageView,
    },
    TaskEnded {
        state: StateName,
        #[serde(default)]
        output: Option<String>,
        #[serde(default)]
        failure: Option<FailureView>,
        usage: UsageView,
    },
    /// Of a newer server.
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StepFinished {
    pub run: String,
    pub step: u32,
    pub attempt: u32,
    pub kind: StepKind,
    #[serde(flatten)]
    pub outcome: StepOutcome,
    #[serde(rename = "started_at")]
    pub started_at_ms: i64,
    pub took_ms: u64,
    pub usage: UsageView,
    /// The start of what it gave: the model's words or the tool's result.
    #[serde(default)]
    pub preview: String,
    /// What of the agent's contract it breaks.
    #[serde(default)]
    pub contract_violation: Option<String>,
    /// The steps that begin now, because of it.
    #[serde(default)]
    pub opened: Vec<OpenedStep>,
}

/// What one agent of a system sends to another.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SentMessage {
    /// The how manyeth it is on its way.
    pub hop: u32,
    pub from: String,
    pub to: String,
    #[serde(default)]
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct OpenedStep {
    pub step: u32,
    pub kind: StepKind,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum AttemptEnd {
    Yielded,
    Error {
        failure: FailureView,
    },
    /// Its worker was gone.
    Lost,
    /// Of a newer server.
    #[serde(other)]
    Other,
}

/// A task's final state; a dropped one says why.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StateName {
    #[serde(rename = "state")]
    pub name: String,
    #[serde(default)]
    pub reason: Option<String>,
}

/// A piece of text as it comes from the model. The durable event replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeltaView {
    pub run: String,
    pub step: u32,
    /// Where in the step's text, or in its thinking, it belongs, in bytes.
    pub offset: u64,
    pub text: String,
    /// What the model thinks before it speaks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thinking: bool,
}

/// A part of a task's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventsPage {
    pub items: Vec<EventView>,
    /// What to read on behind.
    pub last: u64,
}

/// A task's log as lines for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogView {
    pub name: String,
    pub logs: Vec<String>,
}

impl EventView {
    /// As on the wire: `step_finished`.
    pub fn name(&self) -> &str {
        self.json.pointer("/body/type").and_then(Value::as_str).unwrap_or_default()
    }

    /// The run it is about, if it is about one.
    pub fn run(&self) -> Option<&str> {
        self.json.pointer("/body/run")?.as_str()
    }

    /// The agent it is about, if it names one.
    pub fn agent(&self) -> Option<&str> {
        let named = self.json.pointer("/body/agent").or_else(|| self.json.pointer("/body/message/to"));
        named?.as_str().filter(|agent| !agent.is_empty())
    }

    /// Nothing follows it in its task's log.
    pub fn is_last(&self) -> bool {
        self.name() == "task_ended"
    }
}

impl Serialize for EventView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for EventView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Known {
            seq: u64,
            position: u64,
            task: String,
            at: i64,
        }
        let json = Value::deserialize(deserializer)?;
        let Known { seq, position, task, at } =
            Known::deserialize(&json).map_err(serde::de::Error::custom)?;
        // A newer server may have given a body that we know another shape: it is shown as it is, and breaks nothing.
        let body = json.get("body").map_or(Ok(EventBody::Other), EventBody::deserialize);
        let body = body.unwrap_or(EventBody::Other);
        Ok(Self { seq, position, task, at_ms: at, body, json })
    }
}
