//! What goes out: our conversation as blocks of content, with the marks of its cache.

use ostler_kernel::{Block, Failure, Role, conversation::Image};
use serde_json::{Map, Value, json};

use super::MARK;
use crate::{Message, ModelRequest, ToolOffer, call::written, names::ToolNames, options::Options, schema};

/// The vendor wants a bound for every answer. Its current models take at least this.
const MAX_TOKENS: u64 = 16_384;

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
    put_system(&mut body, &request.system, cache.as_ref());
    if let Some(cache) = &cache {
        mark_turns(&mut messages, cache);
    }
    put_thinking(&mut body, &mut options, &messages)?;
    body.insert("messages".into(), messages.into());
    put_output(&mut body, &mut options, request.output_schema.as_ref());
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

fn put_thinking(
    body: &mut Map<String, Value>,
    options: &mut Options,
    messages: &[Value],
) -> Result<(), Failure> {
    let mode = options.take("thinking");
    let display = options.take("thinking_display");
    let budget = take_count(options, "thinking_budget")?;
    let max_tokens = take_count(options, "max_tokens")?;
    if display.is_some() && mode.is_none() && budget.is_none() {
        let expected = "left out, unless `thinking` or `thinking_budget` says that it thinks";
        return Err(options.invalid("thinking_display", expected));
    }
    let least = budget.unwrap_or(0);
    if max_tokens.is_some_and(|max| max <= least) {
        return Err(options.invalid("max_tokens", "larger than `thinking_budget`, which is a part of it"));
    }
    body.insert("max_tokens".into(), max_tokens.unwrap_or(MAX_TOKENS + least).into());
    let mut thinking = match (budget, mode) {
        // In the middle of calls of tools that began without thinking, it must not begin.
        (Some(_), _) if is_amid_foreign_calls(messages) => return Ok(()),
        (Some(budget), _) => json!({"type": "enabled", "budget_tokens": budget}),
        (None, Some(mode)) => json!({"type": mode}),
        (None, None) => return Ok(()),
    };
    if let Some(display) = display {
        thinking["display"] = display;
    }
    body.insert("thinking".into(), thinking);
    Ok(())
}

/// A number of tokens.
fn take_count(options: &mut Options, name: &str) -> Result<Option<u64>, Failure> {
    let Some(value) = options.take(name) else { return Ok(None) };
    match value.as_u64().filter(|count| *count > 0) {
        Some(count) => Ok(Some(count)),
        None => Err(options.invalid(name, "a whole number above 0")),
    }
}

/// The last answer called tools and shows no thinking: another vendor gave it, or this one before it was asked to think.
fn is_amid_foreign_calls(messages: &[Value]) -> bool {
    let last = messages.iter().rev().find(|message| message["role"] == "assistant");
    let kinds = last.and_then(|message| message["content"].as_array()).into_iter().flatten();
    let kinds: Vec<&str> = kinds.filter_map(|block| block["type"].as_str()).collect();
    kinds.contains(&"tool_use") && !kinds.iter().any(|kind| kind.ends_with("thinking"))
}

fn put_output(body: &mut Map<String, Value>, options: &mut Options, output: Option<&Value>) {
    let mut config = Map::new();
    options.move_to(&mut config, "reasoning_effort", "effort");
    options.move_to(&mut config, "effort", "effort");
    if let Some(output) = output {
        config.insert("format".into(), json!({"type": "json_schema", "schema": schema::closed(output)}));
    }
    if !config.is_empty() {
        body.insert("output_config".into(), config.into());
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
