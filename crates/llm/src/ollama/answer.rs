//! One answer, put together from lines; an answer in one piece looks like the last of them.

use ostler_kernel::{Failure, step::Usage};
use serde::Deserialize;
use serde_json::{Number, Value, json};

use crate::{
    Finish,
    call::{Peer, Reading},
    draft::{Draft, PartialCall, Piece},
    error,
    nulls::null_as_default,
};

#[derive(Default)]
pub(super) struct Answer {
    /// Where the draft has the thinking.
    thinking: Option<usize>,
    text: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    #[serde(deserialize_with = "null_as_default")]
    message: Said,
    #[serde(deserialize_with = "null_as_default")]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<Number>,
    eval_count: Option<Number>,
    model: Value,
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    #[serde(deserialize_with = "null_as_default")]
    content: String,
    thinking: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Call {
    #[serde(deserialize_with = "null_as_default")]
    id: String,
    #[serde(deserialize_with = "null_as_default")]
    function: Function,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Function {
    #[serde(deserialize_with = "null_as_default")]
    name: String,
    arguments: Value,
}

impl Reading for Answer {
    fn take(&mut self, peer: &Peer, draft: &mut Draft, json: &[u8]) -> Result<(), Failure> {
        let line: Line = peer.read(json)?;
        if let Some(error) = &line.error {
            return Err(error::in_answer(peer, error));
        }
        // It has no names for its answers.
        draft.identify(None, Some(&line.model));
        self.take_said(draft, line.message);
        if line.done {
            draft.finish = Some(match line.done_reason.as_deref() {
                Some("length") => Finish::Length,
                _ => Finish::Stop,
            });
            let count = |number: Option<Number>| number.and_then(|number| number.as_u64());
            draft.usage = count(line.prompt_eval_count).zip(count(line.eval_count)).map(|(input, output)| {
                Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
            });
            draft.is_closed = true;
        }
        Ok(())
    }
}

impl Answer {
    fn take_said(&mut self, draft: &mut Draft, said: Said) {
        if let Some(thinking) = said.thinking.filter(|thinking| !thinking.is_empty()) {
            draft.think(&thinking);
            let open = self.thinking.and_then(|place| draft.native_at(place, thinking.len()));
            match open.and_then(|open| open.get_mut("thinking")) {
                Some(Value::String(before)) => before.push_str(&thinking),
                _ => self.thinking = Some(draft.push(Piece::Native(json!({"thinking": thinking})))),
            }
        }
        if !said.content.is_empty() {
            match self.text {
                Some(place) => draft.say_at(place, &said.content),
                None => self.text = Some(draft.push(Piece::Text(said.content))),
            }
        }
        for Call { id, function: Function { name, arguments } } in said.tool_calls.unwrap_or_default() {
            let arguments = match arguments {
                Value::String(text) => text,
                Value::Null => "{}".to_owned(),
                other => other.to_string(),
            };
            draft.push(Piece::Call(PartialCall { id, name, arguments }));
        }
    }
}

#[cfg(test)]
mod tests {
    use ostler_kernel::Block;

    use super::*;
    use crate::{Completion, Part, draft::put_together};

    fn read(lines: &[Value]) -> Result<(Vec<Part>, Completion), Failure> {
        put_together("ollama", Answer::default(), &[], 1 << 20, lines)
    }

    #[test]
    fn thinking_text_and_calls_are_put_together() {
        let line = |message: Value| json!({"model": "m", "message": message, "done": false});
        let lines = [
            line(json!({"role": "assistant", "content": "", "thinking": "I "})),
            line(json!({"role": "assistant", "content": "", "thinking": "see"})),
            line(json!({"role": "assistant", "content": "Let me "})),
            line(json!({"role": "assistant", "content": "look"})),
            line(json!({"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "t", "arguments": {"q": 1}}}, {"function": {"name": "u", "arguments": {}}}]})),
            json!({"model": "m", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop",
                "prompt_eval_count": 7, "eval_count": 3}),
        ];
        let (shown, completion) = read(&lines).unwrap();
        let call = |id: &str, name: &str, arguments: &str| Block::ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        let expected = [
            Block::Native { vendor: "ollama".into(), value: json!({"thinking": "I see"}) },
            Block::Text { text: "Let me look".into() },
            call("call_0", "t", "{\"q\":1}"),
            call("call_1", "u", "{}"),
        ];
        assert_eq!((completion.blocks.as_slice(), completion.finish), (&expected[..], Finish::ToolCalls));
        assert_eq!(completion.usage.unwrap().total(), 10);
        assert_eq!(shown.len(), 4);
    }

    #[test]
    fn an_error_may_come_in_the_middle() {
        let lines = [json!({"message": {"content": "Hel"}}), json!({"error": "the runner has died"})];
        assert_eq!(read(&lines).unwrap_err().code, "model_server_error");
        let end = json!({"message": {"content": "x"}, "done": true, "done_reason": "length"});
        let (_, completion) = read(&[end]).unwrap();
        assert_eq!((completion.finish, completion.usage), (Finish::Length, None));
    }
}
