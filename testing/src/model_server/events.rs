//! A stream with the places of its events, so that it can be paced, cut and broken between or inside them.

use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

/// A stream, where its events end, and which of them carry the text and the arguments of the last call.
pub(super) struct Events {
    pub bytes: Bytes,
    pub text: Range<usize>,
    pub arguments: Range<usize>,
    pub ends: Vec<usize>,
}

impl Events {
    /// The events one by one, each with what ends it.
    pub fn iter(&self) -> impl Iterator<Item = Bytes> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.bytes.slice(start..*end))
    }
}

/// Puts events together.
#[derive(Default)]
pub(super) struct EventWriter {
    out: Vec<u8>,
    ends: Vec<usize>,
    text: Range<usize>,
    arguments: Range<usize>,
}

impl EventWriter {
    /// Adds a named server-sent event; the name is its data's `type`.
    pub fn typed(&mut self, data: &Value) {
        let name = data["type"].as_str().unwrap_or_default();
        self.event(&format!("event: {name}\ndata: {data}\n\n"));
    }

    /// Adds a server-sent event without a name.
    pub fn data(&mut self, data: &Value) {
        self.event(&format!("data: {data}\n\n"));
    }

    /// Adds a line of JSON.
    pub fn line(&mut self, data: &Value) {
        self.event(&format!("{data}\n"));
    }

    /// What was added since `start` is the text.
    pub fn text_ends(&mut self, start: usize) {
        self.text = start..self.ends.len();
    }

    /// What was added since `start` is the arguments of the latest call.
    pub fn arguments_end(&mut self, start: usize) {
        self.arguments = start..self.ends.len();
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn finish(self) -> Events {
        Events { bytes: self.out.into(), text: self.text, arguments: self.arguments, ends: self.ends }
    }

    /// Adds an event as it stands.
    pub fn raw(&mut self, event: &[u8]) {
        self.out.extend_from_slice(event);
        self.ends.push(self.out.len());
    }

    fn event(&mut self, event: &str) {
        self.raw(event.as_bytes());
    }
}

/// A text cut into pieces of so many characters.
pub(super) fn pieces(text: &str, n_characters: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(n_characters).map_or(rest.len(), |(at, _)| at);
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}
