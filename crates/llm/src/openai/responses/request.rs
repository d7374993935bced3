//! What goes out: our conversation as items.

use ostler_kernel::{Block, Failure, Role, conversation::Image};
use serde_json::{Map, Value, json};

use crate::{
    Message, ModelRequest, ToolOffer,
    call::written,
    names::ToolNames,
    openai::cache::{BREAKPOINT, MARKED_TURNS},
    options::Options,
    schema,
};

pub(crate) fn body(
    request: &ModelRequest,
    (model, mark): (&str, &str),
    names: &ToolNames,
    mut options: Options,
    marks_prompts: bool,
) -> Result<Vec<u8>, Failure> {
    let mut body = Map::new();
    let store = options.take("store").and_then(|store| store.as_bool()).unwrap_or(false);
    let items = Items { mark, names, has_store: store };
    let mut input: Vec<Value> = request.messages.iter().flat_map(|message| items.of(message)).collect();
    // What is marked must be a part of the input.
    let instructions = Some(request.system.as_str()).filter(|system| !system.is_empty());
    if marks_prompts {
        mark_prompt(&mut input, instructions);
    }
    body.insert("model".into(), model.into());
    body.insert("input".into(), input.into());
    body.insert("stream".into(), true.into());
    body.insert("store".into(), store.into());
    if let Some(instructions) = instructions.filter(|_| !marks_prompts) {
        body.insert("instructions".into(), instructions.into());
    }
    if request.tools.is_empty() {
        options.take("parallel_tool_calls");
    } else {
        let tools = request.tools.iter().map(|offer| tool(offer, names));
        body.insert("tools".into(), tools.collect());
        body.insert("tool_choice".into(), "auto".into());
    }
    put_reasoning(&mut body, &mut options, model);
    put_text(&mut body, &mut options, request.output_schema.as_ref());
    options.move_to(&mut body, "max_tokens", "max_output_tokens");
    body.extend(options.rest().iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    written(&body)
}

/// Marks where the prompt ends that the next call begins with: behind the system's words, and behind the user's last.
fn mark_prompt(input: &mut Vec<Value>, instructions: Option<&str>) {
    let users = input.iter_mut().rev().filter(|item| item["role"] == "user");
    for item in users.take(MARKED_TURNS) {
        if let Some(last) = item["content"].as_array_mut().and_then(|parts| parts.last_mut()) {
            last["prompt_cache_breakpoint"] = json!(BREAKPOINT);
        }
    }
    if let Some(text) = instructions {
        let part = json!({"type": "input_text", "text": text, "prompt_cache_breakpoint": BREAKPOINT});
        input.insert(0, json!({"type": "message", "role": "developer", "content": [part]}));
    }
}

fn put_reasoning(body: &mut Map<String, Value>, options: &mut Options, model: &str) {
    let mut reasoning = Map::new();
    options.move_to(&mut reasoning, "reasoning_effort", "effort");
    options.move_to(&mut reasoning, "reasoning_summary", "summary");
    let encrypted = options.take("encrypted_reasoning").and_then(|flag| flag.as_bool());
    // A model that doesn't think refuses to be asked for its thinking.
    if encrypted.unwrap_or(!reasoning.is_empty() || thinks(model)) {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    if !reasoning.is_empty() {
        body.insert("reasoning".into(), reasoning.into());
    }
}

/// Whether a model thinks, as far as its name tells: `o3`, `gpt-5` and up, whatever has `codex` in it.
pub(crate) fn thinks(model: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or(model);
    let digit = |rest: &str| rest.chars().next().and_then(|first| first.to_digit(10));
    let is_o = model.strip_prefix('o').is_some_and(|rest| digit(rest).is_some());
    let is_gpt = model.strip_prefix("gpt-").and_then(digit).is_some_and(|version| version >= 5);
    (is_o || is_gpt || model.contains("codex")) && !model.contains("chat")
}

fn put_text(body: &mut Map<String, Value>, options: &mut Options, output: Option<&Value>) {
    let mut text = Map::new();
    options.move_to(&mut text, "verbosity", "verbosity");
    if let Some(output) = output {
        let strict = schema::is_strict(output);
        let format =
            json!({"type": "json_schema", "name": schema::ANSWER, "schema": output, "strict": strict});
        text.insert("format".into(), format);
    }
    if !text.is_empty() {
        body.insert("text".into(), text.into());
    }
}

/// Makes items of messages.
struct Items<'r> {
    mark: &'r str,
    names: &'r ToolNames,
    has_store: bool,
}

impl Items<'_> {
    fn of(&self, message: &Message) -> Vec<Value> {
        match message.role {
            Role::User | Role::Tool => heard(&message.blocks),
            Role::Assistant => self.said(&message.blocks),
        }
    }

    fn said(&self, blocks: &[Block]) -> Vec<Value> {
        let mut items = Vec::new();
        // What the vendor wants to hear again about the message that follows.
        let mut phase = None;
        for block in blocks {
            match block {
                Block::Text { text } if text.is_empty() => {}
                Block::Text { text } => {
                    let mut item = json!({"type": "message", "role": "assistant", "content": text});
                    if let Some(phase) = phase.take() {
                        item["phase"] = phase;
                    }
                    items.push(item);
                }
                Block::ToolCall { id, name, arguments } => items.push(json!({
                    "type": "function_call",
                    "call_id": id,
                    "name": self.names.to_wire(name),
                    "arguments": schema::arguments(arguments),
                })),
                Block::Native { vendor, value } if vendor == self.mark => match value.get("phase") {
                    Some(given) if value.get("type").is_none() => phase = Some(given.clone()),
                    _ => items.extend(self.goes_back(value).then(|| value.clone())),
                },
                Block::Native { .. } | Block::ToolResult { .. } | Block::Image(_) => {}
            }
        }
        // Thinking that led to nothing is refused.
        while items.last().is_some_and(|item: &Value| item["type"] == "reasoning") {
            items.pop();
        }
        items
    }

    /// Thinking that was neither encrypted nor kept at the vendor's is known to nobody there.
    fn goes_back(&self, item: &Value) -> bool {
        match item.get("type").and_then(Value::as_str) {
            Some("reasoning") => {
                self.has_store || item.get("encrypted_content").is_some_and(Value::is_string)
            }
            Some(_) => true,
            None => false,
        }
    }
}

/// The results that the model waits for first, then what people said.
fn heard(blocks: &[Block]) -> Vec<Value> {
    let mut items: Vec<Value> = blocks.iter().filter_map(result).collect();
    let parts: Vec<Value> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } if !text.is_empty() => Some(json!({"type": "input_text", "text": text})),
            Block::Image(image) => Some(picture(image)),
            Block::Text { .. } | Block::ToolCall { .. } | Block::ToolResult { .. } | Block::Native { .. } => {
                None
            }
        })
        .collect();
    if !parts.is_empty() {
        items.push(json!({"type": "message", "role": "user", "content": parts}));
    }
    items
}

fn result(block: &Block) -> Option<Value> {
    let Block::ToolResult { call_id, content, is_error, images, .. } = block else { return None };
    let text = schema::result(content, *is_error);
    let output = match images.is_empty() {
        true => Value::from(text),
        false => {
            let text = json!({"type": "input_text", "text": text});
            std::iter::once(text).chain(images.iter().map(picture)).collect()
        }
    };
    Some(json!({"type": "function_call_output", "call_id": call_id, "output": output}))
}

fn picture(image: &Image) -> Value {
    json!({"type": "input_image", "image_url": image.data_url(), "detail": "auto"})
}

fn tool(offer: &ToolOffer, names: &ToolNames) -> Value {
    json!({
        "type": "function",
        "name": names.to_wire(&offer.name),
        "description": offer.description,
        "parameters": schema::parameters(&offer.schema),
        "strict": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_thinks_is_told_by_the_name() {
        for model in ["o3", "o4-mini", "gpt-5", "gpt-5.2", "openai/gpt-5-mini", "codex-mini-latest"] {
            assert!(thinks(model), "{model}");
        }
        for model in ["gpt-4o", "gpt-4.1", "omni", "scripted", "gpt-5-chat-latest", ""] {
            assert!(!thinks(model), "{model}");
        }
    }
}
