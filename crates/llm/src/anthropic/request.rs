//! What goes out: our conversation as blocks of content, with the marks of its cache.

use ostler_kernel::{Block, Failure, Role, conversation::Image};
use serde_json::{Map, Value, json};

use super::{MARK, schema::fitting, thinking};
use crate::{Message, ModelRequest, ToolOffer, call::written, names::ToolNames, options::Options, schema};

/// How many of the last messages of the user are marked. The vendor looks back from a mark for what it has in its
/// cache, so the one before the last finds what the call before has put there.
const MARKED_TURNS: usize = 2;

/// What a user says who says nothing: the wire allows no empty message.
const NOTHING: &str = "(no text)";

pub(super) fn body(
    request: &ModelRequest,
    names: &ToolNames,
    mut options: Options,
) -> Result<Vec<u8>, Failure> {
    let cache = cache_control(&mut options);
    let mut messages = messages(&request.messages, names);
    let mut body = Map::new();
    body.insert("model".into(), request.endpoint.model.as_str().into());
    body.insert("stream".into(), true.into());
    put_tools(&mut body, request, names, &mut options);
    let output = request.output_schema.as_ref();
    let format = output.and_then(fitting);
    let in_words = output.filter(|_| format.is_none());
    put_system(&mut body, &schema::told(&request.system, in_words), cache.as_ref());
    if let Some(cache) = &cache {
        mark_turns(&mut messages, cache);
    }
    thinking::put(&mut body, &mut options, &request.endpoint.model, &messages)?;
    body.insert("messages".into(), messages.into());
    if let Some(schema) = format {
        let config = body.entry("output_config").or_insert_with(|| json!({}));
        config["format"] = json!({"type": "json_schema", "schema": schema});
    }
    if let Some(stop) = options.take_list("stop") {
        body.insert("stop_sequences".into(), stop);
    }
    body.extend(options.rest().iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    written(&body)
}

fn cache_control(options: &mut Options) -> Option<Value> {
    let chosen = options.take("cache");
    match chosen.as_ref().and_then(Value::as_str) {
        Some("off") => None,
        Some("1h") => Some(json!({"type": "ephemeral", "ttl": "1h"})),
        _ => Some(json!({"type": "ephemeral"})),
    }
}

fn put_tools(
    body: &mut Map<String, Value>,
    request: &ModelRequest,
    names: &ToolNames,
    options: &mut Options,
) {
    let parallel = options.take("parallel_tool_calls").and_then(|flag| flag.as_bool());
    if request.tools.is_empty() {
        return;
    }
    body.insert("tools".into(), request.tools.iter().map(|offer| tool(offer, names)).collect());
    if parallel == Some(false) {
        body.insert("tool_choice".into(), json!({"type": "auto", "disable_parallel_tool_use": true}));
    }
}

/// The mark at the end of the system's words stands for the tools too: they come before it.
fn put_system(body: &mut Map<String, Value>, system: &str, cache: Option<&Value>) {
    if !system.trim().is_empty() {
        let mut block = json!({"type": "text", "text": system});
        if let Some(cache) = cache {
            block["cache_control"] = cache.clone();
        }
        body.insert("system".into(), json!([block]));
    } else if let (Some(cache), Some(last)) =
        (cache, body.get_mut("tools").and_then(Value::as_array_mut).and_then(|tools| tools.last_mut()))
    {
        last["cache_control"] = cache.clone();
    }
}

fn mark_turns(messages: &mut [Value], cache: &Value) {
    let users = messages.iter_mut().rev().filter(|message| message["role"] == "user");
    for message in users.take(MARKED_TURNS) {
        if let Some(last) = message["content"].as_array_mut().and_then(|content| content.last_mut()) {
            last["cache_control"] = cache.clone();
        }
    }
}

/// Neighbours of one role become one message: what was left out may have stood between them.
fn messages(messages: &[Message], names: &ToolNames) -> Vec<Value> {
    let mut wire: Vec<(&str, Vec<Value>)> = Vec::with_capacity(messages.len());
    for message in messages {
        let (role, content) = match message.role {
            Role::User | Role::Tool => ("user", heard(&message.blocks)),
            Role::Assistant => ("assistant", said(&message.blocks, names)),
        };
        match wire.last_mut() {
            _ if content.is_empty() => {}
            Some((last, blocks)) if *last == role => blocks.extend(content),
            _ => wire.push((role, content)),
        }
    }
    wire.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

/// The results that the model waits for first, then what people said and showed.
fn heard(blocks: &[Block]) -> Vec<Value> {
    let mut content: Vec<Value> = blocks.iter().filter_map(result).collect();
    for block in blocks {
        match block {
            Block::Text { text } => content.extend(say(text)),
            Block::Image(image) => content.push(picture(image)),
            Block::ToolCall { .. } | Block::ToolResult { .. } | Block::Native { .. } => {}
        }
    }
    if content.is_empty() && !blocks.is_empty() {
        content.extend(say(NOTHING));
    }
    content
}

fn said(blocks: &[Block], names: &ToolNames) -> Vec<Value> {
    let mut content = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Text { text } => content.extend(say(text)),
            Block::ToolCall { id, name, arguments } => content.push(json!({
                "type": "tool_use",
                "id": id,
                "name": names.to_wire(name),
                "input": schema::arguments_value(arguments),
            })),
            Block::Native { vendor, value } if vendor == MARK && value.get("type").is_some() => {
                content.push(value.clone());
            }
            Block::Native { .. } | Block::ToolResult { .. } | Block::Image(_) => {}
        }
    }
    // Thinking alone is no message.
    let is_thought = |block: &Value| block["type"].as_str().is_some_and(|kind| kind.ends_with("thinking"));
    if content.iter().all(is_thought) { Vec::new() } else { content }
}

/// The vendor refuses text of nothing but blanks.
fn say(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn result(block: &Block) -> Option<Value> {
    let Block::ToolResult { call_id, content, is_error, images, .. } = block else { return None };
    let shown: Vec<Value> = say(content).into_iter().chain(images.iter().map(picture)).collect();
    let mut result = json!({"type": "tool_result", "tool_use_id": call_id});
    if !shown.is_empty() {
        result["content"] = shown.into();
    }
    if *is_error {
        result["is_error"] = true.into();
    }
    Some(result)
}

fn picture(image: &Image) -> Value {
    let source = json!({"type": "base64", "media_type": image.media_type, "data": image.data});
    json!({"type": "image", "source": source})
}

fn tool(offer: &ToolOffer, names: &ToolNames) -> Value {
    json!({
        "name": names.to_wire(&offer.name),
        "description": offer.description,
        "input_schema": schema::parameters(&offer.schema),
    })
}

#[cfg(test)]
mod tests;
