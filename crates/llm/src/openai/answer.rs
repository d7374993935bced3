//! One answer, put together from the events of a stream.

use ostler_kernel::{Block, Failure, step::Usage};
use serde_json::{Map, Value};

use super::{
    Peer,
    chunk::{CallDelta, Chunk, Delta, WireUsage},
    error,
    names::ToolNames,
    request::VENDOR,
};
use crate::{Completion, Finish, failure};

/// Bounds the work for an answer that is nothing but calls.
const MAX_CALLS: usize = 256;

/// The vendor takes no longer id back.
const MAX_ID: usize = 40;

/// An answer as far as it has come.
#[derive(Default)]
pub(super) struct Answer {
    names: ToolNames,
    text: String,
    calls: Vec<PartialCall>,
    extras: Map<String, Value>,
    finish: Option<Finish>,
    usage: Option<Usage>,
    /// The bytes of the text that were given out.
    shown: usize,
    /// About how many bytes it holds, and how many it may.
    size: usize,
    max: usize,
}

struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Answer {
    pub(super) fn new(names: ToolNames, max: usize) -> Self {
        Self { names, max, ..Self::default() }
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// The vendor said why the answer ends.
    pub(super) fn has_ended(&self) -> bool {
        self.finish.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty() && self.extras.is_empty()
    }

    pub(super) fn take_json(&mut self, peer: &Peer, json: &[u8]) -> Result<(), Failure> {
        let chunk: Chunk = serde_json::from_slice(json).map_err(|error| {
            failure::bad_answer(&peer.endpoint, format_args!("{error} in `{}`", peer.quote(json)))
        })?;
        if let Some(error) = &chunk.error {
            return Err(error::in_answer(peer, error));
        }
        self.take(chunk);
        match self.size > self.max || self.calls.len() > MAX_CALLS {
            true => Err(failure::too_large(&peer.endpoint, self.max)),
            false => Ok(()),
        }
    }

    /// The text that has come since it was last asked for.
    pub(super) fn take_new_text(&mut self) -> Option<String> {
        let text = self.text.get(self.shown..).filter(|text| !text.is_empty())?.to_owned();
        self.shown = self.text.len();
        Some(text)
    }

    fn take(&mut self, chunk: Chunk) {
        if let Some(usage) = chunk.usage {
            self.usage = read_usage(&usage);
        }
        for choice in chunk.choices.unwrap_or_default().into_iter().filter(|choice| choice.index == 0) {
            if let Some(delta) = choice.delta {
                self.take_delta(delta);
            }
            if let Some(reason) = choice.finish_reason {
                self.finish = Some(read_finish(&reason));
            }
        }
    }

    fn take_delta(&mut self, delta: Delta) {
        if let Some(content) = delta.content {
            self.size += content.len();
            self.text.push_str(&content);
        }
        for call in delta.tool_calls {
            self.take_call(call);
        }
        for (name, value) in delta.extras {
            self.size += value.as_str().map_or_else(|| value.to_string().len(), str::len);
            append(self.extras.entry(name).or_insert(Value::Null), value);
        }
    }

    fn take_call(&mut self, delta: CallDelta) {
        let id = delta.id.unwrap_or_default();
        let name = delta.function.name.unwrap_or_default();
        let arguments = delta.function.arguments.unwrap_or_default();
        self.size += id.len() + name.len() + arguments.len();
        match self.calls.iter_mut().rev().find(|call| call.goes_on_with(delta.index, &id, &name)) {
            Some(call) => {
                call.arguments.push_str(&arguments);
                if call.id.is_empty() {
                    call.id = id;
                }
                if call.name.is_empty() {
                    call.name = name;
                }
            }
            None => self.calls.push(PartialCall { index: delta.index, id, name, arguments }),
        }
    }

    pub(super) fn complete(self) -> Completion {
        let has_calls = !self.calls.is_empty();
        let refuses = self.extras.get("refusal").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        let finish = match self.finish {
            None | Some(Finish::Stop | Finish::ToolCalls) if has_calls => Finish::ToolCalls,
            None | Some(Finish::Stop | Finish::ToolCalls) if refuses => Finish::Refusal,
            None | Some(Finish::ToolCalls) => Finish::Stop,
            Some(finish) => finish,
        };
        let mut blocks = Vec::with_capacity(self.calls.len() + 2);
        if !self.extras.is_empty() {
            blocks.push(Block::Native { vendor: VENDOR.to_owned(), value: Value::Object(self.extras) });
        }
        if !self.text.is_empty() {
            blocks.push(Block::Text { text: self.text });
        }
        blocks.extend(finished_calls(self.calls, &self.names));
        Completion { blocks, finish, usage: self.usage }
    }
}

impl PartialCall {
    /// Whether a piece belongs to this call. Some servers leave the index out or give each call the same, so
    /// a second id together with a name begins another call.
    fn goes_on_with(&self, index: Option<u64>, id: &str, name: &str) -> bool {
        let is_another = !id.is_empty() && !name.is_empty() && !self.id.is_empty() && id != self.id;
        let is_whole_call = index.is_none() && !name.is_empty();
        index.is_none_or(|index| self.index == Some(index)) && !is_another && !is_whole_call
    }
}

/// The ids of calls in one answer must differ, or no transcript with them is valid; ours replace those that
/// are empty, said twice, or longer than the vendor takes back.
fn finished_calls(calls: Vec<PartialCall>, names: &ToolNames) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::with_capacity(calls.len());
    let mut ids: Vec<String> = Vec::with_capacity(calls.len());
    for (nth, call) in calls.into_iter().enumerate() {
        let suffixed = (!call.id.is_empty()).then(|| format!("{}_call_{nth}", call.id));
        let ours = std::iter::successors(Some(format!("call_{nth}")), |id| Some(format!("{id}_")));
        let mut candidates = std::iter::once(call.id).chain(suffixed).chain(ours);
        let is_free = |id: &String| (1..=MAX_ID).contains(&id.len()) && !ids.contains(id);
        let id = candidates.find(is_free).unwrap_or_default();
        ids.push(id.clone());
        blocks.push(Block::ToolCall { id, name: names.original(call.name), arguments: call.arguments });
    }
    blocks
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
    let input_tokens = usage.prompt_tokens.as_ref()?.as_u64()?;
    let output_tokens = usage.completion_tokens.as_ref()?.as_u64()?;
    Some(Usage { input_tokens, output_tokens, estimated: false })
}

#[cfg(test)]
mod tests;
