//! One answer, put together from the typed events of a stream; an answer in one piece has the same items at once.

use std::collections::BTreeMap;

use ostler_kernel::{Failure, step::Usage};
use serde_json::{Value, json};

use crate::{
    Finish,
    call::{Peer, Reading},
    draft::{Draft, PartialCall, Piece},
    error, failure,
};

/// Where the draft has what came under which index.
#[derive(Default)]
pub(crate) struct Answer {
    places: BTreeMap<u64, Item>,
    /// Items that are there as a whole.
    n_done: usize,
}

#[derive(Default)]
struct Item {
    text: Option<usize>,
    call: Option<usize>,
    /// Text that was said so far, in bytes.
    said: usize,
}

impl Reading for Answer {
    fn take(&mut self, peer: &Peer, draft: &mut Draft, json: &[u8]) -> Result<(), Failure> {
        let event: Value = peer.read(json)?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(error::in_answer(peer, error));
        }
        let response = event.get("response").unwrap_or(&event);
        if response.get("object").is_some() || response.get("status").is_some() {
            draft.identify(response.get("id"), response.get("model"));
        }
        match event.get("type").and_then(Value::as_str) {
            Some(kind) => self.take_event(peer, draft, kind, &event),
            None if event.get("output").is_some() => self.take_end(peer, draft, &event),
            None => Err(failure::bad_answer(&peer.endpoint, "an event has no type")),
        }
    }
}

impl Answer {
    fn take_event(
        &mut self,
        peer: &Peer,
        draft: &mut Draft,
        kind: &str,
        event: &Value,
    ) -> Result<(), Failure> {
        let index = event.get("output_index").and_then(Value::as_u64).unwrap_or(0);
        let delta = event.get("delta").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "response.output_item.added" => self.begin(draft, index, &event["item"]),
            "response.output_text.delta" => self.say(draft, index, delta),
            "response.function_call_arguments.delta" => self.argue(draft, index, delta),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => draft.think(delta),
            "response.reasoning_summary_part.added" if event["summary_index"].as_u64() > Some(0) => {
                draft.think("\n\n");
            }
            "response.output_item.done" => self.finish(draft, index, &event["item"]),
            "response.completed" | "response.incomplete" | "response.failed" => {
                return self.take_end(peer, draft, &event["response"]);
            }
            "error" => return Err(error::in_answer(peer, event)),
            // Created, in progress, parts of an item that its end repeats.
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, draft: &mut Draft, index: u64, item: &Value) {
        let place = self.places.entry(index).or_default();
        match item.get("type").and_then(Value::as_str) {
            Some("function_call") if place.call.is_none() => {
                let word = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                let call =
                    PartialCall { id: word("call_id"), name: word("name"), arguments: word("arguments") };
                place.call = Some(draft.push(Piece::Call(call)));
            }
            Some("message") if place.text.is_none() => {
                if let Some(phase) = item.get("phase").filter(|phase| phase.is_string()) {
                    draft.push(Piece::Native(json!({"phase": phase})));
                }
                place.text = Some(draft.push(Piece::Text(String::new())));
            }
            // Shown as a whole when it is done.
            _ => {}
        }
    }

    fn say(&mut self, draft: &mut Draft, index: u64, delta: &str) {
        if !self.places.contains_key(&index) {
            self.begin(draft, index, &json!({"type": "message"}));
        }
        let Some(item) = self.places.get_mut(&index) else { return };
        item.said += delta.len();
        if let Some(place) = item.text {
            draft.say_at(place, delta);
        }
    }

    fn argue(&mut self, draft: &mut Draft, index: u64, delta: &str) {
        let place = self.places.get(&index).and_then(|item| item.call);
        if let Some(call) = place.and_then(|place| draft.call_at(place, delta.len())) {
            call.arguments.push_str(delta);
        }
    }

    /// The item as a whole: what it says counts, whatever was streamed of it.
    fn finish(&mut self, draft: &mut Draft, index: u64, item: &Value) {
        self.n_done += 1;
        match item.get("type").and_then(Value::as_str) {
            Some("message") => self.finish_message(draft, index, item),
            Some("function_call") => {
                self.begin(draft, index, item);
                let arguments = item.get("arguments").and_then(Value::as_str).unwrap_or_default();
                let place = self.places.get(&index).and_then(|item| item.call);
                if let Some(call) = place.and_then(|place| draft.call_at(place, 0)) {
                    arguments.clone_into(&mut call.arguments);
                }
            }
            Some(_) => {
                draft.push(Piece::Native(item.clone()));
            }
            None => {}
        }
    }

    fn finish_message(&mut self, draft: &mut Draft, index: u64, item: &Value) {
        let parts = || item.get("content").and_then(Value::as_array).into_iter().flatten();
        let whole: String = parts().filter_map(|part| part.get("text")?.as_str()).collect();
        self.begin(draft, index, item);
        let said = self.places.get(&index).map_or(0, |item| item.said);
        if let Some(rest) = whole.get(said..).filter(|rest| !rest.is_empty()) {
            self.say(draft, index, rest);
        }
        let refusal: String = parts().filter_map(|part| part.get("refusal")?.as_str()).collect();
        if !refusal.is_empty() {
            draft.push(Piece::Native(json!({"refusal": refusal})));
        }
    }

    fn take_end(&mut self, peer: &Peer, draft: &mut Draft, response: &Value) -> Result<(), Failure> {
        if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
            return Err(error::in_answer(peer, error));
        }
        let output = response.get("output").and_then(Value::as_array);
        for (index, item) in (0..).zip(output.into_iter().flatten()).skip(self.n_done) {
            self.finish(draft, index, item);
        }
        let why = response["incomplete_details"]["reason"].as_str();
        draft.finish = Some(match (response["status"].as_str(), why) {
            (Some("failed"), _) => {
                return Err(failure::bad_answer(&peer.endpoint, "it failed and doesn't say why"));
            }
            (Some("incomplete"), Some("content_filter")) => Finish::ContentFilter,
            (Some("incomplete"), _) => Finish::Length,
            _ => Finish::Stop,
        });
        draft.usage = read_usage(&response["usage"]);
        draft.is_closed = true;
        Ok(())
    }
}

fn read_usage(usage: &Value) -> Option<Usage> {
    Some(Usage {
        input_tokens: usage["input_tokens"].as_u64()?,
        output_tokens: usage["output_tokens"].as_u64()?,
        cache_read_tokens: usage["input_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0),
        cache_write_tokens: usage["input_tokens_details"]["cache_write_tokens"].as_u64().unwrap_or(0),
        reasoning_tokens: usage["output_tokens_details"]["reasoning_tokens"].as_u64().unwrap_or(0),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use ostler_kernel::Block;

    use super::*;
    use crate::{Completion, Part, draft::put_together};

    fn read(events: &[Value]) -> Result<(Vec<Part>, Completion), Failure> {
        put_together("openai-responses", Answer::default(), &[], 1 << 20, events)
    }

    fn done() -> Value {
        let usage = json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 16});
        json!({"type": "response.completed", "response": {"object": "response", "status": "completed", "error": null,
            "output": reasoned(), "usage": usage}})
    }

    fn reasoned() -> Value {
        json!([
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
             "encrypted_content": "zzz"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
             "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "t", "arguments": "{\"a\":1}"},
        ])
    }

    fn expected() -> Vec<Block> {
        let native = |value: Value| Block::Native { vendor: "openai-responses".into(), value };
        vec![
            native(reasoned()[0].clone()),
            native(json!({"phase": "commentary"})),
            Block::Text { text: "I look.".into() },
            Block::ToolCall { id: "call_1".into(), name: "t".into(), arguments: "{\"a\":1}".into() },
        ]
    }

    #[test]
    fn a_stream_and_a_whole_answer_come_to_the_same() {
        let item = |kind: &str, index: u64, item: &Value| json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item});
        let mut call = reasoned()[2].clone();
        call["arguments"] = json!("");
        let mut message = reasoned()[1].clone();
        message["content"] = json!([]);
        let events = [
            json!({"type": "response.created", "response": {"status": "in_progress", "error": null}}),
            item("added", 0, &json!({"type": "reasoning", "id": "rs_1", "summary": []})),
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"}),
            item("done", 0, &reasoned()[0]),
            item("added", 1, &message),
            json!({"type": "response.output_text.delta", "output_index": 1, "delta": "I "}),
            json!({"type": "response.output_text.delta", "output_index": 1, "delta": "look"}),
            item("done", 1, &reasoned()[1]),
            item("added", 2, &call),
            json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"a\""}),
            json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{\"a\":1}"}),
            item("done", 2, &reasoned()[2]),
            done(),
        ];
        let (shown, streamed) = read(&events).unwrap();
        let (_, whole) = read(&[done()["response"].clone()]).unwrap();
        assert_eq!(streamed.blocks, expected());
        assert_eq!(streamed, whole);
        let text = |text: &str| Part::Text(text.into());
        assert_eq!(shown, [Part::Thinking("hm".into()), text("I "), text("look"), text(".")]);
        let usage = streamed.usage.unwrap();
        assert_eq!((usage.total(), usage.cache_read_tokens, usage.reasoning_tokens), (16, 4, 5));
        assert_eq!(streamed.finish, Finish::ToolCalls);
    }

    #[test]
    fn each_end_has_its_meaning() {
        let end = |status: &str, reason: Value, output: Value| {
            json!({"type": format!("response.{status}"), "response":
                {"status": status, "incomplete_details": reason, "output": output, "usage": null}})
        };
        let finish = |event: Value| read(&[event]).unwrap().1.finish;
        assert_eq!(
            finish(end("incomplete", json!({"reason": "max_output_tokens"}), json!([]))),
            Finish::Length
        );
        assert_eq!(
            finish(end("incomplete", json!({"reason": "content_filter"}), json!([]))),
            Finish::ContentFilter
        );
        let refusal = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I can't"}]}]);
        let (_, refused) = read(&[end("completed", Value::Null, refusal)]).unwrap();
        assert_eq!((refused.finish, refused.refusal()), (Finish::Refusal, Some("I can't")));
        let failed = json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": "rate_limit_exceeded", "message": "slow down"}}});
        assert_eq!(read(&[failed]).unwrap_err().code, "model_rate_limited");
        let error = json!({"type": "error", "code": "server_error", "message": "oops"});
        assert_eq!(read(&[error]).unwrap_err().code, "model_server_error");
    }
}
