//! The vendors' wires: which of them a path belongs to, and what each must be able to do.

use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::Value;

use super::completion::Completion;
use super::conversation::Conversation;
use super::events::Events;
use super::rules::Findings;
use super::trouble::Trouble;

/// A vendor's way to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wire {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// Chat completions of Azure.
    Azure,
    /// Ollama's chat.
    Ollama,
    /// Google's Gemini.
    Gemini,
}

/// A request beside its body.
pub(super) struct Call<'c> {
    pub wire: Wire,
    pub parts: &'c Parts,
    /// Stands in for the number of prompt tokens.
    pub body_length: usize,
}

/// What it takes to speak a wire. Everything is a function of the request, so that a call repeated after a
/// crash gets the answer it lost.
pub(super) trait Dialect {
    /// A body as it is read.
    type Request<'a>;
    /// What the id of a tool call begins with.
    const CALL_PREFIX: &'static str;
    /// The media type of a stream.
    const STREAM_TYPE: &'static str = "text/event-stream; charset=utf-8";
    /// The header that names an answer.
    const ID_HEADER: &'static str = "x-request-id";
    /// Whether the vendor says in headers when to come again.
    const HINTS_IN_HEADERS: bool = true;
    /// Whether the vendor reads the arguments of calls itself, and fails if it can't.
    const PARSES_ARGUMENTS: bool = false;
    /// What stands before arguments and text in an answer, for faults that strike in the middle of one.
    const BEFORE_CONTENT: &'static [&'static str];

    fn read(body: &[u8]) -> serde_json::Result<Self::Request<'_>>;
    /// Every rule that a request breaks.
    fn check(call: &Call<'_>, request: &Self::Request<'_>, findings: &mut Findings);
    fn conversation<'r>(call: &'r Call<'_>, request: &'r Self::Request<'_>) -> Conversation<'r>;
    /// An answer in one piece.
    fn whole(completion: &Completion<'_>) -> Vec<u8>;
    /// An answer in pieces of so many characters; the wire's own choice if absent.
    fn stream(completion: &Completion<'_>, size: Option<usize>) -> Events;
    /// An answer that is an error.
    fn error(trouble: &Trouble<'_>) -> (StatusCode, Value);
    /// What is answered to a prompt that the filter refuses, where that is no error.
    fn blocked(_streams: bool) -> Option<Vec<u8>> {
        None
    }
    /// What a stream says that fails in its middle.
    fn error_event() -> Vec<u8>;
}

impl Wire {
    /// All of them.
    pub const ALL: [Wire; 6] =
        [Wire::Chat, Wire::Responses, Wire::Anthropic, Wire::Azure, Wire::Ollama, Wire::Gemini];

    /// The wire that `path` belongs to.
    pub(super) fn of(method: &Method, path: &str) -> Option<Self> {
        if method != Method::POST {
            return None;
        }
        match path {
            "/v1/chat/completions" => Some(Wire::Chat),
            "/v1/responses" | "/openai/v1/responses" => Some(Wire::Responses),
            "/v1/messages" => Some(Wire::Anthropic),
            "/api/chat" => Some(Wire::Ollama),
            "/openai/v1/chat/completions" => Some(Wire::Azure),
            _ if deployment(path).is_some() => Some(Wire::Azure),
            _ if gemini_model(path).is_some() => Some(Wire::Gemini),
            _ => None,
        }
    }

    /// The wire in whose shape it is said that nothing is at `path`.
    pub(super) fn near(path: &str) -> Self {
        let begins = |prefix: &str| path.starts_with(prefix);
        match path {
            _ if begins("/v1/messages") => Wire::Anthropic,
            _ if begins("/openai/") => Wire::Azure,
            _ if begins("/api/") => Wire::Ollama,
            _ if begins("/v1beta/") || begins("/v1/models/") => Wire::Gemini,
            _ => Wire::Chat,
        }
    }
}

impl Call<'_> {
    /// The deployment that the path names.
    pub fn deployment(&self) -> Option<&str> {
        deployment(self.parts.uri.path())
    }

    /// Whether the path is one of Azure's.
    pub fn is_azure(&self) -> bool {
        self.parts.uri.path().starts_with("/openai/")
    }

    /// The model that a path of Gemini's names.
    pub fn model(&self) -> &str {
        gemini_model(self.parts.uri.path()).unwrap_or_default()
    }
}

fn deployment(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/openai/deployments/")?.strip_suffix("/chat/completions")?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

fn gemini_model(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/v1beta/models/").or_else(|| path.strip_prefix("/v1/models/"))?;
    let (model, verb) = rest.rsplit_once(':')?;
    let known = matches!(verb, "generateContent" | "streamGenerateContent");
    (known && !model.is_empty() && !model.contains('/')).then_some(model)
}
