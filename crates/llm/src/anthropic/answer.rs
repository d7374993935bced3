//! One answer, put together from the events of a stream. A whole answer has the same blocks at once.

use std::collections::BTreeMap;

use ostler_kernel::{Failure, step::Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Finish,
    call::{Peer, Reading},
    draft::{Draft, PartialCall, Piece},
    error,
};

#[derive(Default)]
pub(super) struct Answer {
    /// Where the draft has the block of an index.
    places: BTreeMap<u64, usize>,
    /// The input of blocks that are no calls of ours, as far as it has come.
    inputs: BTreeMap<u64, String>,
    counts: Counts,
}

/// Cumulative: what comes later counts.
#[derive(Default)]
struct Counts {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: u64,
    cache_write: u64,
    thinking: u64,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Value,
    },
    ContentBlockStart {
        index: u64,
        content_block: Value,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: Value,
        #[serde(default)]
        usage: Value,
    },
    MessageStop,
    Error {
        error: Value,
    },
    /// An answer in one piece.
    Message {
        content: Vec<Value>,
        #[serde(flatten)]
        end: Value,
    },
    /// Pings, and what may come to be.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(other)]
    Other,
}

impl Reading for Answer {
    fn take(&mut self, peer: &Peer, draft: &mut Draft, json: &[u8]) -> Result<(), Failure> {
        let event: Event = peer.read(json)?;
        match event {
            Event::MessageStart { message } => {
                self.counts.take(&message["usage"]);
                draft.usage = self.counts.usage();
                draft.identify(message.get("id"), message.get("model"));
            }
            Event::ContentBlockStart { index, content_block } => self.begin(draft, index, content_block),
            Event::ContentBlockDelta { index, delta } => self.go_on(draft, index, delta),
            Event::ContentBlockStop { index } => self.close(draft, index),
            Event::MessageDelta { delta, usage } => self.end(draft, &delta, &usage),
            Event::MessageStop => draft.is_closed = true,
            Event::Error { error } => return Err(error::in_answer(peer, &error)),
            Event::Message { content, end } => {
                for (index, block) in (0..).zip(content) {
                    if let Some(thinking) = block.get("thinking").and_then(Value::as_str) {
                        draft.think(thinking);
                    }
                    self.begin(draft, index, block);
                }
                draft.identify(end.get("id"), end.get("model"));
                self.end(draft, &end, &end["usage"]);
            }
            Event::Other => {}
        }
        Ok(())
    }
}

impl Answer {
    fn begin(&mut self, draft: &mut Draft, index: u64, mut block: Value) {
        let mut word = |name: &str| match block.get_mut(name).map(Value::take) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let piece = match word("type").as_str() {
            "text" => Piece::Text(word("text")),
            "tool_use" => {
                let (id, name) = (word("id"), word("name"));
                // A stream begins with an empty object, and then gives the text of the real one.
                let input =
                    block.get("input").filter(|input| input.as_object().is_some_and(|it| !it.is_empty()));
                let arguments = input.map(Value::to_string).unwrap_or_default();
                Piece::Call(PartialCall { id, name, arguments })
            }
            kind => {
                block["type"] = kind.into();
                Piece::Native(block)
            }
        };
        self.places.insert(index, draft.push(piece));
    }

    fn go_on(&mut self, draft: &mut Draft, index: u64, delta: Delta) {
        let Some(place) = self.places.get(&index).copied() else { return };
        match delta {
            Delta::Text { text } => draft.say_at(place, &text),
            Delta::Thinking { thinking } => {
                draft.think(&thinking);
                append(draft.native_at(place, thinking.len()), "thinking", &thinking);
            }
            Delta::Signature { signature } => {
                append(draft.native_at(place, signature.len()), "signature", &signature);
            }
            Delta::InputJson { partial_json } => match draft.call_at(place, partial_json.len()) {
                Some(call) => call.arguments.push_str(&partial_json),
                None => self.inputs.entry(index).or_default().push_str(&partial_json),
            },
            Delta::Other => {}
        }
    }

    fn close(&mut self, draft: &mut Draft, index: u64) {
        let input = self.inputs.remove(&index).and_then(|input| serde_json::from_str::<Value>(&input).ok());
        let place = self.places.get(&index);
        if let (Some(input), Some(block)) = (input, place.and_then(|place| draft.native_at(*place, 0))) {
            block["input"] = input;
        }
    }

    fn end(&mut self, draft: &mut Draft, end: &Value, usage: &Value) {
        self.counts.take(usage);
        draft.usage = self.counts.usage();
        let Some(reason) = end["stop_reason"].as_str() else { return };
        let finish = match reason {
            "tool_use" => Finish::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "refusal" => Finish::Refusal,
            "pause_turn" => Finish::Pause,
            // `end_turn`, `stop_sequence`, and whatever else an ordinary end may come to be called.
            _ => Finish::Stop,
        };
        let why = end["stop_details"]["explanation"].as_str().filter(|_| finish == Finish::Refusal);
        if let Some(why) = why {
            draft.push(Piece::Native(json!({"refusal": why})));
        }
        draft.finish = Some(finish);
    }
}

fn append(block: Option<&mut Value>, field: &str, more: &str) {
    let Some(Value::Object(fields)) = block else { return };
    match fields.entry(field).or_insert_with(|| "".into()) {
        Value::String(text) => text.push_str(more),
        other => *other = more.into(),
    }
}

impl Counts {
    fn take(&mut self, usage: &Value) {
        let count = |name: &str| usage[name].as_u64();
        // A count that makes no sense is worse than none.
        let is_odd = |name: &str| usage.get(name).is_some_and(|count| !count.is_null() && !count.is_u64());
        self.input = count("input_tokens").or(self.input).filter(|_| !is_odd("input_tokens"));
        self.output = count("output_tokens").or(self.output).filter(|_| !is_odd("output_tokens"));
        self.cache_read = count("cache_read_input_tokens").unwrap_or(self.cache_read);
        self.cache_write = count("cache_creation_input_tokens").unwrap_or(self.cache_write);
        self.thinking = usage["output_tokens_details"]["thinking_tokens"].as_u64().unwrap_or(self.thinking);
    }

    /// The vendor counts what comes from its cache, and what goes into it, apart from the rest of the input.
    fn usage(&self) -> Option<Usage> {
        let cached = self.cache_read.saturating_add(self.cache_write);
        Some(Usage {
            input_tokens: self.input?.saturating_add(cached),
            output_tokens: self.output?,
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: self.thinking,
            ..Usage::default()
        })
    }
}

#[cfg(test)]
mod tests;
