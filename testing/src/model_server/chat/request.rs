//! A chat-completions request as it stands in its bytes: borrowed, not copied, because the server is also the
//! mock model of the benchmarks. Types and unknown fields are refused while reading; `check` judges the
//! rest.

#![expect(dead_code, reason = "many fields are only read so that they are known: their types are the check")]

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;

use serde::de::{IgnoredAny, SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The body of `POST /v1/chat/completions`. The deprecated `functions` and `function_call` count as unknown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub struct ChatRequest<'a> {
    pub model: Option<Text<'a>>,
    pub messages: Vec<Message<'a>>,
    pub tools: Option<Vec<Tool<'a>>>,
    pub tool_choice: Option<ToolChoice<'a>>,
    pub parallel_tool_calls: Option<bool>,
    #[serde(default)]
    pub stream: bool,
    pub stream_options: Option<StreamOptions>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub max_tokens: Option<u64>,
    pub max_completion_tokens: Option<u64>,
    pub n: Option<u64>,
    pub seed: Option<i64>,
    pub stop: Option<Stop<'a>>,
    pub logprobs: Option<bool>,
    pub top_logprobs: Option<u64>,
    pub reasoning_effort: Option<Text<'a>>,
    pub verbosity: Option<Text<'a>>,
    pub service_tier: Option<Text<'a>>,
    pub user: Option<Text<'a>>,
    pub safety_identifier: Option<Text<'a>>,
    pub prompt_cache_key: Option<Text<'a>>,
    pub prompt_cache_retention: Option<Text<'a>>,
    pub store: Option<bool>,
    pub metadata: Option<Object>,
    pub logit_bias: Option<Object>,
    pub response_format: Option<&'a RawValue>,
    pub prediction: Option<Object>,
    pub prompt_cache_options: Option<Object>,
    pub moderation: Option<Object>,
    pub audio: Option<Object>,
    pub web_search_options: Option<Object>,
    pub modalities: Option<Vec<Text<'a>>>,
}

/// What else a stream should carry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamOptions {
    /// Ask for a last chunk with the usage.
    #[serde(default)]
    pub include_usage: bool,
    /// Random padding against traffic analysis; accepted, never sent.
    pub include_obfuscation: Option<bool>,
}

/// One message of the transcript.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub struct Message<'a> {
    pub role: Role,
    pub content: Option<Content<'a>>,
    pub name: Option<Text<'a>>,
    pub tool_calls: Option<Vec<ToolCall<'a>>>,
    pub tool_call_id: Option<Text<'a>>,
    pub refusal: Option<Text<'a>>,
    pub annotations: Option<Vec<IgnoredAny>>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

/// What is said: a text, or parts.
#[derive(Debug, Hash)]
pub enum Content<'a> {
    /// Plain text.
    Text(Text<'a>),
    /// A list of parts.
    Parts(Vec<Part<'a>>),
}

/// One part of a message.
#[derive(Debug, Hash, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", bound(deserialize = "'de: 'a"))]
pub enum Part<'a> {
    Text { text: Text<'a>, prompt_cache_breakpoint: Option<Breakpoint<'a>> },
    Refusal { refusal: Text<'a> },
    ImageUrl { image_url: Object, prompt_cache_breakpoint: Option<Breakpoint<'a>> },
    InputAudio { input_audio: Object },
    File { file: Object },
}

/// Asks that the prompt be cached up to here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub struct Breakpoint<'a> {
    pub mode: Text<'a>,
}

/// A mark is no part of what is said.
impl Hash for Breakpoint<'_> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A call the assistant made.
#[derive(Debug, Hash, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub struct ToolCall<'a> {
    pub id: Text<'a>,
    pub r#type: CallType,
    pub function: CalledFunction<'a>,
}

/// The function inside a call.
#[derive(Debug, Hash, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub struct CalledFunction<'a> {
    pub name: Text<'a>,
    pub arguments: Text<'a>,
}

/// The only type of tool this wire knows here.
#[derive(Debug, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallType {
    Function,
}

/// A tool the caller offers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub struct Tool<'a> {
    pub r#type: CallType,
    pub function: OfferedFunction<'a>,
}

/// The function inside an offered tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub struct OfferedFunction<'a> {
    pub name: Text<'a>,
    pub description: Option<Text<'a>>,
    pub parameters: Option<&'a RawValue>,
    #[serde(default)]
    pub strict: Option<bool>,
}

/// Which tool must be called.
#[derive(Debug, Deserialize)]
#[serde(untagged, bound(deserialize = "'de: 'a"))]
pub enum ToolChoice<'a> {
    /// `none`, `auto` or `required`.
    Mode(Text<'a>),
    /// This one.
    Named(NamedTool<'a>),
}

/// A choice of one tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub struct NamedTool<'a> {
    pub r#type: CallType,
    pub function: NamedFunction<'a>,
}

/// The function inside a choice.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub struct NamedFunction<'a> {
    pub name: Text<'a>,
}

/// Where the model should stop.
#[derive(Debug, Deserialize)]
#[serde(untagged, bound(deserialize = "'de: 'a"))]
pub enum Stop<'a> {
    /// One sequence.
    One(Text<'a>),
    /// Up to four.
    Many(Vec<Text<'a>>),
}

/// An object whose inside doesn't matter here.
#[derive(Debug, Hash)]
pub struct Object;

/// A string, borrowed from the body unless it holds escapes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text<'a>(Cow<'a, str>);

impl<'a> ChatRequest<'a> {
    /// Reads a body.
    pub fn read(body: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(body)
    }

    /// The names of the tools on offer.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().flatten().map(|tool| &*tool.function.name)
    }

    /// How often the prompt is marked for the cache.
    pub fn n_breakpoints(&self) -> usize {
        let parts = self.messages.iter().flat_map(|message| match &message.content {
            Some(Content::Parts(parts)) => parts.as_slice(),
            Some(Content::Text(_)) | None => &[],
        });
        parts.filter(|part| part.is_marked()).count()
    }

    /// Names the transcript: the same for a repeated call, another one for every other step.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for message in &self.messages {
            message.role.hash(&mut hasher);
            message.content.hash(&mut hasher);
            message.tool_calls.hash(&mut hasher);
            message.tool_call_id.hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Message<'_> {
    /// The text of the message, parts put together.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.content {
            None => Cow::Borrowed(""),
            Some(Content::Text(text)) => Cow::Borrowed(text),
            Some(Content::Parts(parts)) => parts.iter().filter_map(Part::text).collect::<String>().into(),
        }
    }
}

impl Part<'_> {
    fn is_marked(&self) -> bool {
        match self {
            Part::Text { prompt_cache_breakpoint, .. } | Part::ImageUrl { prompt_cache_breakpoint, .. } => {
                prompt_cache_breakpoint.as_ref().is_some_and(|mark| *mark.mode == *"explicit")
            }
            Part::Refusal { .. } | Part::InputAudio { .. } | Part::File { .. } => false,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Part::Text { text, .. } => Some(text),
            Part::Refusal { .. } | Part::ImageUrl { .. } | Part::InputAudio { .. } | Part::File { .. } => {
                None
            }
        }
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor).map(Text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string or a list of parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(parts)).map(Content::Parts)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut fields: A) -> Result<Object, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Object)
    }
}
