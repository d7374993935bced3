//! Ollama's chat: lines of JSON, streamed unless told otherwise, with arguments as objects. The vendor ignores
//! much that it doesn't know; here it is refused, so that a misspelt option is noticed.

mod check;
mod render;

use http::StatusCode;
use serde_json::{Value, json};

use super::completion::Completion;
use super::conversation::{Conversation, Speaker};
use super::events::Events;
use super::rules::Findings;
use super::signature;
use super::trouble::Trouble;
use super::wire::{Call, Dialect};

pub(super) struct Ollama;

impl Dialect for Ollama {
    type Request<'a> = Value;
    const CALL_PREFIX: &'static str = "call_";
    const STREAM_TYPE: &'static str = "application/x-ndjson";
    const PARSES_ARGUMENTS: bool = true;
    const BEFORE_CONTENT: &'static [&'static str] = &[r#""arguments":{""#, r#""content":""#];

    fn read(body: &[u8]) -> serde_json::Result<Value> {
        serde_json::from_slice(body)
    }

    fn check(call: &Call<'_>, request: &Value, findings: &mut Findings) {
        check::check(call, request, findings);
    }

    fn conversation<'r>(call: &'r Call<'_>, request: &'r Value) -> Conversation<'r> {
        conversation(call, request)
    }

    fn whole(completion: &Completion<'_>) -> Vec<u8> {
        render::whole(completion)
    }

    fn stream(completion: &Completion<'_>, size: Option<usize>) -> Events {
        render::stream(completion, size)
    }

    fn error(trouble: &Trouble<'_>) -> (StatusCode, Value) {
        error(trouble)
    }

    fn error_event() -> Vec<u8> {
        let (_, body) = error(&Trouble::ServerError);
        format!("{body}\n").into_bytes()
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn conversation<'r>(call: &'r Call<'_>, request: &'r Value) -> Conversation<'r> {
    let mut conversation = Conversation::new(call.wire, request["model"].as_str().unwrap_or_default());
    for message in list(&request["messages"]) {
        let by = match message["role"].as_str() {
            Some("system") => Speaker::System,
            Some("assistant") => Speaker::Model,
            Some("tool") => Speaker::Tool,
            _ => Speaker::User,
        };
        conversation.say(by, message["content"].as_str().unwrap_or_default());
    }
    let names = list(&request["tools"]).filter_map(|tool| tool["function"]["name"].as_str());
    conversation.tools.extend(names);
    conversation.stream = request["stream"] != false;
    conversation.wishes.thinking = request["think"] != false;
    conversation.fingerprint = signature::hash(&request["messages"].to_string());
    conversation
}

fn error(trouble: &Trouble<'_>) -> (StatusCode, Value) {
    let (status, message) = match trouble {
        Trouble::Invalid(violation) => {
            let message = format!("{}: {}", violation.param, violation.message);
            return (StatusCode::BAD_REQUEST, json!({ "error": message }));
        }
        Trouble::NotFound(message) => (404, *message),
        Trouble::Unauthorized => (401, "unauthorized"),
        Trouble::RateLimited(_) => (429, "too many concurrent requests"),
        Trouble::Quota => (402, "you've reached your usage limit, please upgrade to continue"),
        Trouble::ServerError => (500, "an error was encountered while running the model: unexpected EOF"),
        Trouble::Unavailable | Trouble::Overloaded => {
            (503, "server busy, please try again.  maximum pending requests exceeded")
        }
        Trouble::ContextLength => (400, "the input length exceeds the context length"),
        Trouble::Blocked => (400, "the prompt was refused"),
    };
    (StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), json!({ "error": message }))
}
