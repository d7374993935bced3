//! Task: one durable request to an agent or a system.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::duration::GoDuration;
use crate::fields::Fields;
use crate::image;
use crate::kind::Declared;
use crate::reference::Reference;
use crate::tool::Jitter;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSpec {
    /// Exactly one of `agent` and `system`, unless this is a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Reference>,
    /// The AgentSystem that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Reference>,
    /// A template is never run itself: others are made from it.
    #[serde(default)]
    pub mode: TaskMode,
    /// What it is about: every agent is told `message`, else `topic`, and behind it the rest as lines `key: value`; a value
    /// `data:image/png;base64,...` is an image, shown beside it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input: BTreeMap<String, String>,
    /// Who waits less long. Waiting overtakes it in the end.
    #[serde(default)]
    pub priority: Priority,
    /// Bounds the activations of any one agent; 0 is no bound.
    #[serde(default)]
    pub max_turns: u32,
    /// How often the whole is tried: where the tries of `message_retry` are used up, the task goes on from what is done, after
    /// this pause, and has as many again. Where `message_retry` allows as many, or doesn't say how many, the two are one.
    #[serde(default)]
    pub retry: TaskRetry,
    /// How often the work of one agent is tried; by default as often as the whole.
    #[serde(default)]
    pub message_retry: MessageRetry,
    #[serde(default, skip_serializing_if = "TaskRequirements::is_unset")]
    pub requirements: TaskRequirements,
    /// The conversation this belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Counted from acceptance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<GoDuration>,
    /// The same key again is the same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

choice! {
    /// A template is never run itself: others are made from it.
    TaskMode { #[default] Run = "run", Template = "template" }
}

choice! { Priority { Low = "low", #[default] Normal = "normal", High = "high", Urgent = "urgent" } }

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaskRetry {
    /// The first included; 0 is the default.
    pub max_attempts: u32,
    /// The first pause; it doubles with each.
    pub backoff: GoDuration,
}

impl Default for TaskRetry {
    fn default() -> Self {
        Self { max_attempts: 1, backoff: GoDuration::ZERO }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MessageRetry {
    /// The first included; 0 is the default.
    pub max_attempts: u32,
    /// The first pause; it doubles with each.
    pub backoff: GoDuration,
    /// The longest pause.
    pub max_backoff: GoDuration,
    /// How pauses are spread: not at all, over all of a pause, over its second half.
    pub jitter: Jitter,
    /// A failure whose code or text contains one of these, in any case, is not retried: the task fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable: Vec<String>,
}

/// What a worker must have to take this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaskRequirements {
    /// Where it must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Whether it must have a GPU.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gpu: bool,
    /// The model it must reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl TaskRequirements {
    fn is_unset(&self) -> bool {
        *self == Self::default()
    }
}

impl TaskSpec {
    /// The names of all that it can say.
    pub const FIELDS: [&'static str; 12] = [
        "agent",
        "system",
        "mode",
        "input",
        "priority",
        "max_turns",
        "retry",
        "message_retry",
        "requirements",
        "session",
        "deadline",
        "idempotency_key",
    ];

    /// A task for one agent, with everything else at its default.
    pub fn for_agent(agent: Reference, input: BTreeMap<String, String>) -> Self {
        let retry = TaskRetry::default();
        Self {
            agent: Some(agent),
            system: None,
            mode: TaskMode::default(),
            input,
            priority: Priority::default(),
            max_turns: 0,
            message_retry: MessageRetry::following(&retry),
            retry,
            requirements: TaskRequirements::default(),
            session: None,
            deadline: None,
            idempotency_key: None,
        }
    }

    /// The text given to every agent: `input.message`, else `input.topic`; behind it the rest of the input in sorted lines.
    pub fn message(&self) -> String {
        let first = ["message", "topic"].into_iter().find(|key| self.input.contains_key(*key));
        let text = first.and_then(|key| self.input.get(key)).map_or("", String::as_str);
        let rest = self.input.iter().filter(|(key, _)| first != Some(key.as_str()));
        let told = rest.filter(|(_, value)| !image::is_image(value));
        let lines: Vec<String> = told.map(|(key, value)| format!("{key}: {value}")).collect();
        match (text.is_empty(), lines.is_empty()) {
            (_, true) => text.to_owned(),
            (true, false) => lines.join("\n"),
            (false, false) => format!("{text}\n\n{}", lines.join("\n")),
        }
    }
}

impl Default for MessageRetry {
    fn default() -> Self {
        Self::following(&TaskRetry::default())
    }
}

impl MessageRetry {
    /// Whether it allows as many tries as the task, so that the two are one, with the pauses that are said here.
    pub fn follows(&self, retry: &TaskRetry) -> bool {
        self.max_attempts == retry.max_attempts
    }

    /// Unless it says otherwise, a message is tried as often as its task.
    fn following(retry: &TaskRetry) -> Self {
        Self {
            max_attempts: retry.max_attempts,
            backoff: retry.backoff,
            max_backoff: GoDuration::from_secs(24 * 60 * 60),
            jitter: Jitter::Full,
            non_retryable: Vec::new(),
        }
    }
}

/// The longest session or idempotency key.
const MAX_KEY: usize = 256;

impl Declared for TaskSpec {
    const NAME: &'static str = "Task";
    const PLURAL: &'static str = "tasks";
    const SHORT_NAMES: &'static [&'static str] = &["tk"];
    const SUMMARY: &'static str = "One durable request to an agent or a system.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let mode = fields.optional("mode").unwrap_or_default();
        read(fields, mode)
    }
}

/// A template that stands inside another resource.
pub(crate) fn read_template(fields: &mut Fields<'_, '_>) -> TaskSpec {
    let mode = fields.optional("mode").unwrap_or(TaskMode::Run);
    read(fields, mode)
}

fn read(fields: &mut Fields<'_, '_>, mode: TaskMode) -> TaskSpec {
    let agent = fields.optional("agent");
    let system = fields.optional("system");
    check_subject(fields, mode, agent.is_some(), system.is_some());
    let input = fields.strings("input");
    image::check(fields, &input);
    let retry = fields.child("retry", read_retry);
    TaskSpec {
        agent,
        system,
        mode,
        input,
        priority: fields.optional("priority").unwrap_or_default(),
        max_turns: fields.count("max_turns", 0).unwrap_or(0),
        message_retry: fields.child("message_retry", |fields| read_message_retry(fields, &retry)),
        retry,
        requirements: fields.child("requirements", read_requirements),
        session: fields.checked("session", check_key),
        deadline: fields.positive_duration("deadline"),
        idempotency_key: fields.checked("idempotency_key", check_key),
    }
}

fn check_subject(fields: &mut Fields<'_, '_>, mode: TaskMode, agent: bool, system: bool) {
    if agent && system {
        fields.refuse("system", "given beside agent: a task names one of the two");
    } else if mode == TaskMode::Run && !fields.was_written("agent") && !fields.was_written("system") {
        fields.refuse_absent(
            &["agent", "system"],
            "required field is missing: a task names an agent or a system",
        );
    }
}

/// Keys are searched for by every store, and not every database holds every character.
fn check_key(key: &str) -> Result<(), String> {
    if key.len() > MAX_KEY {
        Err(format!("expected at most {MAX_KEY} bytes, found {}", key.len()))
    } else if key.chars().any(char::is_control) {
        Err("expected no control characters".to_owned())
    } else {
        Ok(())
    }
}

fn read_retry(fields: &mut Fields<'_, '_>) -> TaskRetry {
    let default = TaskRetry::default();
    TaskRetry {
        max_attempts: fields.count_or_default("max_attempts").unwrap_or(default.max_attempts),
        backoff: fields.optional("backoff").unwrap_or(default.backoff),
    }
}

fn read_message_retry(fields: &mut Fields<'_, '_>, retry: &TaskRetry) -> MessageRetry {
    let default = MessageRetry::following(retry);
    MessageRetry {
        max_attempts: fields.count_or_default("max_attempts").unwrap_or(default.max_attempts),
        backoff: fields.optional("backoff").unwrap_or(default.backoff),
        max_backoff: fields.optional("max_backoff").unwrap_or(default.max_backoff),
        jitter: fields.optional("jitter").unwrap_or(default.jitter),
        non_retryable: fields.words("non_retryable"),
    }
}

fn read_requirements(fields: &mut Fields<'_, '_>) -> TaskRequirements {
    TaskRequirements {
        region: fields.optional("region"),
        gpu: fields.flag("gpu").unwrap_or(false),
        model: fields.optional("model"),
    }
}
