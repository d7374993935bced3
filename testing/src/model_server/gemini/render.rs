//! An answer as candidates of parts, whole and piece by piece.

use serde_json::{Value, json};

use super::wants_signatures;
use crate::model_server::completion::Completion;
use crate::model_server::events::{EventWriter, Events, pieces};
use crate::model_server::script::{Finish, Usage};
use crate::model_server::signature;

/// How many characters a chunk carries unless told otherwise.
const CHUNK: usize = 24;

pub(super) fn whole(completion: &Completion<'_>) -> Vec<u8> {
    let mut parts: Vec<_> = thoughts(completion, usize::MAX).collect();
    if let Some(text) = completion.text.as_deref().filter(|text| !text.is_empty()) {
        let mut part = json!({ "text": text });
        if let Some(signature) = text_signature(completion) {
            part["thoughtSignature"] = json!(signature);
        }
        parts.push(part);
    }
    parts.extend(calls(completion));
    chunk(completion, &parts, true).to_string().into_bytes()
}

pub(super) fn stream(completion: &Completion<'_>, size: Option<usize>) -> Events {
    let size = size.unwrap_or(CHUNK);
    let mut writer = EventWriter::default();
    for part in thoughts(completion, size) {
        writer.data(&chunk(completion, &[part], false));
    }
    let before = writer.len();
    for piece in pieces(completion.text.as_deref().unwrap_or_default(), size) {
        writer.data(&chunk(completion, &[json!({ "text": piece })], false));
    }
    writer.text_ends(before);
    for call in calls(completion) {
        let before = writer.len();
        writer.data(&chunk(completion, &[call], false));
        writer.arguments_end(before);
    }
    let mut last = json!({ "text": "" });
    if let Some(signature) = text_signature(completion) {
        last["thoughtSignature"] = json!(signature);
    }
    writer.data(&chunk(completion, &[last], true));
    writer.finish()
}

fn thoughts<'c>(completion: &'c Completion<'_>, size: usize) -> impl Iterator<Item = Value> + 'c {
    let shown =
        completion.thinking.as_ref().filter(|thinking| completion.wishes.thinking && !thinking.redacted);
    let text = shown.map(|thinking| &*thinking.text).unwrap_or_default();
    pieces(text, size).map(|piece| json!({ "text": piece, "thought": true }))
}

/// Where no call carries it, the text does.
fn text_signature(completion: &Completion<'_>) -> Option<String> {
    let thinking = completion.thinking.as_ref().filter(|_| completion.calls.is_empty());
    thinking.map(|thinking| signature::of(&thinking.text))
}

/// The calls that can be read; the first one carries the signature of the step.
fn calls<'c>(completion: &'c Completion<'_>) -> impl Iterator<Item = Value> + 'c {
    let signs = completion.thinking.is_some() || wants_signatures(&completion.model);
    completion.calls.iter().enumerate().filter_map(move |(nth, call)| {
        let args: Value = serde_json::from_str(&call.arguments).ok()?;
        let mut part = json!({ "functionCall": { "name": call.name, "args": args, "id": call.id } });
        if signs && nth == 0 {
            part["thoughtSignature"] = json!(signature::of(&call.name));
        }
        Some(part)
    })
}

fn chunk(completion: &Completion<'_>, parts: &[Value], is_last: bool) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if is_last {
        let reason = finish_reason(completion);
        candidate["finishReason"] = json!(reason);
        match reason {
            "SAFETY" => {
                let rating = json!({ "category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": true });
                candidate["safetyRatings"] = json!([rating]);
            }
            "PROHIBITED_CONTENT" => {
                candidate["finishMessage"] = json!(completion.refusal);
                candidate.as_object_mut().map(|fields| fields.remove("content"));
            }
            "MALFORMED_FUNCTION_CALL" => {
                let raw = completion.calls.first().map(|call| &*call.arguments);
                candidate["finishMessage"] =
                    json!(format!("Malformed function call: {}", raw.unwrap_or_default()));
            }
            _ => {}
        }
    }
    let mut body = json!({
        "candidates": [candidate],
        "modelVersion": completion.model,
        "responseId": completion.id,
    });
    if let Some(usage) = completion.usage {
        body["usageMetadata"] = usage_report(usage);
    }
    body
}

fn finish_reason(completion: &Completion<'_>) -> &'static str {
    let malformed =
        completion.calls.iter().any(|call| serde_json::from_str::<Value>(&call.arguments).is_err());
    match completion.finish {
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
        Finish::Refusal => "PROHIBITED_CONTENT",
        Finish::Stop | Finish::ToolCalls | Finish::Pause if malformed => "MALFORMED_FUNCTION_CALL",
        Finish::Stop | Finish::ToolCalls | Finish::Pause => "STOP",
    }
}

/// The vendor counts thoughts apart from the answer; the cached tokens are among those of the prompt.
fn usage_report(usage: Usage) -> Value {
    let Usage { prompt_tokens, completion_tokens, cache_read, reasoning, .. } = usage;
    let mut report = json!({
        "promptTokenCount": prompt_tokens,
        "candidatesTokenCount": completion_tokens.saturating_sub(reasoning),
        "totalTokenCount": prompt_tokens.saturating_add(completion_tokens),
        "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": prompt_tokens }],
    });
    if reasoning > 0 {
        report["thoughtsTokenCount"] = json!(reasoning);
    }
    if cache_read > 0 {
        report["cachedContentTokenCount"] = json!(cache_read);
        report["cacheTokensDetails"] = json!([{ "modality": "TEXT", "tokenCount": cache_read }]);
    }
    report
}
