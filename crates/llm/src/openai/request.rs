//! What goes out: our conversation in the vendor's words.
//!
//! What this wire can't carry is settled here. It has no mark for a failed tool, so the result says it. It
//! wants the arguments of a past call to be a JSON object, and some servers break on anything else, so what
//! a model wrote wrongly goes back as `{}`: to show it its own broken text would teach it to write more of
//! that, and the tool's result right behind it says what was wrong.

use std::{borrow::Cow, collections::BTreeMap};

use ostler_kernel::{Block, Role};
use serde::{Serialize, de::IgnoredAny};
use serde_json::{Value, json};

use super::{names::ToolNames, options::Options};
use crate::{Message, ModelRequest, ToolOffer};

/// Marks the native blocks that are ours to give back.
pub(super) const VENDOR: &str = "openai";

/// The vendor refuses longer ones.
const MAX_DESCRIPTION: usize = 1024;

pub(super) fn body(
    request: &ModelRequest,
    names: &ToolNames,
    options: &Options,
) -> serde_json::Result<Vec<u8>> {
    let has_tools = !request.tools.is_empty();
    let is_used = |(name, _): &(&&'static str, &Value)| has_tools || **name != "parallel_tool_calls";
    serde_json::to_vec(&Body {
        model: &request.endpoint.model,
        messages: messages(request, names),
        tools: request.tools.iter().map(|offer| tool(offer, names)).collect(),
        tool_choice: has_tools.then_some("auto"),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        options: options.fields.iter().filter(is_used).collect(),
    })
}

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    messages: Vec<WireMessage<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(flatten)]
    options: BTreeMap<&'r &'static str, &'r Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'r> {
    System {
        content: &'r str,
    },
    User {
        content: Cow<'r, str>,
    },
    Assistant {
        content: Option<Cow<'r, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'r>>,
        #[serde(flatten)]
        native: BTreeMap<&'r str, &'r Value>,
    },
    Tool {
        tool_call_id: &'r str,
        content: Cow<'r, str>,
    },
}

#[derive(Serialize)]
struct WireCall<'r> {
    id: &'r str,
    r#type: &'static str,
    function: WireFunction<'r>,
}

#[derive(Serialize)]
struct WireFunction<'r> {
    name: Cow<'r, str>,
    arguments: &'r str,
}

#[derive(Serialize)]
struct WireTool<'r> {
    r#type: &'static str,
    function: WireOffer<'r>,
}

#[derive(Serialize)]
struct WireOffer<'r> {
    name: Cow<'r, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: Cow<'r, str>,
    parameters: Cow<'r, Value>,
}

fn messages<'r>(request: &'r ModelRequest, names: &'r ToolNames) -> Vec<WireMessage<'r>> {
    let mut wire = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        wire.push(WireMessage::System { content: &request.system });
    }
    for message in &request.messages {
        match message.role {
            Role::User | Role::Tool => push_heard(message, &mut wire),
            Role::Assistant => wire.extend(assistant(message, names)),
        }
    }
    wire
}

/// What the model was told: the results it waits for first, then what people said.
fn push_heard<'r>(message: &'r Message, wire: &mut Vec<WireMessage<'r>>) {
    let results = message.blocks.iter().filter_map(|block| match block {
        Block::ToolResult { call_id, content, is_error, .. } => {
            Some(WireMessage::Tool { tool_call_id: call_id, content: result(content, *is_error) })
        }
        Block::Text { .. } | Block::ToolCall { .. } | Block::Native { .. } => None,
    });
    wire.extend(results);
    let content = joined(&message.blocks, "\n\n");
    if !content.is_empty() {
        wire.push(WireMessage::User { content });
    }
}

/// What the model said; nothing if it said nothing, since the wire allows no empty message.
fn assistant<'r>(message: &'r Message, names: &'r ToolNames) -> Option<WireMessage<'r>> {
    let mut tool_calls = Vec::new();
    let mut native = BTreeMap::new();
    for block in &message.blocks {
        match block {
            Block::ToolCall { id, name, arguments } => {
                let function =
                    WireFunction { name: names.to_wire(name), arguments: arguments_object(arguments) };
                tool_calls.push(WireCall { id, r#type: "function", function });
            }
            Block::Native { vendor, value: Value::Object(fields) } if vendor == VENDOR => {
                let foreign = |name: &str| !["role", "content", "tool_calls"].contains(&name);
                let fields = fields.iter().filter(|(name, _)| foreign(name));
                native.extend(fields.map(|(name, value)| (name.as_str(), value)));
            }
            Block::Text { .. } | Block::ToolResult { .. } | Block::Native { .. } => {}
        }
    }
    let content = Some(joined(&message.blocks, "")).filter(|text| !text.is_empty());
    let is_silent = content.is_none() && tool_calls.is_empty() && native.is_empty();
    (!is_silent).then_some(WireMessage::Assistant { content, tool_calls, native })
}

fn joined<'r>(blocks: &'r [Block], between: &str) -> Cow<'r, str> {
    let mut texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::ToolCall { .. } | Block::ToolResult { .. } | Block::Native { .. } => None,
    });
    let Some(first) = texts.next() else { return Cow::Borrowed("") };
    texts.fold(Cow::Borrowed(first), |joined, text| Cow::Owned(joined.into_owned() + between + text))
}

fn result(content: &str, is_error: bool) -> Cow<'_, str> {
    let says_so = content.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    match is_error && !says_so {
        true => Cow::Owned(format!("error: {content}")),
        false => Cow::Borrowed(content),
    }
}

fn arguments_object(arguments: &str) -> &str {
    let is_object =
        arguments.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(arguments).is_ok();
    if is_object { arguments } else { "{}" }
}

fn tool<'r>(offer: &'r ToolOffer, names: &'r ToolNames) -> WireTool<'r> {
    let description = match offer.description.char_indices().nth(MAX_DESCRIPTION) {
        None => Cow::Borrowed(offer.description.as_str()),
        Some(_) => offer.description.chars().take(MAX_DESCRIPTION - 1).chain(['…']).collect(),
    };
    let parameters = parameters(&offer.schema);
    WireTool {
        r#type: "function",
        function: WireOffer { name: names.to_wire(&offer.name), description, parameters },
    }
}

/// A schema as the vendor wants it: of an object, with properties.
fn parameters(schema: &Value) -> Cow<'_, Value> {
    let is_empty = schema.as_object().is_some_and(serde_json::Map::is_empty);
    if schema.is_null() || is_empty {
        return Cow::Owned(json!({
            "type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"],
        }));
    }
    match schema.as_object() {
        Some(fields) if !(fields.contains_key("type") && fields.contains_key("properties")) => {
            let mut fields = fields.clone();
            fields.entry("type").or_insert_with(|| json!("object"));
            fields.entry("properties").or_insert_with(|| json!({}));
            Cow::Owned(Value::Object(fields))
        }
        _ => Cow::Borrowed(schema),
    }
}

#[cfg(test)]
mod tests;
