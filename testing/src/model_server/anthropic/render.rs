//! An answer as a message, and as the events that build one.

use serde_json::{Value, json};

use crate::model_server::completion::{Completion, MadeCall};
use crate::model_server::events::{EventWriter, Events, pieces};
use crate::model_server::script::{Finish, Usage};
use crate::model_server::signature;

/// How many characters a delta carries unless told otherwise.
const DELTA: usize = 8;

pub(super) fn whole(completion: &Completion<'_>) -> Vec<u8> {
    let mut message = message(completion);
    message["content"] = contents(completion).iter().map(Content::block).collect();
    message["stop_reason"] = json!(stop_reason(completion.finish));
    message["stop_details"] = stop_details(completion);
    if let Some(usage) = completion.usage {
        message["usage"] = usage_report(usage);
    }
    message.to_string().into_bytes()
}

pub(super) fn stream(completion: &Completion<'_>, size: Option<usize>) -> Events {
    let size = size.unwrap_or(DELTA);
    let mut writer = EventWriter::default();
    let mut start = message(completion);
    start["content"] = json!([]);
    if let Some(usage) = completion.usage {
        start["usage"] = usage_report(Usage { completion_tokens: 1, reasoning: 0, ..usage });
    }
    writer.typed(&json!({ "type": "message_start", "message": start }));
    for (index, content) in contents(completion).iter().enumerate() {
        writer.typed(
            &json!({ "type": "content_block_start", "index": index, "content_block": content.empty() }),
        );
        if index == 0 {
            writer.typed(&json!({ "type": "ping" }));
        }
        let before = writer.len();
        for delta in content.deltas(size) {
            writer.typed(&json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        match content {
            Content::Text(_) => writer.text_ends(before),
            Content::Call(_) => writer.arguments_end(before),
            Content::Thinking { .. } | Content::Redacted(_) | Content::Paused(_) => {}
        }
        writer.typed(&json!({ "type": "content_block_stop", "index": index }));
    }
    end(&mut writer, completion);
    writer.finish()
}

fn end(writer: &mut EventWriter, completion: &Completion<'_>) {
    let delta = json!({
        "stop_reason": stop_reason(completion.finish),
        "stop_sequence": null,
        "stop_details": stop_details(completion),
    });
    let mut event = json!({ "type": "message_delta", "delta": delta });
    if let Some(usage) = completion.usage {
        let mut report = usage_report(usage);
        // The whole picture is told at the start; here are the totals.
        for name in ["cache_creation", "service_tier"] {
            report.as_object_mut().map(|fields| fields.remove(name));
        }
        event["usage"] = report;
    }
    writer.typed(&event);
    writer.typed(&json!({ "type": "message_stop" }));
}

/// One block of an answer.
enum Content<'c> {
    Thinking {
        shown: &'c str,
        signature: String,
    },
    Redacted(String),
    Text(&'c str),
    Call(&'c MadeCall),
    /// A tool of the vendor's own that it was interrupted in.
    Paused(String),
}

fn contents<'c>(completion: &'c Completion<'_>) -> Vec<Content<'c>> {
    let thinking = completion.thinking.as_ref().map(|thinking| {
        let signature = signature::of(&thinking.text);
        let shown = if completion.wishes.thinking { &*thinking.text } else { "" };
        if thinking.redacted { Content::Redacted(signature) } else { Content::Thinking { shown, signature } }
    });
    let text = completion.text.as_deref().filter(|text| !text.is_empty()).map(Content::Text);
    let paused = (completion.finish == Finish::Pause).then(|| Content::Paused(completion.id.clone()));
    let calls = completion.calls.iter().map(Content::Call);
    thinking.into_iter().chain(text).chain(calls).chain(paused).collect()
}

impl Content<'_> {
    fn block(&self) -> Value {
        match self {
            Content::Thinking { shown, signature } => {
                json!({ "type": "thinking", "thinking": shown, "signature": signature })
            }
            Content::Redacted(data) => json!({ "type": "redacted_thinking", "data": data }),
            Content::Text(text) => json!({ "type": "text", "text": text, "citations": null }),
            Content::Call(call) => {
                let input = match call.arguments.as_str() {
                    "" => json!({}),
                    // What is no JSON at all can only travel as a text.
                    arguments => serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments)),
                };
                tool_use(call, input)
            }
            Content::Paused(id) => json!({
                "type": "server_tool_use", "id": format!("srvtoolu_{id}"), "name": "web_search", "input": {},
            }),
        }
    }

    /// The block as it stands before its first delta.
    fn empty(&self) -> Value {
        match self {
            Content::Thinking { .. } => json!({ "type": "thinking", "thinking": "", "signature": "" }),
            Content::Text(_) => json!({ "type": "text", "text": "", "citations": null }),
            Content::Call(call) => tool_use(call, json!({})),
            Content::Redacted(_) | Content::Paused(_) => self.block(),
        }
    }

    fn deltas(&self, size: usize) -> Vec<Value> {
        match self {
            Content::Thinking { shown, signature } => {
                let words = pieces(shown, size);
                let words = words.map(|piece| json!({ "type": "thinking_delta", "thinking": piece }));
                words.chain([json!({ "type": "signature_delta", "signature": signature })]).collect()
            }
            Content::Text(text) => {
                pieces(text, size).map(|piece| json!({ "type": "text_delta", "text": piece })).collect()
            }
            Content::Call(call) => {
                let arguments = pieces(&call.arguments, size);
                let arguments = std::iter::once("").chain(arguments);
                arguments.map(|piece| json!({ "type": "input_json_delta", "partial_json": piece })).collect()
            }
            Content::Redacted(_) | Content::Paused(_) => Vec::new(),
        }
    }
}

fn tool_use(call: &MadeCall, input: Value) -> Value {
    json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input, "caller": { "type": "direct" } })
}

fn message(completion: &Completion<'_>) -> Value {
    json!({
        "id": format!("msg_{}", completion.id),
        "type": "message",
        "role": "assistant",
        "model": completion.model,
        "stop_reason": null,
        "stop_sequence": null,
    })
}

const fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::ToolCalls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::ContentFilter | Finish::Refusal => "refusal",
        Finish::Pause => "pause_turn",
    }
}

fn stop_details(completion: &Completion<'_>) -> Value {
    match completion.finish {
        Finish::ContentFilter | Finish::Refusal => {
            json!({ "type": "refusal", "category": "general_harms", "explanation": completion.refusal })
        }
        Finish::Stop | Finish::ToolCalls | Finish::Length | Finish::Pause => Value::Null,
    }
}

/// The vendor counts what is cached apart from the rest of the request.
fn usage_report(usage: Usage) -> Value {
    let Usage { prompt_tokens, completion_tokens, cache_read, cache_write, reasoning } = usage;
    json!({
        "input_tokens": prompt_tokens.saturating_sub(cache_read).saturating_sub(cache_write),
        "cache_creation_input_tokens": cache_write,
        "cache_read_input_tokens": cache_read,
        "cache_creation": { "ephemeral_5m_input_tokens": cache_write, "ephemeral_1h_input_tokens": 0 },
        "output_tokens": completion_tokens,
        "output_tokens_details": { "thinking_tokens": reasoning },
        "service_tier": "standard",
    })
}
