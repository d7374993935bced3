//! One answer as far as it has come, whichever vendor gives it: its pieces in order, what of them was not shown yet,
//! why it ends, what it took. Bounded.

use std::collections::VecDeque;

use ostler_kernel::{Block, Failure, step::Usage};
use serde_json::Value;

use crate::{Completion, Finish, Identity, Part, call::Peer, failure, names::ToolNames};

/// Bounds the work for an answer that is nothing but calls.
const MAX_CALLS: usize = 256;

/// And for one of nothing but small pieces.
const MAX_PIECES: usize = 8 * MAX_CALLS;

/// Some vendor takes no longer id back.
pub(crate) const MAX_ID: usize = 40;

/// No vendor has longer names for its answers and models.
const MAX_NAME: usize = 256;

#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    /// What goes back to this vendor alone.
    Native(Value),
    Call(PartialCall),
}

#[derive(Debug, Default)]
pub(crate) struct PartialCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

pub(crate) struct Draft {
    names: ToolNames,
    /// Whose the native pieces are.
    vendor: String,
    pub(crate) pieces: Vec<Piece>,
    fresh: VecDeque<Part>,
    pub(crate) finish: Option<Finish>,
    pub(crate) usage: Option<Usage>,
    identity: Identity,
    /// The vendor said that nothing more will come.
    pub(crate) is_closed: bool,
    /// About how many bytes it holds, and how many it may.
    size: usize,
    max: usize,
}

impl Draft {
    pub(crate) fn new(vendor: String, names: ToolNames, max: usize) -> Self {
        Self {
            names,
            vendor,
            pieces: Vec::new(),
            fresh: VecDeque::new(),
            finish: None,
            usage: None,
            identity: Identity::default(),
            is_closed: false,
            size: 0,
            max,
        }
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// What the vendor calls the answer, and who gives it. What was said first counts; every piece may repeat it.
    pub(crate) fn identify(&mut self, id: Option<&Value>, model: Option<&Value>) {
        let said = |value: Option<&Value>| {
            let text = value?.as_str()?;
            (1..=MAX_NAME).contains(&text.len()).then(|| text.to_owned())
        };
        if self.identity.id.is_none() {
            self.identity.id = said(id);
        }
        if self.identity.model.is_none() {
            self.identity.model = said(model);
        }
    }

    /// The vendor said why the answer ends.
    pub(crate) fn has_ended(&self) -> bool {
        self.finish.is_some()
    }

    /// Begins a piece and gives its place.
    pub(crate) fn push(&mut self, piece: Piece) -> usize {
        self.size += match &piece {
            Piece::Text(text) => text.len(),
            Piece::Native(value) => text_size(value),
            Piece::Call(call) => call.id.len() + call.name.len() + call.arguments.len(),
        };
        if let Piece::Text(text) = &piece {
            self.show(text, Part::Text);
        }
        self.pieces.push(piece);
        self.pieces.len() - 1
    }

    /// More text: behind what was said last, if nothing else came since.
    pub(crate) fn say(&mut self, text: &str) {
        match self.pieces.last() {
            Some(Piece::Text(_)) => self.say_at(self.pieces.len() - 1, text),
            Some(_) | None => {
                self.push(Piece::Text(text.to_owned()));
            }
        }
    }

    pub(crate) fn say_at(&mut self, place: usize, more: &str) {
        if let Some(Piece::Text(text)) = self.pieces.get_mut(place) {
            text.push_str(more);
            self.size += more.len();
            self.show(more, Part::Text);
        }
    }

    /// Shows thinking. Where it must go back to the vendor it is kept in a native piece as well.
    pub(crate) fn think(&mut self, text: &str) {
        self.show(text, Part::Thinking);
    }

    /// The native piece at a place, which is about to grow by so many bytes.
    pub(crate) fn native_at(&mut self, place: usize, growth: usize) -> Option<&mut Value> {
        self.size += growth;
        match self.pieces.get_mut(place)? {
            Piece::Native(value) => Some(value),
            Piece::Text(_) | Piece::Call(_) => None,
        }
    }

    /// The same for a call.
    pub(crate) fn call_at(&mut self, place: usize, growth: usize) -> Option<&mut PartialCall> {
        self.size += growth;
        match self.pieces.get_mut(place)? {
            Piece::Call(call) => Some(call),
            Piece::Text(_) | Piece::Native(_) => None,
        }
    }

    /// It holds so many bytes more that are in no piece yet.
    pub(crate) fn grow(&mut self, bytes: usize) {
        self.size += bytes;
    }

    fn show(&mut self, text: &str, part: fn(String) -> Part) {
        if text.is_empty() {
            return;
        }
        let more = part(text.to_owned());
        match (self.fresh.back_mut(), more) {
            (Some(Part::Text(shown)), Part::Text(text))
            | (Some(Part::Thinking(shown)), Part::Thinking(text)) => shown.push_str(&text),
            (_, more) => self.fresh.push_back(more),
        }
    }

    /// What has come since it was last asked for.
    pub(crate) fn take_fresh(&mut self) -> Option<Part> {
        self.fresh.pop_front()
    }

    /// Fails if the answer has become larger than it may be.
    pub(crate) fn check(&self, peer: &Peer) -> Result<(), Failure> {
        let n_calls = || self.pieces.iter().filter(|piece| matches!(piece, Piece::Call(_))).count();
        let is_many =
            self.pieces.len() > MAX_CALLS && (self.pieces.len() > MAX_PIECES || n_calls() > MAX_CALLS);
        match self.size > self.max || is_many {
            true => Err(failure::too_large(&peer.endpoint, self.max)),
            false => Ok(()),
        }
    }

    pub(crate) fn complete(self) -> Completion {
        let has_calls = self.pieces.iter().any(|piece| matches!(piece, Piece::Call(_)));
        let mut blocks: Vec<Block> = Vec::with_capacity(self.pieces.len());
        let mut ids = Vec::new();
        for piece in self.pieces {
            match piece {
                Piece::Text(text) if text.is_empty() => {}
                Piece::Text(text) => blocks.push(Block::Text { text }),
                Piece::Native(value) => blocks.push(Block::Native { vendor: self.vendor.clone(), value }),
                Piece::Call(call) => blocks.push(finished(call, &mut ids, &self.names)),
            }
        }
        let mut completion =
            Completion { blocks, finish: Finish::Stop, usage: self.usage, identity: self.identity };
        let refuses = completion.refusal().is_some_and(|text| !text.is_empty());
        completion.finish = match self.finish {
            None | Some(Finish::Stop | Finish::ToolCalls) if refuses => Finish::Refusal,
            None | Some(Finish::Stop | Finish::ToolCalls) if has_calls => Finish::ToolCalls,
            None | Some(Finish::ToolCalls) => Finish::Stop,
            Some(finish) => finish,
        };
        completion
    }
}

/// The ids of calls in one answer must differ, or no transcript with them is valid; ours replace those that are
/// empty, said twice, or longer than a vendor takes back.
fn finished(call: PartialCall, ids: &mut Vec<String>, names: &ToolNames) -> Block {
    let nth = ids.len();
    let suffixed = (!call.id.is_empty()).then(|| format!("{}_call_{nth}", call.id));
    let ours = std::iter::successors(Some(format!("call_{nth}")), |id| Some(format!("{id}_")));
    let mut candidates = std::iter::once(call.id).chain(suffixed).chain(ours);
    let is_free = |id: &String| (1..=MAX_ID).contains(&id.len()) && !ids.contains(id);
    let id = candidates.find(is_free).unwrap_or_default();
    ids.push(id.clone());
    Block::ToolCall { id, name: names.original(call.name), arguments: call.arguments }
}

/// Near enough to the bytes that a value takes.
fn text_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        other => other.to_string().len(),
    }
}

/// What was shown of an answer, and the answer.
#[cfg(test)]
pub(crate) fn put_together(
    vendor: &str,
    mut reading: impl crate::call::Reading,
    offers: &[crate::ToolOffer],
    max: usize,
    events: &[Value],
) -> Result<(Vec<Part>, Completion), Failure> {
    let (peer, mut shown) = (Peer::for_test(), Vec::new());
    let mut draft = Draft::new(vendor.to_owned(), ToolNames::new(offers), max);
    for event in events {
        reading.take(&peer, &mut draft, event.to_string().as_bytes())?;
        draft.check(&peer)?;
        shown.extend(std::iter::from_fn(|| draft.take_fresh()));
    }
    reading.end(&mut draft);
    Ok((shown, draft.complete()))
}
