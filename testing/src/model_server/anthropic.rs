//! Anthropic's messages, in both versions of its API: blocks of text, thinking with its signature, tool use, and
//! a prompt cache that the caller steers with breakpoints.

mod cache;
mod check;
mod models;
mod render;
mod shapes;
mod transcript;

use http::StatusCode;
use serde_json::{Value, json};

use super::completion::Completion;
use super::conversation::{Conversation, Speaker};
use super::events::Events;
use super::rules::{Findings, Rule};
use super::signature;
use super::trouble::Trouble;
use super::wire::{Call, Dialect};

pub(super) struct Anthropic;

impl Dialect for Anthropic {
    type Request<'a> = Value;
    const CALL_PREFIX: &'static str = "toolu_";
    const ID_HEADER: &'static str = "request-id";
    const BEFORE_CONTENT: &'static [&'static str] =
        &[r#""partial_json":""#, r#""input":{""#, r#""text":""#, r#""thinking":""#];

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
        let (_, body) = error(&Trouble::Overloaded);
        format!("event: error\ndata: {body}\n\n").into_bytes()
    }
}

/// The blocks of a message or of a system prompt; a text is one block, and `None` stands for it.
fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

/// The word that says what a block is.
fn kind(block: &Value) -> &str {
    block["type"].as_str().unwrap_or_default()
}

/// The texts of a content put together.
fn text_of(content: &Value) -> String {
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => blocks(content).filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}

fn conversation<'r>(call: &'r Call<'_>, request: &'r Value) -> Conversation<'r> {
    let mut conversation = Conversation::new(call.wire, request["model"].as_str().unwrap_or_default());
    if !request["system"].is_null() {
        conversation.say(Speaker::System, text_of(&request["system"]));
    }
    for message in blocks(&request["messages"]) {
        let content = &message["content"];
        match message["role"].as_str() {
            Some("assistant") => conversation.say(Speaker::Model, text_of(content)),
            Some("system") => conversation.say(Speaker::System, text_of(content)),
            _ => {
                let results = blocks(content).filter(|block| kind(block) == "tool_result");
                let n_before = conversation.messages.len();
                for result in results {
                    conversation.say(Speaker::Tool, text_of(&result["content"]));
                }
                let text = text_of(content);
                if !text.is_empty() || conversation.messages.len() == n_before {
                    conversation.say(Speaker::User, text);
                }
            }
        }
    }
    conversation.tools.extend(blocks(&request["tools"]).filter_map(|tool| tool["name"].as_str()));
    conversation.stream = request["stream"] == true;
    conversation.wishes.thinking = request["thinking"]["display"] != "omitted";
    conversation.fingerprint = signature::hash(&cache::without_marks(&request["messages"]).to_string());
    conversation.prefixes = cache::prefixes(request);
    conversation
}

fn error(trouble: &Trouble<'_>) -> (StatusCode, Value) {
    let (status, kind, message) = match trouble {
        Trouble::Invalid(violation) => {
            let message = format!("{}: {}", violation.param, violation.message);
            return match violation.rule {
                Rule::Authorization => shaped(401, "authentication_error", &violation.message),
                _ => shaped(400, "invalid_request_error", &message),
            };
        }
        Trouble::NotFound(message) => (404, "not_found_error", *message),
        Trouble::Unauthorized => (401, "authentication_error", "invalid x-api-key"),
        Trouble::RateLimited(_) => {
            (429, "rate_limit_error", "this request would exceed your organization's rate limit")
        }
        Trouble::Quota => (402, "billing_error", "your credit balance is too low to use the API"),
        Trouble::ServerError => (500, "api_error", "internal server error"),
        Trouble::Unavailable => (503, "api_error", "service unavailable"),
        Trouble::Overloaded => (529, "overloaded_error", "Overloaded"),
        Trouble::ContextLength => {
            (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
        }
        Trouble::Blocked => (400, "invalid_request_error", "Output blocked by content filtering policy"),
    };
    shaped(status, kind, message)
}

fn shaped(status: u16, kind: &str, message: &str) -> (StatusCode, Value) {
    let body = json!({
        "type": "error",
        "error": { "type": kind, "message": message },
        "request_id": "req_refused",
    });
    (StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), body)
}
