//! One answer, put together from the pieces of a stream; an answer in one piece looks the same.

use ostler_kernel::{Failure, step::Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Finish,
    call::{Peer, Reading},
    draft::{Draft, PartialCall, Piece},
    error, failure,
    nulls::null_as_default,
};

#[derive(Default)]
pub(super) struct Answer {
    /// Where the draft has the thought that goes on, if nothing else came since.
    thought: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Chunk {
    #[serde(deserialize_with = "null_as_default")]
    candidates: Vec<Candidate>,
    usage_metadata: Option<Value>,
    prompt_feedback: Value,
    response_id: Value,
    model_version: Value,
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Candidate {
    #[serde(deserialize_with = "null_as_default")]
    index: u64,
    #[serde(deserialize_with = "null_as_default")]
    content: Content,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Content {
    #[serde(deserialize_with = "null_as_default")]
    parts: Vec<Value>,
}

impl Reading for Answer {
    fn take(&mut self, peer: &Peer, draft: &mut Draft, json: &[u8]) -> Result<(), Failure> {
        let chunk: Chunk = peer.read(json)?;
        if let Some(error) = &chunk.error {
            return Err(error::in_answer(peer, error));
        }
        draft.identify(Some(&chunk.response_id), Some(&chunk.model_version));
        if let Some(usage) = &chunk.usage_metadata {
            draft.usage = read_usage(usage);
        }
        if chunk.prompt_feedback["blockReason"].is_string() {
            draft.finish = Some(Finish::ContentFilter);
        }
        for candidate in chunk.candidates.into_iter().filter(|candidate| candidate.index == 0) {
            for part in candidate.content.parts {
                self.take_part(draft, part);
            }
            if let Some(reason) = candidate.finish_reason {
                let said = candidate.finish_message.unwrap_or_default();
                draft.finish = Some(read_finish(peer, &reason, &said)?);
            }
        }
        Ok(())
    }
}

impl Answer {
    fn take_part(&mut self, draft: &mut Draft, mut part: Value) {
        if let Value::Object(fields) = &mut part {
            fields.retain(|_, value| !value.is_null());
        }
        if part.as_object().is_none_or(serde_json::Map::is_empty) {
            return;
        }
        if part["thought"] == true {
            return self.take_thought(draft, part);
        }
        self.thought = None;
        let signature = part.get("thoughtSignature").filter(|it| it.is_string()).cloned();
        let text = part.get("text").and_then(Value::as_str);
        let call = part.get("functionCall").filter(|call| call.is_object());
        let bare = signature.map(|signature| json!({"thoughtSignature": signature}));
        match (text, call) {
            (Some(""), None) if bare.is_none() => {}
            (Some(text), None) if !text.is_empty() => match bare {
                // Signed text is a part of its own, whatever was said before it.
                Some(signature) => {
                    draft.push(Piece::Native(signature));
                    draft.push(Piece::Text(text.to_owned()));
                }
                None => draft.say(text),
            },
            (_, Some(call)) => {
                if let Some(signature) = bare {
                    draft.push(Piece::Native(signature));
                }
                let word = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                let arguments = call.get("args").filter(|args| !args.is_null()).map(Value::to_string);
                let arguments = arguments.unwrap_or_else(|| "{}".to_owned());
                let call = PartialCall { id: word("id"), name: word("name"), arguments };
                draft.push(Piece::Call(call));
            }
            // An empty text with a signature, and what we have no words for.
            _ => {
                draft.push(Piece::Native(part.take()));
            }
        }
    }

    /// Unsigned thoughts are one, in however many pieces they come.
    fn take_thought(&mut self, draft: &mut Draft, part: Value) {
        let text = part["text"].as_str().unwrap_or_default().to_owned();
        draft.think(&text);
        let is_signed = part.get("thoughtSignature").is_some();
        let open = self.thought.filter(|_| !is_signed).and_then(|place| draft.native_at(place, text.len()));
        match open.and_then(|open| open.get_mut("text")) {
            Some(Value::String(before)) => before.push_str(&text),
            _ => {
                let place = draft.push(Piece::Native(part));
                self.thought = (!is_signed).then_some(place);
            }
        }
    }
}

fn read_finish(peer: &Peer, reason: &str, said: &str) -> Result<Finish, Failure> {
    Ok(match reason {
        "MAX_TOKENS" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "LANGUAGE"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Finish::ContentFilter,
        // The model tried to call a tool and failed at it, which it may not do the next time.
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => {
            return Err(failure::bad_answer(
                &peer.endpoint,
                format_args!("{reason} {}", peer.quote(said.as_bytes())),
            ));
        }
        _ => Finish::Stop,
    })
}

/// What is counted apart here is part of the output or of the input with everybody else. None if a number makes no
/// sense.
fn read_usage(usage: &Value) -> Option<Usage> {
    let count = |name: &str| match usage.get(name) {
        None | Some(Value::Null) => Some(0),
        Some(count) => count.as_u64(),
    };
    usage.get("promptTokenCount").filter(|count| !count.is_null())?;
    let thoughts = count("thoughtsTokenCount")?;
    Some(Usage {
        input_tokens: count("promptTokenCount")?.saturating_add(count("toolUsePromptTokenCount")?),
        output_tokens: count("candidatesTokenCount")?.saturating_add(thoughts),
        cache_read_tokens: count("cachedContentTokenCount")?,
        reasoning_tokens: thoughts,
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use ostler_kernel::Block;

    use super::*;
    use crate::{Completion, Part, draft::put_together};

    fn read(events: &[Value]) -> Result<(Vec<Part>, Completion), Failure> {
        put_together("gemini", Answer::default(), &[], 1 << 20, events)
    }

    fn parts(parts: Value) -> Value {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
    }

    fn end(reason: &str) -> Value {
        json!({"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 7,
            "cachedContentTokenCount": 4, "totalTokenCount": 22}})
    }

    fn native(value: Value) -> Block {
        Block::Native { vendor: "gemini".into(), value }
    }

    #[test]
    fn thoughts_are_shown_apart_and_signatures_stand_before_their_part() {
        let events = [
            parts(json!([{"text": "I ", "thought": true}])),
            parts(json!([{"text": "think", "thought": true}])),
            parts(json!([{"text": "So "}, {"text": "it is."}])),
            parts(json!([{"functionCall": {"name": "t", "args": {"q": 1}}, "thoughtSignature": "c2ln"},
                         {"functionCall": {"id": "x1", "name": "u"}}])),
            end("STOP"),
        ];
        let (shown, completion) = read(&events).unwrap();
        let call = |id: &str, name: &str, arguments: &str| Block::ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        let expected = [
            native(json!({"text": "I think", "thought": true})),
            Block::Text { text: "So it is.".into() },
            native(json!({"thoughtSignature": "c2ln"})),
            call("call_0", "t", "{\"q\":1}"),
            call("x1", "u", "{}"),
        ];
        assert_eq!(completion.blocks, expected);
        assert_eq!(shown.len(), 3, "{shown:?}");
        let usage = completion.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (10, 12));
        assert_eq!((usage.cache_read_tokens, usage.reasoning_tokens), (4, 7));
        assert_eq!(completion.finish, Finish::ToolCalls);
    }

    #[test]
    fn a_signature_at_the_end_is_kept_as_its_part() {
        let last = json!({"text": "", "thoughtSignature": "c2ln"});
        let (_, completion) =
            read(&[parts(json!([{"text": "Hi"}])), parts(json!([last])), end("STOP")]).unwrap();
        assert_eq!(completion.blocks, [Block::Text { text: "Hi".into() }, native(last)]);
    }

    #[test]
    fn every_reason_to_stop_has_its_meaning() {
        let reasons =
            [("STOP", Finish::Stop), ("MAX_TOKENS", Finish::Length), ("SAFETY", Finish::ContentFilter)];
        for (reason, finish) in reasons {
            assert_eq!(read(&[end(reason)]).unwrap().1.finish, finish, "{reason}");
        }
        let blocked =
            json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}});
        let (_, completion) = read(&[blocked]).unwrap();
        assert_eq!((completion.finish, completion.usage.unwrap().input_tokens), (Finish::ContentFilter, 3));
        assert_eq!(read(&[end("MALFORMED_FUNCTION_CALL")]).unwrap_err().code, "model_bad_answer");
        let error = json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}});
        assert_eq!(read(&[error]).unwrap_err().code, "model_overloaded");
    }
}
