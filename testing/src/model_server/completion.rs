//! A turn made concrete for one request: ids, usage, finish reason, and the faults that change what is said
//! (those that change how it travels are in `answer`).

use std::borrow::Cow;

use super::conversation::{Conversation, Wishes};
use super::fault::Fault;
use super::script::{Call, Finish, Thinking, Turn, Usage};

/// What is said, ready to be put on the wire.
pub(super) struct Completion<'r> {
    /// Hex of the request's fingerprint: equal requests get equal ids.
    pub id: String,
    pub model: Cow<'r, str>,
    pub thinking: Option<Thinking>,
    pub text: Option<String>,
    pub refusal: Option<String>,
    pub calls: Vec<MadeCall>,
    pub finish: Finish,
    pub usage: Option<Usage>,
    pub wishes: Wishes,
    call_prefix: &'static str,
    first_offered: String,
}

/// A tool call with its id.
#[derive(Clone)]
pub(super) struct MadeCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

const HUGE_TEXT: usize = 10_000_000;

impl<'r> Completion<'r> {
    /// Answers with `turn`; ids of calls begin with `call_prefix`.
    pub fn new(turn: Turn, conversation: &Conversation<'r>, call_prefix: &'static str) -> Self {
        let first_offered = conversation.tools.first().copied().unwrap_or("no_tool_offered");
        let mut completion = Completion {
            id: format!("{:016x}", conversation.fingerprint),
            model: conversation.model.clone(),
            thinking: turn.thinking,
            text: turn.text,
            refusal: turn.refusal,
            calls: Vec::new(),
            finish: Finish::Stop,
            usage: turn.usage,
            wishes: conversation.wishes,
            call_prefix,
            first_offered: first_offered.to_owned(),
        };
        for call in turn.calls {
            completion.make(call);
        }
        let natural = match (&completion.refusal, completion.calls.is_empty()) {
            (Some(_), _) => Finish::Refusal,
            (None, false) => Finish::ToolCalls,
            (None, true) => Finish::Stop,
        };
        completion.finish = turn.finish.unwrap_or(natural);
        completion
    }

    /// Makes the content misbehave; faults of the wire leave it as it is.
    pub fn apply(&mut self, fault: Fault) {
        match fault {
            Fault::BadArguments => self.spoil_arguments(r#"{"query": "unfinished"#),
            Fault::ArrayArguments => self.spoil_arguments(r#"["not", "an", "object"]"#),
            Fault::CutTool => {
                self.first_call();
            }
            Fault::Huge => self.say(&"0123456789abcdef".repeat(HUGE_TEXT / 16)),
            Fault::NoUsage => self.usage = None,
            Fault::DuplicateIds => self.duplicate_call(),
            Fault::EmptyId => self.first_call().id.clear(),
            Fault::UnknownTool => self.first_call().name = "no_such_tool".to_owned(),
            Fault::Refusal => {
                self.say("");
                (self.text, self.refusal) = (None, Some("I can't help with that.".to_owned()));
                self.finish = Finish::Refusal;
            }
            Fault::Empty => self.say(""),
            Fault::Length => self.cut_short(),
            Fault::LengthBare => {
                self.first_call();
                if let Some(last) = self.calls.last_mut() {
                    last.arguments.clear();
                }
                self.finish = Finish::Length;
            }
            Fault::ContentFilter => {
                let text = self.text.take().unwrap_or_else(|| "I was about to".to_owned());
                self.say(half(&text));
                self.finish = Finish::ContentFilter;
            }
            Fault::FilteredCall => {
                self.first_call();
                self.finish = Finish::ContentFilter;
            }
            Fault::UsageHuge => self.report(i64::MAX),
            Fault::UsageNegative => self.report(-1),
            Fault::CutText | Fault::BadChunk | Fault::InvalidUtf8 | Fault::Stall | Fault::ErrorEvent => {
                self.ensure_words();
            }
            Fault::RateLimited
            | Fault::RateLimitedDate
            | Fault::RateLimitedMilliseconds
            | Fault::RateLimitedDay
            | Fault::RateLimitedBare
            | Fault::Quota
            | Fault::Unavailable
            | Fault::Blocked
            | Fault::ServerError
            | Fault::Overloaded
            | Fault::Unauthorized
            | Fault::ContextLength
            | Fault::Close
            | Fault::Slow
            | Fault::Hang
            | Fault::Html => {}
        }
    }

    /// About how many tokens the answer has.
    pub fn n_tokens(&self) -> i64 {
        let said = self.text.as_ref().map_or(0, String::len) + self.refusal.as_ref().map_or(0, String::len);
        let called: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        tokens(said + called)
    }

    /// About how many tokens the model thought.
    pub fn n_thinking_tokens(&self) -> i64 {
        self.thinking.as_ref().map_or(0, |thinking| tokens(thinking.text.len()))
    }

    fn say(&mut self, text: &str) {
        self.text = Some(text.to_owned());
        self.refusal = None;
        self.calls.clear();
        self.finish = Finish::Stop;
    }

    /// Something has to be in the stream for the stream to break in it.
    fn ensure_words(&mut self) {
        if self.text.as_ref().is_none_or(|text| text.len() < 16) {
            self.text = Some("a few words to be broken".to_owned());
        }
    }

    /// Adds a call. Its id is unique in its conversation, the same again when the call is repeated, and tells
    /// whether thinking led to it.
    fn make(&mut self, call: Call) {
        let (prefix, id, nth) = (self.call_prefix, &self.id, self.calls.len());
        let mark = if self.thinking.is_some() { THOUGHT_MARK } else { "" };
        let id = format!("{prefix}{id}_{nth}{mark}");
        let name = call.name.unwrap_or_else(|| self.first_offered.clone());
        self.calls.push(MadeCall { id, name, arguments: call.arguments });
    }

    fn first_call(&mut self) -> &mut MadeCall {
        if self.calls.is_empty() {
            self.make(Call { name: None, arguments: r#"{"query": "made up by the fault"}"#.to_owned() });
            self.finish = Finish::ToolCalls;
        }
        &mut self.calls[0]
    }

    fn spoil_arguments(&mut self, arguments: &str) {
        self.first_call().arguments = arguments.to_owned();
    }

    fn duplicate_call(&mut self) {
        let twin = self.first_call().clone();
        match self.calls.get_mut(1) {
            Some(second) => second.id = twin.id,
            None => self.calls.push(twin),
        }
    }

    fn cut_short(&mut self) {
        match self.calls.last_mut() {
            Some(call) => call.arguments = half(&call.arguments).to_owned(),
            None => self.text = self.text.as_deref().map(|text| half(text).to_owned()),
        }
        self.finish = Finish::Length;
    }

    fn report(&mut self, n_tokens: i64) {
        self.usage = Some(Usage { prompt_tokens: n_tokens, completion_tokens: n_tokens, ..Usage::default() });
    }
}

/// What the id of a call ends with that thinking led to.
pub(super) const THOUGHT_MARK: &str = "t";

/// About four bytes to a token, as everyone guesses.
pub(super) fn tokens(n_bytes: usize) -> i64 {
    i64::try_from(n_bytes / 4 + 1).unwrap_or(i64::MAX)
}

fn half(text: &str) -> &str {
    &text[..text.floor_char_boundary(text.len() / 2)]
}
