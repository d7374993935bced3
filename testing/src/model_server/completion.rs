//! A turn made concrete for one request: ids, usage, finish reason, and the faults that change what is said
//! (those that change how it travels are in `answer`).

use super::Asked;
use super::fault::Fault;
use super::script::{Call, Turn, Usage};
use super::wire::ChatRequest;

/// What is said, ready to be put on the wire.
pub(super) struct Completion<'r> {
    /// Hex of the request's fingerprint: equal requests get equal ids.
    pub id: String,
    pub model: &'r str,
    pub text: Option<String>,
    pub refusal: Option<String>,
    pub calls: Vec<MadeCall>,
    pub finish_reason: &'static str,
    pub usage: Option<Usage>,
}

/// A tool call with its id.
pub(super) struct MadeCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

const HUGE_TEXT: usize = 10_000_000;

impl<'r> Completion<'r> {
    /// Answers with `turn`.
    pub fn new(turn: Turn, asked: &Asked<'r>) -> Self {
        let request = asked.request;
        let id = format!("{:016x}", asked.fingerprint);
        let calls: Vec<_> =
            turn.calls.into_iter().enumerate().map(|(nth, call)| made(call, nth, &id, request)).collect();
        let finish_reason = if calls.is_empty() { "stop" } else { "tool_calls" };
        let mut completion = Completion {
            id,
            model: &request.model,
            text: turn.text,
            refusal: turn.refusal,
            calls,
            finish_reason,
            usage: None,
        };
        completion.usage = Some(turn.usage.unwrap_or_else(|| completion.counted_usage(asked.body_length)));
        completion
    }

    /// Makes the content misbehave; faults of the wire leave it as it is.
    pub fn apply(&mut self, fault: Fault, request: &ChatRequest<'_>) {
        match fault {
            Fault::BadArguments => self.spoil_arguments(request, r#"{"query": "unfinished"#),
            Fault::ArrayArguments => self.spoil_arguments(request, r#"["not", "an", "object"]"#),
            Fault::CutTool => {
                self.first_call(request);
            }
            Fault::Huge => self.say(&"0123456789abcdef".repeat(HUGE_TEXT / 16)),
            Fault::NoUsage => self.usage = None,
            Fault::DuplicateIds => self.duplicate_call(request),
            Fault::EmptyId => self.first_call(request).id.clear(),
            Fault::UnknownTool => self.first_call(request).name = "no_such_tool".to_owned(),
            Fault::Refusal => {
                self.say("");
                (self.text, self.refusal) = (None, Some("I can't help with that.".to_owned()));
            }
            Fault::Empty => self.say(""),
            Fault::Length => self.cut_short(),
            Fault::ContentFilter => {
                let text = self.text.take().unwrap_or_else(|| "I was about to".to_owned());
                self.say(half(&text));
                self.finish_reason = "content_filter";
            }
            Fault::UsageHuge => self.report(i64::MAX),
            Fault::UsageNegative => self.report(-1),
            Fault::CutText | Fault::BadChunk | Fault::InvalidUtf8 | Fault::Stall => self.ensure_words(),
            Fault::RateLimited
            | Fault::RateLimitedDate
            | Fault::RateLimitedBare
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

    /// About four bytes to a token, as everyone guesses.
    fn counted_usage(&self, body_length: usize) -> Usage {
        let said = self.text.as_ref().map_or(0, String::len) + self.refusal.as_ref().map_or(0, String::len);
        let called: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        let tokens = |n_bytes: usize| i64::try_from(n_bytes / 4 + 1).unwrap_or(i64::MAX);
        Usage { prompt_tokens: tokens(body_length), completion_tokens: tokens(said + called) }
    }

    fn say(&mut self, text: &str) {
        self.text = Some(text.to_owned());
        self.refusal = None;
        self.calls.clear();
        self.finish_reason = "stop";
    }

    /// Something has to be in the stream for the stream to break in it.
    fn ensure_words(&mut self) {
        if self.text.as_ref().is_none_or(|text| text.len() < 16) {
            self.text = Some("a few words to be broken".to_owned());
        }
    }

    fn first_call(&mut self, request: &ChatRequest<'_>) -> &mut MadeCall {
        if self.calls.is_empty() {
            let call = Call { name: None, arguments: r#"{"query": "made up by the fault"}"#.to_owned() };
            self.calls.push(made(call, 0, &self.id, request));
            self.finish_reason = "tool_calls";
        }
        &mut self.calls[0]
    }

    fn spoil_arguments(&mut self, request: &ChatRequest<'_>, arguments: &str) {
        self.first_call(request).arguments = arguments.to_owned();
    }

    fn duplicate_call(&mut self, request: &ChatRequest<'_>) {
        let first = self.first_call(request);
        let twin =
            MadeCall { id: first.id.clone(), name: first.name.clone(), arguments: first.arguments.clone() };
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
        self.finish_reason = "length";
    }

    fn report(&mut self, n_tokens: i64) {
        self.usage = Some(Usage { prompt_tokens: n_tokens, completion_tokens: n_tokens });
    }
}

/// The id is unique in its conversation, and the same again when the call is repeated.
fn made(call: Call, nth: usize, id: &str, request: &ChatRequest<'_>) -> MadeCall {
    let first_offered = || request.tool_names().next().unwrap_or("no_tool_offered").to_owned();
    let name = call.name.unwrap_or_else(first_offered);
    MadeCall { id: format!("call_{id}_{nth}"), name, arguments: call.arguments }
}

fn half(text: &str) -> &str {
    &text[..text.floor_char_boundary(text.len() / 2)]
}
