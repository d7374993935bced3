//! Google's Gemini: contents of parts, calls that come whole, thoughts with signatures, and errors in the shape
//! of `google.rpc`.

mod check;
mod names;
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

pub(super) struct Gemini;

impl Dialect for Gemini {
    type Request<'a> = Value;
    const CALL_PREFIX: &'static str = "";
    const STREAM_TYPE: &'static str = "text/event-stream";
    const HINTS_IN_HEADERS: bool = false;
    const BEFORE_CONTENT: &'static [&'static str] = &[r#""args":{""#, r#""text":""#];

    fn read(body: &[u8]) -> serde_json::Result<Value> {
        serde_json::from_slice(body).map(names::in_camel_case)
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

    fn blocked(streams: bool) -> Option<Vec<u8>> {
        let body = json!({
            "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" },
            "usageMetadata": { "promptTokenCount": 9, "totalTokenCount": 9 },
            "responseId": "blocked",
        });
        Some(if streams { format!("data: {body}\n\n") } else { body.to_string() }.into_bytes())
    }

    fn error_event() -> Vec<u8> {
        let (_, body) = error(&Trouble::Unavailable);
        format!("data: {body}\n\n").into_bytes()
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The functions on offer, from all tools.
fn functions(request: &Value) -> impl Iterator<Item = &Value> {
    list(&request["tools"]).flat_map(|tool| list(&tool["functionDeclarations"]))
}

/// Models of this generation want the signature of every step back.
fn wants_signatures(model: &str) -> bool {
    model.starts_with("gemini-3")
}

fn text_of(content: &Value) -> String {
    let spoken = list(&content["parts"]).filter(|part| part["thought"] != true);
    spoken.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn conversation<'r>(call: &'r Call<'_>, request: &'r Value) -> Conversation<'r> {
    let mut conversation = Conversation::new(call.wire, call.model());
    if !request["systemInstruction"].is_null() {
        conversation.say(Speaker::System, text_of(&request["systemInstruction"]));
    }
    for content in list(&request["contents"]) {
        if content["role"] == "model" {
            // What came in pieces may come back in pieces.
            match conversation.messages.last_mut().filter(|last| last.by == Speaker::Model) {
                Some(last) => last.text.to_mut().push_str(&text_of(content)),
                None => conversation.say(Speaker::Model, text_of(content)),
            }
            continue;
        }
        let results: Vec<_> =
            list(&content["parts"]).filter_map(|part| part.get("functionResponse")).collect();
        for result in &results {
            conversation.say(Speaker::Tool, result["response"].to_string());
        }
        let text = text_of(content);
        if !text.is_empty() || results.is_empty() {
            conversation.say(Speaker::User, text);
        }
    }
    conversation.tools.extend(functions(request).filter_map(|function| function["name"].as_str()));
    conversation.stream = call.parts.uri.path().ends_with(":streamGenerateContent");
    conversation.wishes.thinking = request["generationConfig"]["thinkingConfig"]["includeThoughts"] == true;
    conversation.fingerprint = signature::hash(&request["contents"].to_string());
    conversation
}

fn error(trouble: &Trouble<'_>) -> (StatusCode, Value) {
    match trouble {
        Trouble::Invalid(violation) if violation.rule == Rule::Authorization => {
            shaped(403, "PERMISSION_DENIED", &violation.message, json!([]))
        }
        Trouble::Invalid(violation) => {
            let (field, description) = (&violation.param, &violation.message);
            let details = json!([{
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{ "field": field, "description": description }],
            }]);
            shaped(400, "INVALID_ARGUMENT", &format!("{field}: {description}"), details)
        }
        Trouble::NotFound(message) => shaped(404, "NOT_FOUND", message, json!([])),
        Trouble::Unauthorized => {
            let details = json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
            }]);
            shaped(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", details)
        }
        Trouble::RateLimited(hint) => {
            let mut details = vec![quota("GenerateRequestsPerMinutePerProjectPerModel")];
            details.extend(hint.duration().map(
                |delay| json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay }),
            ));
            shaped(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted", json!(details))
        }
        Trouble::Quota => {
            let details = json!([quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")]);
            shaped(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", details)
        }
        Trouble::ServerError => shaped(500, "INTERNAL", "An internal error has occurred.", json!([])),
        Trouble::Unavailable => {
            shaped(503, "UNAVAILABLE", "The service is currently unavailable.", json!([]))
        }
        Trouble::Overloaded => shaped(503, "UNAVAILABLE", "The model is overloaded.", json!([])),
        Trouble::ContextLength => {
            let message =
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
            shaped(400, "INVALID_ARGUMENT", message, json!([]))
        }
        Trouble::Blocked => shaped(400, "INVALID_ARGUMENT", "The prompt was blocked.", json!([])),
    }
}

fn quota(id: &str) -> Value {
    let violation = json!({ "quotaId": id, "quotaMetric": "generativelanguage.googleapis.com/requests" });
    json!({ "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation] })
}

fn shaped(status: u16, name: &str, message: &str, details: Value) -> (StatusCode, Value) {
    let error = json!({ "code": status, "message": message, "status": name, "details": details });
    (StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), json!({ "error": error }))
}
