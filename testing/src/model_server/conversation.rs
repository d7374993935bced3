//! A request as a script sees it, whichever vendor's wire it came on: who said what, which tools are on offer,
//! and what the answer must carry.

use std::borrow::Cow;

use super::wire::Wire;

/// What a request says, in no vendor's words.
#[derive(Debug)]
pub struct Conversation<'r> {
    /// The wire it came on.
    pub wire: Wire,
    /// The model that is asked.
    pub model: Cow<'r, str>,
    /// What was said so far, tool results in messages of their own.
    pub messages: Vec<Said<'r>>,
    /// The names of the tools on offer.
    pub tools: Vec<&'r str>,
    pub(super) stream: bool,
    pub(super) wishes: Wishes,
    /// Names the transcript: the same for a repeated call, another one for every other step.
    pub(super) fingerprint: u64,
    /// Where the vendor could cut the prompt for its cache; empty where it isn't told.
    pub(super) prefixes: Vec<Prefix>,
}

/// One message, or one tool's result.
#[derive(Debug)]
pub struct Said<'r> {
    pub by: Speaker,
    /// Its text, parts put together; images and the like say nothing.
    pub text: Cow<'r, str>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    System,
    User,
    Model,
    Tool,
}

/// What the caller wants to see of an answer, where a vendor lets it choose.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wishes {
    /// The usage at the end of a stream.
    pub usage_in_stream: bool,
    /// The thinking in words; without it only what proves it.
    pub thinking: bool,
    /// Reasoning that can be sent back by a caller who lets nothing be stored.
    pub encrypted_reasoning: bool,
}

/// A beginning of the prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prefix {
    pub hash: u64,
    pub n_bytes: usize,
    /// Whether the caller asks to have it cached up to here.
    pub breakpoint: bool,
}

impl<'r> Conversation<'r> {
    /// Nothing said yet, everything shown.
    pub(super) fn new(wire: Wire, model: impl Into<Cow<'r, str>>) -> Self {
        Self {
            wire,
            model: model.into(),
            messages: Vec::new(),
            tools: Vec::new(),
            stream: false,
            wishes: Wishes { usage_in_stream: true, thinking: true, encrypted_reasoning: true },
            fingerprint: 0,
            prefixes: Vec::new(),
        }
    }

    pub(super) fn say(&mut self, by: Speaker, text: impl Into<Cow<'r, str>>) {
        self.messages.push(Said { by, text: text.into() });
    }

    /// How often the model has spoken in this transcript: the index of the turn to play. It depends on
    /// nothing but the request, so a call repeated after a crash gets the answer it lost.
    pub fn n_assistant_messages(&self) -> usize {
        self.messages.iter().filter(|said| said.by == Speaker::Model).count()
    }

    /// What the user said last.
    pub fn last_user_text(&self) -> &str {
        let last = self.messages.iter().rev().find(|said| said.by == Speaker::User);
        last.map(|said| &*said.text).unwrap_or_default()
    }

    /// What the tools answered since the model spoke last, in order.
    pub fn tool_results(&self) -> Vec<&str> {
        let since = self.messages.iter().rposition(|said| said.by == Speaker::Model);
        let latest = self.messages.iter().skip(since.map_or(0, |index| index + 1));
        latest.filter(|said| said.by == Speaker::Tool).map(|said| &*said.text).collect()
    }

    /// The names of the tools on offer.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().copied()
    }
}
