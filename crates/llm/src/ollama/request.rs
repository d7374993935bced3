//! What goes out: our conversation in this server's words.

use ostler_kernel::{Block, Failure, Role, conversation::Image};
use serde_json::{Map, Value, json};

use super::MARK;
use crate::{Message, ModelRequest, ToolOffer, call::written, names::ToolNames, options::Options, schema};

pub(super) fn body(
    request: &ModelRequest,
    names: &ToolNames,
    mut options: Options,
) -> Result<Vec<u8>, Failure> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    let has_tools = !request.tools.is_empty();
    let system = schema::told(&request.system, request.output_schema.as_ref().filter(|_| has_tools));
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    for message in &request.messages {
        match message.role {
            Role::User | Role::Tool => heard(&message.blocks, names, &mut messages),
            Role::Assistant => messages.extend(said(message, names)),
        }
    }
    let mut body = Map::new();
    body.insert("model".into(), request.endpoint.model.as_str().into());
    body.insert("messages".into(), messages.into());
    body.insert("stream".into(), true.into());
    match (&request.output_schema, has_tools) {
        // A schema binds every word of an answer, so that with it no tool could be called.
        (Some(output), false) => {
            body.insert("format".into(), output.clone());
        }
        (None, false) => {}
        (_, true) => {
            body.insert("tools".into(), request.tools.iter().map(|offer| tool(offer, names)).collect());
        }
    }
    options.move_to(&mut body, "keep_alive", "keep_alive");
    // Otherwise the server would quietly leave out the beginning of a conversation that is too long.
    body.insert("truncate".into(), options.take("truncate").unwrap_or(Value::Bool(false)));
    let think = match (options.take("think"), options.take("reasoning_effort")) {
        (Some(_), Some(_)) => {
            return Err(
                options.invalid("think", "left out where `reasoning_effort` is given: both say one thing")
            );
        }
        (think, effort) => think.or(effort),
    };
    if let Some(think) = think {
        body.insert("think".into(), flag_or_word(think));
    }
    let mut sampling = Map::new();
    options.move_to(&mut sampling, "max_tokens", "num_predict");
    if let Some(stop) = options.take_list("stop") {
        sampling.insert("stop".into(), stop);
    }
    sampling.extend(options.rest().iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    if !sampling.is_empty() {
        body.insert("options".into(), sampling.into());
    }
    written(&body)
}

/// `true`, `false`, or how much: `low`, `medium`, `high`.
fn flag_or_word(think: Value) -> Value {
    match think.as_str() {
        Some("true") => true.into(),
        Some("false" | "none") => false.into(),
        _ => think,
    }
}

/// The results that the model waits for first, then what people said and showed.
fn heard(blocks: &[Block], names: &ToolNames, messages: &mut Vec<Value>) {
    for block in blocks {
        let Block::ToolResult { name, content, is_error, images, .. } = block else { continue };
        let content = schema::result(content, *is_error);
        messages.push(json!({"role": "tool", "tool_name": names.to_wire(name), "content": content}));
        show(messages, images.iter());
    }
    let texts: Vec<&str> = blocks.iter().filter_map(Block::text).collect();
    let images = || blocks.iter().filter_map(image);
    if texts.iter().any(|text| !text.is_empty()) || images().next().is_some() {
        messages.push(json!({"role": "user", "content": texts.join("\n\n")}));
        show(messages, images());
    }
}

fn image(block: &Block) -> Option<&Image> {
    match block {
        Block::Image(image) => Some(image),
        Block::Text { .. } | Block::ToolCall { .. } | Block::ToolResult { .. } | Block::Native { .. } => None,
    }
}

/// Puts images to the message that was said last.
fn show<'i>(messages: &mut [Value], images: impl Iterator<Item = &'i Image>) {
    let images: Vec<&str> = images.map(|image| image.data.as_str()).collect();
    if let Some(last) = messages.last_mut().filter(|_| !images.is_empty()) {
        last["images"] = json!(images);
    }
}

fn said(message: &Message, names: &ToolNames) -> Option<Value> {
    let content: String = message.blocks.iter().filter_map(Block::text).collect();
    let mut wire = json!({"role": "assistant", "content": content});
    let mut calls = Vec::new();
    for block in &message.blocks {
        match block {
            Block::ToolCall { name, arguments, .. } => calls.push(json!({
                "function": {"name": names.to_wire(name), "arguments": schema::arguments_value(arguments)},
            })),
            Block::Native { vendor, value } if vendor == MARK => {
                if let Some(thinking) = value.get("thinking") {
                    wire["thinking"] = thinking.clone();
                }
            }
            Block::Text { .. } | Block::ToolResult { .. } | Block::Image(_) | Block::Native { .. } => {}
        }
    }
    let is_silent = content.is_empty() && calls.is_empty();
    if !calls.is_empty() {
        wire["tool_calls"] = calls.into();
    }
    (!is_silent).then_some(wire)
}

fn tool(offer: &ToolOffer, names: &ToolNames) -> Value {
    json!({"type": "function", "function": {
        "name": names.to_wire(&offer.name),
        "description": offer.description,
        "parameters": schema::parameters(&offer.schema),
    }})
}

#[cfg(test)]
mod tests {
    use ostler_kernel::plan::ModelPlan;

    use super::*;

    fn wire(options: &[(&str, &str)]) -> Result<Value, Failure> {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let endpoint = ModelPlan {
            endpoint: "main".into(),
            provider: "ollama".into(),
            model: "m".into(),
            options: options.iter().map(owned).collect(),
            ..ModelPlan::default()
        };
        let request = ModelRequest {
            endpoint,
            system: String::new(),
            messages: vec![],
            tools: vec![],
            output_schema: None,
            request_id: String::new(),
        };
        let options = Options::read(&request.endpoint, &[super::super::OPTIONS])?;
        Ok(serde_json::from_slice(&body(&request, &ToolNames::new(&[]), options)?).unwrap())
    }

    #[test]
    fn how_much_it_thinks_is_said_once() {
        assert_eq!(wire(&[("think", "true")]).unwrap()["think"], true);
        assert_eq!(wire(&[("reasoning_effort", "low")]).unwrap()["think"], "low");
        let failure = wire(&[("think", "true"), ("reasoning_effort", "low")]).unwrap_err();
        assert_eq!(failure.code, "model_option_invalid");
        assert!(failure.message.contains("`reasoning_effort`"), "{failure}");
    }
}
