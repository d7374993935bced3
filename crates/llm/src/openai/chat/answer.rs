//! One answer, put together from the events of a stream.

use ostler_kernel::{Failure, step::Usage};
use serde_json::{Map, Number, Value};

use super::chunk::{CallDelta, Chunk, Delta, WireUsage};
use crate::{
    Finish,
    call::{Peer, Reading},
    draft::{Draft, PartialCall, Piece},
    error,
};

/// Fields in which servers stream what a model thinks. They go back with the rest of what only they know.
const THINKING: [&str; 2] = ["reasoning_content", "reasoning"];

/// An answer as far as it has come, beside its draft.
#[derive(Default)]
pub(crate) struct Answer {
    /// Where the draft has the text.
    text: Option<usize>,
    calls: Vec<OpenCall>,
    extras: Map<String, Value>,
    /// The server may not say why its answer ends.
    may_lack_reason: bool,
}

struct OpenCall {
    index: Option<u64>,
    /// Where the draft has it.
    place: usize,
}

impl Reading for Answer {
    fn take(&mut self, peer: &Peer, draft: &mut Draft, json: &[u8]) -> Result<(), Failure> {
        let chunk: Chunk = peer.read(json)?;
        if let Some(error) = &chunk.error {
            return Err(error::in_answer(peer, error));
        }
        draft.identify(Some(&chunk.id), Some(&chunk.model));
        if let Some(usage) = chunk.usage {
            draft.usage = read_usage(&usage);
        }
        for choice in chunk.choices.unwrap_or_default().into_iter().filter(|choice| choice.index == 0) {
            if let Some(delta) = choice.delta {
                self.take_delta(draft, delta);
            }
            // Some servers write an empty one until there is one.
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                draft.finish = Some(read_finish(&reason));
            }
        }
        Ok(())
    }

    /// Who has counted the tokens of an answer has seen its end.
    fn done(&mut self, draft: &mut Draft) {
        if self.may_lack_reason && draft.usage.is_some() {
            draft.finish.get_or_insert(Finish::Stop);
        }
    }

    /// What only the vendor knows stands before the text, and the calls behind it.
    fn end(&mut self, draft: &mut Draft) {
        draft.pieces.sort_by_key(|piece| matches!(piece, Piece::Call(_)));
        if !self.extras.is_empty() {
            draft.pieces.insert(0, Piece::Native(Value::Object(std::mem::take(&mut self.extras))));
        }
    }
}

impl Answer {
    /// Of a server that imitates the vendor: some give no reason for the end, in none of their answers.
    pub(crate) fn of_imitator() -> Self {
        Self { may_lack_reason: true, ..Self::default() }
    }

    fn take_delta(&mut self, draft: &mut Draft, delta: Delta) {
        if let Some(content) = delta.content.filter(|content| !content.is_empty()) {
            match self.text {
                Some(place) => draft.say_at(place, &content),
                None => self.text = Some(draft.push(Piece::Text(content))),
            }
        }
        for call in delta.tool_calls {
            self.take_call(draft, call);
        }
        for (name, value) in delta.extras {
            if let Some(text) = value.as_str().filter(|_| THINKING.contains(&name.as_str())) {
                draft.think(text);
            }
            draft.grow(value.as_str().map_or_else(|| value.to_string().len(), str::len));
            append(self.extras.entry(name).or_insert(Value::Null), value);
        }
    }

    fn take_call(&mut self, draft: &mut Draft, delta: CallDelta) {
        let id = delta.id.unwrap_or_default();
        let name = delta.function.name.unwrap_or_default();
        let arguments = delta.function.arguments.unwrap_or_default();
        let known = self.calls.iter().rev().find(|open| {
            let call = draft.call_at(open.place, 0);
            call.is_some_and(|call| goes_on(open.index, call, delta.index, &id, &name))
        });
        let Some(open) = known else {
            let place = draft.push(Piece::Call(PartialCall { id, name, arguments }));
            self.calls.push(OpenCall { index: delta.index, place });
            return;
        };
        let Some(call) = draft.call_at(open.place, id.len() + name.len() + arguments.len()) else { return };
        call.arguments.push_str(&arguments);
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
    }
}

/// Whether a piece belongs to the call at hand. Some servers leave the index out or give each call the same, so a second
/// id together with a name begins another call.
fn goes_on(at: Option<u64>, call: &PartialCall, index: Option<u64>, id: &str, name: &str) -> bool {
    let is_another = !id.is_empty() && !name.is_empty() && !call.id.is_empty() && id != call.id;
    let is_whole_call = index.is_none() && !name.is_empty();
    index.is_none_or(|index| at == Some(index)) && !is_another && !is_whole_call
}

/// Pieces of one field are joined as the pieces of the text are.
fn append(field: &mut Value, piece: Value) {
    match (field, piece) {
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (Value::Array(list), Value::Array(more)) => list.extend(more),
        (field, piece) => *field = piece,
    }
}

fn read_finish(reason: &str) -> Finish {
    match reason {
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "length" => Finish::Length,
        "content_filter" => Finish::ContentFilter,
        "refusal" => Finish::Refusal,
        // `stop`, and whatever other servers call an ordinary end.
        _ => Finish::Stop,
    }
}

/// None if a number is missing or makes no sense: then it is as if nothing had been reported.
fn read_usage(usage: &WireUsage) -> Option<Usage> {
    let count = |number: Option<&Number>| number.and_then(Number::as_u64);
    let prompt = usage.prompt_tokens_details.as_ref();
    let completion = usage.completion_tokens_details.as_ref();
    Some(Usage {
        input_tokens: count(usage.prompt_tokens.as_ref())?,
        output_tokens: count(usage.completion_tokens.as_ref())?,
        cache_read_tokens: count(prompt.and_then(|it| it.cached_tokens.as_ref())).unwrap_or(0),
        cache_write_tokens: count(prompt.and_then(|it| it.cache_write_tokens.as_ref())).unwrap_or(0),
        reasoning_tokens: count(completion.and_then(|it| it.reasoning_tokens.as_ref())).unwrap_or(0),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests;
