//! An answer as a response of items, and as the typed events that build one.

use serde_json::{Value, json};

use crate::model_server::chat::CREATED;
use crate::model_server::completion::Completion;
use crate::model_server::events::{EventWriter, Events, pieces};
use crate::model_server::script::{Finish, Usage};
use crate::model_server::signature;

/// How many characters a delta carries unless told otherwise.
const DELTA: usize = 8;

pub(super) fn whole(completion: &Completion<'_>) -> Vec<u8> {
    finished(completion).to_string().into_bytes()
}

pub(super) fn stream(completion: &Completion<'_>, size: Option<usize>) -> Events {
    let mut stream = Stream { writer: EventWriter::default(), n_sent: 0, size: size.unwrap_or(DELTA) };
    let begun = response(completion, "in_progress");
    stream.send("response.created", json!({ "response": begun }));
    stream.send("response.in_progress", json!({ "response": begun }));
    for (index, item) in items(completion).iter().enumerate() {
        stream.item(index, item);
    }
    let response = finished(completion);
    let name = format!("response.{}", response["status"].as_str().unwrap_or_default());
    stream.send(&name, json!({ "response": response }));
    stream.writer.finish()
}

/// What a stream ends with that fails.
pub(super) fn failure() -> Vec<u8> {
    let message = "The server had an error processing your request.";
    let error = json!({
        "type": "error", "code": "server_error", "message": message, "param": null, "sequence_number": 999,
    });
    let response = json!({
        "id": "resp_failed", "object": "response", "created_at": CREATED, "status": "failed", "model": "scripted",
        "error": { "code": "server_error", "message": message }, "output": [], "parallel_tool_calls": true,
        "tool_choice": "auto", "tools": [],
    });
    let failed = json!({ "type": "response.failed", "response": response, "sequence_number": 1000 });
    format!("event: error\ndata: {error}\n\nevent: response.failed\ndata: {failed}\n\n").into_bytes()
}

struct Stream {
    writer: EventWriter,
    n_sent: u64,
    size: usize,
}

impl Stream {
    fn send(&mut self, name: &str, mut event: Value) {
        event["type"] = json!(name);
        event["sequence_number"] = json!(self.n_sent);
        self.n_sent += 1;
        self.writer.typed(&event);
    }

    fn item(&mut self, index: usize, item: &Value) {
        let id = &item["id"];
        let place = json!({ "output_index": index, "item_id": id });
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        match item["type"].as_str() {
            Some("message") => begun["content"] = json!([]),
            Some("function_call") => begun["arguments"] = json!(""),
            _ => {
                begun["summary"] = json!([]);
                begun.as_object_mut().map(|fields| fields.remove("status"));
            }
        }
        self.send("response.output_item.added", json!({ "output_index": index, "item": begun }));
        match item["type"].as_str() {
            Some("message") => self.message(&place, &item["content"][0]),
            Some("function_call") => self.call(&place, item),
            _ => self.summary(&place, &item["summary"][0]),
        }
        self.send("response.output_item.done", json!({ "output_index": index, "item": item }));
    }

    fn message(&mut self, place: &Value, part: &Value) {
        let place = with(place, &json!({ "content_index": 0 }));
        let (kind, field) = match part["type"].as_str() {
            Some("refusal") => ("refusal", "refusal"),
            _ => ("output_text", "text"),
        };
        let text = part[field].as_str().unwrap_or_default();
        let mut empty = part.clone();
        empty[field] = json!("");
        self.send("response.content_part.added", with(&place, &json!({ "part": empty })));
        let logprobs = if kind == "refusal" { json!({}) } else { json!({ "logprobs": [] }) };
        let before = self.writer.len();
        for piece in pieces(text, self.size) {
            let delta = with(&with(&place, &logprobs), &json!({ "delta": piece }));
            self.send(&format!("response.{kind}.delta"), delta);
        }
        self.writer.text_ends(before);
        let done = with(&with(&place, &logprobs), &json!({ field: text }));
        self.send(&format!("response.{kind}.done"), done);
        self.send("response.content_part.done", with(&place, &json!({ "part": part })));
    }

    fn call(&mut self, place: &Value, item: &Value) {
        let before = self.writer.len();
        for piece in pieces(item["arguments"].as_str().unwrap_or_default(), self.size) {
            self.send("response.function_call_arguments.delta", with(place, &json!({ "delta": piece })));
        }
        self.writer.arguments_end(before);
        let done = json!({ "arguments": item["arguments"], "name": item["name"] });
        self.send("response.function_call_arguments.done", with(place, &done));
    }

    fn summary(&mut self, place: &Value, part: &Value) {
        let Some(text) = part["text"].as_str() else { return };
        let place = with(place, &json!({ "summary_index": 0 }));
        let empty = json!({ "part": { "type": "summary_text", "text": "" } });
        self.send("response.reasoning_summary_part.added", with(&place, &empty));
        for piece in pieces(text, self.size) {
            let delta = with(&place, &json!({ "delta": piece }));
            self.send("response.reasoning_summary_text.delta", delta);
        }
        self.send("response.reasoning_summary_text.done", with(&place, &json!({ "text": text })));
        self.send("response.reasoning_summary_part.done", with(&place, &json!({ "part": part })));
    }
}

/// An object with the fields of another one added.
fn with(fields: &Value, more: &Value) -> Value {
    let both = [fields, more].into_iter().filter_map(Value::as_object).flatten();
    both.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn items(completion: &Completion<'_>) -> Vec<Value> {
    let mut items = Vec::new();
    let status = if is_incomplete(completion.finish) { "incomplete" } else { "completed" };
    if let Some(thinking) = &completion.thinking {
        let shown = completion.wishes.thinking && !thinking.redacted;
        let summary = shown.then(|| json!({ "type": "summary_text", "text": thinking.text }));
        let mut item = json!({
            "id": format!("rs_{}", completion.id), "type": "reasoning", "summary": summary.as_slice(),
        });
        if completion.wishes.encrypted_reasoning {
            item["encrypted_content"] = json!(signature::of(&thinking.text));
        }
        items.push(item);
    }
    let text = completion.text.as_deref().filter(|text| !text.is_empty());
    let said =
        text.map(|text| json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }));
    let refused = completion.refusal.as_ref().map(|refusal| json!({ "type": "refusal", "refusal": refusal }));
    items.extend(said.or(refused).map(|part| {
        json!({
            "id": format!("msg_{}", completion.id), "type": "message", "role": "assistant",
            "status": status, "content": [part],
        })
    }));
    items.extend(completion.calls.iter().map(|call| {
        let id = format!("fc_{}", call.id.trim_start_matches("call_"));
        json!({
            "id": id, "type": "function_call", "call_id": call.id, "name": call.name,
            "arguments": call.arguments, "status": status,
        })
    }));
    items
}

const fn is_incomplete(finish: Finish) -> bool {
    matches!(finish, Finish::Length | Finish::ContentFilter)
}

fn finished(completion: &Completion<'_>) -> Value {
    let is_incomplete = is_incomplete(completion.finish);
    let mut response = response(completion, if is_incomplete { "incomplete" } else { "completed" });
    response["output"] = json!(items(completion));
    if is_incomplete {
        let filtered = completion.finish == Finish::ContentFilter;
        let reason = if filtered { "content_filter" } else { "max_output_tokens" };
        response["incomplete_details"] = json!({ "reason": reason });
    }
    response["usage"] = completion.usage.map_or(Value::Null, usage_report);
    response
}

fn response(completion: &Completion<'_>, status: &str) -> Value {
    json!({
        "id": format!("resp_{}", completion.id),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "model": completion.model,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "metadata": {},
        "output": [],
        "parallel_tool_calls": true,
        "tool_choice": "auto",
        "tools": [],
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": null,
    })
}

fn usage_report(usage: Usage) -> Value {
    let Usage { prompt_tokens, completion_tokens, cache_read, cache_write, reasoning } = usage;
    json!({
        "input_tokens": prompt_tokens,
        "input_tokens_details": { "cached_tokens": cache_read, "cache_write_tokens": cache_write },
        "output_tokens": completion_tokens,
        "output_tokens_details": { "reasoning_tokens": reasoning },
        "total_tokens": prompt_tokens.saturating_add(completion_tokens),
    })
}
