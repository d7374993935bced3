//! One event of a stream as it stands on the wire. A whole answer has the same shape, with `message` where an
//! event has `delta`. Fields that we have no words for are kept as they are.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Number, Value};

use crate::nulls::null_as_default;

#[derive(Debug, Deserialize)]
pub(super) struct Chunk {
    /// Of the whole answer; each event repeats it.
    #[serde(default)]
    pub(super) id: Value,
    #[serde(default)]
    pub(super) model: Value,
    #[serde(default)]
    pub(super) choices: Option<Vec<Choice>>,
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
    /// What went wrong behind a status that said all is well.
    #[serde(default)]
    pub(super) error: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) index: u64,
    #[serde(default, alias = "message")]
    pub(super) delta: Option<Delta>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Delta {
    pub(super) content: Option<String>,
    pub(super) tool_calls: Vec<CallDelta>,
    /// All else that is not null.
    pub(super) extras: Vec<(String, Value)>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallDelta {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(super) function: FunctionDelta,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) arguments: Option<String>,
}

/// Numbers of any kind are read, so that a vendor's nonsense costs us the count and not the answer.
#[derive(Debug, Deserialize)]
pub(super) struct WireUsage {
    #[serde(default)]
    pub(super) prompt_tokens: Option<Number>,
    #[serde(default)]
    pub(super) completion_tokens: Option<Number>,
    #[serde(default)]
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    pub(super) completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct PromptDetails {
    #[serde(default)]
    pub(super) cached_tokens: Option<Number>,
    #[serde(default)]
    pub(super) cache_write_tokens: Option<Number>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct CompletionDetails {
    #[serde(default)]
    pub(super) reasoning_tokens: Option<Number>,
}

/// By hand, because serde's own way to keep unknown fields copies every field first, and this is the one type
/// that is read for each token.
impl<'de> Deserialize<'de> for Delta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DeltaVisitor)
    }
}

struct DeltaVisitor;

impl<'de> Visitor<'de> for DeltaVisitor {
    type Value = Delta;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Delta, A::Error> {
        let mut delta = Delta::default();
        while let Some(name) = fields.next_key::<Name>()? {
            match name {
                Name::Role => {
                    fields.next_value::<IgnoredAny>()?;
                }
                Name::Content => delta.content = fields.next_value()?,
                Name::ToolCalls => {
                    delta.tool_calls = fields.next_value::<Option<_>>()?.unwrap_or_default();
                }
                Name::Other(name) => {
                    if let Some(value) = fields.next_value::<Option<Value>>()? {
                        delta.extras.push((name, value));
                    }
                }
            }
        }
        Ok(delta)
    }
}

enum Name {
    Role,
    Content,
    ToolCalls,
    Other(String),
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Name, E> {
        Ok(match name {
            "role" => Name::Role,
            "content" => Name::Content,
            "tool_calls" => Name::ToolCalls,
            other => Name::Other(other.to_owned()),
        })
    }
}
