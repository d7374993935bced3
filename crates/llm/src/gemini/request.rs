//! What goes out: our conversation as contents of parts.

use ostler_kernel::{Block, Failure, Role, conversation::Image};
use serde_json::{Map, Value, json};

use super::MARK;
use crate::{
    Message, ModelRequest, ToolOffer, call::written, failure, names::ToolNames, options::Options, schema,
};

/// The vendor's own word for a call that no model of its kind has made. Its newer models refuse one without any.
const FOREIGN: &str = "skip_thought_signature_validator";

/// What a user says who says nothing.
const NOTHING: &str = "(no text)";

/// The vendor's models are shown these.
const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];

pub(super) fn body(
    request: &ModelRequest,
    names: &ToolNames,
    mut options: Options,
) -> Result<Vec<u8>, Failure> {
    let is_newer = is_newer(&request.endpoint.model);
    let writer = Writer { names, endpoint: &request.endpoint.endpoint, signs: is_newer };
    let in_words = !is_newer && !request.tools.is_empty();
    let output = request.output_schema.as_ref();
    let system = schema::told(&request.system, output.filter(|_| in_words));
    let mut body = Map::new();
    body.insert("contents".into(), writer.contents(&request.messages)?.into());
    if !system.trim().is_empty() {
        body.insert("systemInstruction".into(), json!({"parts": [{"text": system}]}));
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(|offer| tool(offer, names)).collect();
        body.insert("tools".into(), json!([{"functionDeclarations": tools}]));
    }
    options.move_to(&mut body, "safety_settings", "safetySettings");
    options.move_to(&mut body, "cached_content", "cachedContent");
    let config = generation_config(options, &request.endpoint.model, output.filter(|_| !in_words))?;
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    written(&body)
}

/// From its third generation on the vendor refuses calls without a signature, and takes a schema beside tools, which it
/// refuses before. Whoever is not known to be older is taken to be newer.
fn is_newer(model: &str) -> bool {
    !["gemini-1", "gemini-2", "gemma"].iter().any(|old| model.contains(old))
}

/// What an effort is in tokens, for the generation that is given a budget.
const BUDGETS: [(&str, u64); 5] =
    [("none", 0), ("minimal", 512), ("low", 1024), ("medium", 2048), ("high", 4096)];

/// How much it thinks: the vendor's own words go before `reasoning_effort`.
fn thinking_config(options: &mut Options, model: &str) -> Result<Map<String, Value>, Failure> {
    let mut thinking = Map::new();
    let effort = options.take("reasoning_effort");
    options.move_to(&mut thinking, "thinking_level", "thinkingLevel");
    options.move_to(&mut thinking, "thinking_budget", "thinkingBudget");
    if let Some(effort) = effort.filter(|_| thinking.is_empty()) {
        let word = effort.as_str().unwrap_or_default();
        if is_newer(model) {
            thinking.insert("thinkingLevel".into(), level(word, model).into());
        } else if model.contains("gemini-2.5") {
            let budget = BUDGETS.iter().find(|(name, _)| *name == word).map(|(_, budget)| *budget);
            let budget = budget.ok_or_else(|| {
                let names = BUDGETS.map(|(name, _)| name).join(", ");
                options.invalid("reasoning_effort", &format!("one of {names}"))
            })?;
            // One of them can't leave it.
            let least = if model.contains("pro") { 128 } else { 0 };
            thinking.insert("thinkingBudget".into(), budget.max(least).into());
        } else if word != "none" {
            let expected = format!("left out: `{model}` does not think");
            return Err(options.invalid("reasoning_effort", &expected));
        }
    }
    // The names of an enumeration, which this vendor writes in capitals.
    if let Some(Value::String(level)) = thinking.get_mut("thinkingLevel") {
        level.make_ascii_uppercase();
    }
    options.move_to(&mut thinking, "include_thoughts", "includeThoughts");
    Ok(thinking)
}

/// The first of the third generation have fewer levels than those behind it.
fn level<'w>(effort: &'w str, model: &str) -> &'w str {
    match effort {
        "minimal" | "none" if !model.contains("flash") => "low",
        "none" => "minimal",
        "medium" if model.contains("gemini-3-pro") => "high",
        effort => effort,
    }
}

fn generation_config(
    mut options: Options,
    model: &str,
    output: Option<&Value>,
) -> Result<Map<String, Value>, Failure> {
    let mut config = Map::new();
    let mut thinking = thinking_config(&mut options, model)?;
    if !thinking.is_empty() {
        thinking.entry("includeThoughts").or_insert(Value::Bool(true));
        config.insert("thinkingConfig".into(), thinking.into());
    }
    if let Some(stop) = options.take_list("stop") {
        config.insert("stopSequences".into(), stop);
    }
    for (name, field) in [
        ("frequency_penalty", "frequencyPenalty"),
        ("max_tokens", "maxOutputTokens"),
        ("presence_penalty", "presencePenalty"),
        ("seed", "seed"),
        ("temperature", "temperature"),
        ("top_k", "topK"),
        ("top_p", "topP"),
    ] {
        options.move_to(&mut config, name, field);
    }
    if let Some(output) = output {
        config.insert("responseMimeType".into(), "application/json".into());
        config.insert("responseJsonSchema".into(), output.clone());
    }
    Ok(config)
}

struct Writer<'r> {
    names: &'r ToolNames,
    endpoint: &'r str,
    /// A call without a signature gets the vendor's word for foreign ones.
    signs: bool,
}

impl Writer<'_> {
    /// Neighbours of one role become one content: what was left out may have stood between them.
    fn contents(&self, messages: &[Message]) -> Result<Vec<Value>, Failure> {
        let mut wire: Vec<(&str, Vec<Value>)> = Vec::with_capacity(messages.len());
        for message in messages {
            let (role, parts) = match message.role {
                Role::User | Role::Tool => ("user", self.heard(&message.blocks)?),
                Role::Assistant => ("model", self.said(&message.blocks)),
            };
            match wire.last_mut() {
                _ if parts.is_empty() => {}
                Some((last, before)) if *last == role => before.extend(parts),
                _ => wire.push((role, parts)),
            }
        }
        Ok(wire.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect())
    }

    /// The results that the model waits for first, then what people said, and all that is shown.
    fn heard(&self, blocks: &[Block]) -> Result<Vec<Value>, Failure> {
        let mut parts: Vec<Value> = blocks.iter().filter_map(|block| self.result(block)).collect();
        for block in blocks {
            match block {
                Block::Text { text } if !text.is_empty() => parts.push(json!({"text": text})),
                Block::Image(image) => parts.push(self.picture(image)?),
                Block::ToolResult { images, .. } => {
                    for image in images {
                        parts.push(self.picture(image)?);
                    }
                }
                Block::Text { .. } | Block::ToolCall { .. } | Block::Native { .. } => {}
            }
        }
        if parts.is_empty() && !blocks.is_empty() {
            parts.push(json!({"text": NOTHING}));
        }
        Ok(parts)
    }

    fn said(&self, blocks: &[Block]) -> Vec<Value> {
        let mut parts: Vec<Value> = Vec::with_capacity(blocks.len());
        let mut signature: Option<Value> = None;
        for block in blocks {
            let mut part = match block {
                Block::Text { text } if !text.is_empty() => json!({"text": text}),
                Block::ToolCall { id, name, arguments } => {
                    let args = schema::arguments_value(arguments);
                    json!({"functionCall": {"id": id, "name": self.names.to_wire(name), "args": args}})
                }
                Block::Native { vendor, value } if vendor == MARK => match is_bare(value) {
                    true => {
                        signature = value.get("thoughtSignature").cloned();
                        continue;
                    }
                    false => value.clone(),
                },
                Block::Text { .. } | Block::Native { .. } | Block::ToolResult { .. } | Block::Image(_) => {
                    continue;
                }
            };
            if let Some(signature) = signature.take() {
                part["thoughtSignature"] = signature;
            }
            parts.push(part);
        }
        // A call of the model is signed on the first of those that it made at once.
        let first = parts.iter_mut().find(|part| part.get("functionCall").is_some());
        if let Some(first) = first.filter(|first| self.signs && first.get("thoughtSignature").is_none()) {
            first["thoughtSignature"] = FOREIGN.into();
        }
        parts
    }

    fn result(&self, block: &Block) -> Option<Value> {
        let Block::ToolResult { call_id, name, content, is_error, .. } = block else { return None };
        let response = if *is_error { json!({"error": content}) } else { json!({"output": content}) };
        let name = self.names.to_wire(name);
        Some(json!({"functionResponse": {"id": call_id, "name": name, "response": response}}))
    }

    fn picture(&self, image: &Image) -> Result<Value, Failure> {
        if !IMAGES.contains(&image.media_type.as_str()) {
            return Err(failure::image_refused(self.endpoint, &image.media_type));
        }
        Ok(json!({"inlineData": {"mimeType": image.media_type, "data": image.data}}))
    }
}

/// A signature that belongs to the part behind it, and no part of its own.
fn is_bare(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("thoughtSignature"))
}

fn tool(offer: &ToolOffer, names: &ToolNames) -> Value {
    json!({
        "name": names.to_wire(&offer.name),
        "description": offer.description,
        "parametersJsonSchema": schema::parameters(&offer.schema),
    })
}
