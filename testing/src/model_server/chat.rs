//! OpenAI's chat completions, the wire that most servers speak. It is also the mock model of the benchmarks, so
//! requests are read without copies and streams written by hand.

mod check;
mod request;
mod stream;
mod whole;

pub(super) use check::{check, check_breakpoints, check_headers, check_model};
pub(super) use request::ChatRequest;
pub(super) use whole::CREATED;

use std::borrow::Cow;

use http::StatusCode;
use serde_json::{Value, json};

use super::completion::Completion;
use super::conversation::{Conversation, Speaker};
use super::events::Events;
use super::rules::Findings;
use super::script::Finish;
use super::trouble::Trouble;
use super::wire::{Call, Dialect};
use request::Role;

pub(super) struct Chat;

impl Dialect for Chat {
    type Request<'a> = ChatRequest<'a>;
    const CALL_PREFIX: &'static str = "call_";
    const BEFORE_CONTENT: &'static [&'static str] = &[r#""arguments":""#, r#""content":""#];

    fn read(body: &[u8]) -> serde_json::Result<ChatRequest<'_>> {
        ChatRequest::read(body)
    }

    fn check(call: &Call<'_>, request: &ChatRequest<'_>, findings: &mut Findings) {
        check_headers(&call.parts.headers, findings);
        check_model(request, findings);
        check(request, findings);
    }

    fn conversation<'r>(call: &'r Call<'_>, request: &'r ChatRequest<'_>) -> Conversation<'r> {
        conversation(call, request)
    }

    fn whole(completion: &Completion<'_>) -> Vec<u8> {
        whole::render(completion)
    }

    fn stream(completion: &Completion<'_>, size: Option<usize>) -> Events {
        stream::render(completion, size)
    }

    fn error(trouble: &Trouble<'_>) -> (StatusCode, Value) {
        error(trouble)
    }

    fn error_event() -> Vec<u8> {
        let (_, body) = error(&Trouble::ServerError);
        format!("data: {body}\n\n").into_bytes()
    }
}

/// What a request says.
pub(super) fn conversation<'r>(call: &'r Call<'_>, request: &'r ChatRequest<'_>) -> Conversation<'r> {
    let mut conversation =
        Conversation::new(call.wire, Cow::Borrowed(request.model.as_deref().unwrap_or_default()));
    conversation.messages.reserve(request.messages.len());
    for message in &request.messages {
        let by = match message.role {
            Role::System | Role::Developer => Speaker::System,
            Role::User => Speaker::User,
            Role::Assistant => Speaker::Model,
            Role::Tool => Speaker::Tool,
        };
        conversation.say(by, message.text());
    }
    conversation.tools.extend(request.tool_names());
    conversation.stream = request.stream;
    conversation.wishes.usage_in_stream =
        request.stream_options.as_ref().is_some_and(|options| options.include_usage);
    conversation.fingerprint = request.fingerprint();
    conversation
}

/// Why the model stopped, in this wire's words.
pub(super) const fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::Refusal | Finish::Pause => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
    }
}

/// An error in OpenAI's shape.
pub(super) fn error(trouble: &Trouble<'_>) -> (StatusCode, Value) {
    let bad_request = "invalid_request_error";
    let shaped = |status: u16, kind: &str, code: Option<&str>, message: &str| {
        let error = json!({ "message": message, "type": kind, "param": null, "code": code });
        (StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), json!({ "error": error }))
    };
    match trouble {
        Trouble::Invalid(violation) => {
            let error = json!({
                "message": format!("{}: {}", violation.param, violation.message),
                "type": bad_request,
                "param": violation.param,
                "code": violation.rule,
            });
            (StatusCode::BAD_REQUEST, json!({ "error": error }))
        }
        Trouble::NotFound(message) => shaped(404, bad_request, Some("unknown_url"), message),
        Trouble::Unauthorized => {
            shaped(401, bad_request, Some("invalid_api_key"), "incorrect API key provided")
        }
        Trouble::RateLimited(_) => {
            let message = "rate limit reached for requests";
            shaped(429, "requests", Some("rate_limit_exceeded"), message)
        }
        Trouble::Quota => {
            let message = "you exceeded your current quota, please check your plan and billing details";
            shaped(429, "insufficient_quota", Some("insufficient_quota"), message)
        }
        Trouble::ServerError => shaped(500, "server_error", None, "the server had an error"),
        Trouble::Unavailable => {
            shaped(503, "service_unavailable_error", None, "the engine is currently overloaded")
        }
        Trouble::Overloaded => shaped(529, "overloaded_error", None, "overloaded"),
        Trouble::ContextLength => {
            let message = "this model's maximum context length is 8192 tokens, the messages have more";
            shaped(400, bad_request, Some("context_length_exceeded"), message)
        }
        Trouble::Blocked => {
            let message = "the prompt was flagged as potentially violating the usage policy";
            shaped(400, bad_request, Some("invalid_prompt"), message)
        }
    }
}
