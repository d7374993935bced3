//! An answer as one object, and as lines that each carry a piece.

use serde_json::{Value, json};

use crate::model_server::completion::Completion;
use crate::model_server::events::{EventWriter, Events, pieces};
use crate::model_server::script::Finish;

/// How many characters a line carries unless told otherwise.
const LINE: usize = 8;

pub(super) fn whole(completion: &Completion<'_>) -> Vec<u8> {
    let mut message = json!({ "role": "assistant", "content": said(completion) });
    if let Some(thinking) = thinking(completion) {
        message["thinking"] = json!(thinking);
    }
    let calls: Vec<_> = calls(completion).collect();
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    last(completion, message).to_string().into_bytes()
}

pub(super) fn stream(completion: &Completion<'_>, size: Option<usize>) -> Events {
    let size = size.unwrap_or(LINE);
    let mut writer = EventWriter::default();
    for piece in pieces(thinking(completion).unwrap_or_default(), size) {
        let message = json!({ "role": "assistant", "content": "", "thinking": piece });
        writer.line(&line(completion, message));
    }
    let before = writer.len();
    for piece in pieces(said(completion), size) {
        writer.line(&line(completion, json!({ "role": "assistant", "content": piece })));
    }
    writer.text_ends(before);
    for call in calls(completion) {
        let before = writer.len();
        writer.line(&line(completion, json!({ "role": "assistant", "content": "", "tool_calls": [call] })));
        writer.arguments_end(before);
    }
    writer.line(&last(completion, json!({ "role": "assistant", "content": "" })));
    writer.finish()
}

/// A refusal is only words here.
fn said<'c>(completion: &'c Completion<'_>) -> &'c str {
    completion.text.as_deref().or(completion.refusal.as_deref()).unwrap_or_default()
}

fn thinking<'c>(completion: &'c Completion<'_>) -> Option<&'c str> {
    let shown =
        completion.thinking.as_ref().filter(|thinking| completion.wishes.thinking && !thinking.redacted);
    shown.map(|thinking| &*thinking.text)
}

/// The calls that the vendor can read; it shows no others.
fn calls<'c>(completion: &'c Completion<'_>) -> impl Iterator<Item = Value> + 'c {
    completion.calls.iter().enumerate().filter_map(|(index, call)| {
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        let function = json!({ "index": index, "name": call.name, "arguments": arguments });
        Some(json!({ "id": call.id, "function": function }))
    })
}

fn line(completion: &Completion<'_>, message: Value) -> Value {
    json!({
        "model": completion.model,
        "created_at": "2023-11-14T22:13:20Z",
        "message": message,
        "done": false,
    })
}

fn last(completion: &Completion<'_>, message: Value) -> Value {
    let mut last = line(completion, message);
    last["done"] = json!(true);
    last["done_reason"] = json!(if completion.finish == Finish::Length { "length" } else { "stop" });
    for name in ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"] {
        last[name] = json!(1_000_000);
    }
    if let Some(usage) = completion.usage {
        last["prompt_eval_count"] = json!(usage.prompt_tokens);
        last["eval_count"] = json!(usage.completion_tokens);
    }
    last
}
