//! Azure's OpenAI: chat completions of a deployment, with a key and a version of their own, the verdicts of a
//! content filter in every answer, and errors that tell them.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::chat::{self, Chat, ChatRequest};
use super::completion::Completion;
use super::conversation::Conversation;
use super::events::{EventWriter, Events};
use super::rules::{Findings, Rule, bearer_token, header_text};
use super::script::Finish;
use super::trouble::Trouble;
use super::wire::{Call, Dialect};
use crate::loopback::query_value;

pub(super) struct Azure;

impl Dialect for Azure {
    type Request<'a> = ChatRequest<'a>;
    const CALL_PREFIX: &'static str = Chat::CALL_PREFIX;
    const STREAM_TYPE: &'static str = "text/event-stream; charset=utf-8";
    const ID_HEADER: &'static str = "apim-request-id";
    const BEFORE_CONTENT: &'static [&'static str] = Chat::BEFORE_CONTENT;

    fn read(body: &[u8]) -> serde_json::Result<ChatRequest<'_>> {
        ChatRequest::read(body)
    }

    fn check(call: &Call<'_>, request: &ChatRequest<'_>, findings: &mut Findings) {
        chat::check_headers(&call.parts.headers, findings);
        check_access(call, findings);
        if call.deployment().is_none() {
            chat::check_model(request, findings);
        }
        chat::check(request, findings);
    }

    fn conversation<'r>(call: &'r Call<'_>, request: &'r ChatRequest<'_>) -> Conversation<'r> {
        let mut conversation = chat::conversation(call, request);
        if conversation.model.is_empty() {
            conversation.model = call.deployment().unwrap_or_default().into();
        }
        conversation
    }

    fn whole(completion: &Completion<'_>) -> Vec<u8> {
        let body = Chat::whole(completion);
        let Ok(mut body) = serde_json::from_slice::<Value>(&body) else { return body };
        body["prompt_filter_results"] = prompt_verdicts();
        body["choices"][0]["content_filter_results"] = verdicts(is_filtered(completion));
        body.to_string().into_bytes()
    }

    /// The stream opens with the verdict on the prompt, in a chunk without choices.
    fn stream(completion: &Completion<'_>, size: Option<usize>) -> Events {
        let events = Chat::stream(completion, size);
        let mut writer = EventWriter::default();
        writer.data(&json!({
            "id": "", "object": "", "created": 0, "model": "", "choices": [],
            "prompt_filter_results": prompt_verdicts(),
        }));
        for event in events.iter() {
            match chunk(&event) {
                Some(mut chunk) => {
                    if chunk["choices"][0].is_object() {
                        let filtered = chunk["choices"][0]["finish_reason"] == "content_filter";
                        chunk["choices"][0]["content_filter_results"] = verdicts(filtered);
                    }
                    writer.data(&chunk);
                }
                None => writer.raw(&event),
            }
        }
        let behind = |range: std::ops::Range<usize>| range.start + 1..range.end + 1;
        Events { text: behind(events.text), arguments: behind(events.arguments), ..writer.finish() }
    }

    fn error(trouble: &Trouble<'_>) -> (StatusCode, Value) {
        error(trouble)
    }

    fn error_event() -> Vec<u8> {
        Chat::error_event()
    }
}

fn check_access(call: &Call<'_>, findings: &mut Findings) {
    let headers = &call.parts.headers;
    let key = header_text(headers, "api-key").filter(|key| !key.is_empty());
    let known = key.is_some() || bearer_token(headers).is_some();
    let message = "Access denied due to missing subscription key. Make sure to provide a valid key.";
    findings.require(known, Rule::Authorization, "api-key", message);
    if call.deployment().is_some() {
        let version = query_value(call.parts.uri.query(), "api-version");
        let dated = version.is_some_and(|version| version.len() >= 10 && version.starts_with("20"));
        findings.require(dated, Rule::Version, "api-version", "is missing, or no version of this API");
    }
}

fn is_filtered(completion: &Completion<'_>) -> bool {
    completion.finish == Finish::ContentFilter
}

/// The JSON of an event, unless it is the last one.
fn chunk(event: &Bytes) -> Option<Value> {
    serde_json::from_slice(event.strip_prefix(b"data: ")?).ok()
}

fn verdicts(filtered: bool) -> Value {
    let safe = json!({ "filtered": false, "severity": "safe" });
    let violence = if filtered { json!({ "filtered": true, "severity": "high" }) } else { safe.clone() };
    json!({ "hate": safe, "self_harm": safe, "sexual": safe, "violence": violence })
}

fn prompt_verdicts() -> Value {
    json!([{ "prompt_index": 0, "content_filter_results": verdicts(false) }])
}

fn error(trouble: &Trouble<'_>) -> (StatusCode, Value) {
    let denied = "Access denied due to invalid subscription key or wrong API endpoint.";
    match trouble {
        Trouble::Invalid(violation) if violation.rule == Rule::Authorization => {
            shaped(401, "401", &violation.message)
        }
        Trouble::Invalid(violation) if violation.rule == Rule::Version => {
            shaped(404, "404", "Resource not found")
        }
        Trouble::NotFound(_) => {
            shaped(404, "DeploymentNotFound", "The API deployment for this resource does not exist.")
        }
        Trouble::Unauthorized => shaped(401, "401", denied),
        Trouble::RateLimited(_) => shaped(
            429,
            "429",
            "Requests to the ChatCompletions_Create Operation have exceeded the call rate limit.",
        ),
        Trouble::Blocked => blocked(),
        Trouble::Overloaded => shaped(503, "ServiceUnavailable", "The server is overloaded."),
        Trouble::Unavailable => {
            shaped(503, "ServiceUnavailable", "The service is temporarily unable to process.")
        }
        Trouble::ServerError => shaped(500, "InternalServerError", "The server had an error."),
        Trouble::Invalid(_) | Trouble::Quota | Trouble::ContextLength => chat::error(trouble),
    }
}

fn shaped(status: u16, code: &str, message: &str) -> (StatusCode, Value) {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    (status, json!({ "error": { "code": code, "message": message } }))
}

/// The filter refuses a prompt with its verdicts.
fn blocked() -> (StatusCode, Value) {
    let error = json!({
        "message": "The response was filtered due to the prompt triggering the content management policy.",
        "type": null,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": { "code": "ResponsibleAIPolicyViolation", "content_filter_result": verdicts(true) },
    });
    (StatusCode::BAD_REQUEST, json!({ "error": error }))
}
