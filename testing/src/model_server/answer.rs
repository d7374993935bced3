//! A turn as an HTTP response: well-behaved, refused, or broken on its way by a fault.

mod broken;

use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::{Timestamp, ToSpan};
use serde_json::json;

use super::Asked;
use super::completion::Completion;
use super::fault::Fault;
use super::script::Turn;
use super::stream::{self, Events};
use super::validate::Violation;
use super::whole;
use crate::loopback::{Reply, Write};

/// What the server does to a request.
pub(super) enum Answer {
    /// Responds.
    Respond(Box<Response<Reply>>),
    /// Closes the connection without a byte.
    Close,
    /// Never says anything.
    Hang,
}

/// The answer to a sound request.
pub(super) fn of_turn(turn: Turn, fault: Option<Fault>, asked: &Asked<'_>) -> Answer {
    if let Some(answer) = fault.and_then(instead_of_a_turn) {
        return answer;
    }
    let (chunk, pace) = (turn.chunk, turn.pace);
    let mut completion = Completion::new(turn, asked);
    if let Some(fault) = fault {
        completion.apply(fault, asked.request);
    }
    let mut response = if asked.request.stream {
        let include_usage =
            asked.request.stream_options.as_ref().is_some_and(|options| options.include_usage);
        let events = stream::render(&completion, chunk.or(fault.and_then(broken::chunk)), include_usage);
        let reply = match fault {
            Some(fault) => broken::stream(&events, fault),
            None if chunk.is_some() || !pace.is_zero() => paced(&events, pace),
            None => Reply::chunked(events.bytes),
        };
        reply.into_response(StatusCode::OK, "text/event-stream; charset=utf-8")
    } else {
        broken::whole(whole::render(&completion), fault).into_response(StatusCode::OK, "application/json")
    };
    if let Ok(id) = HeaderValue::try_from(format!("req_{}", completion.id)) {
        response.headers_mut().insert("x-request-id", id);
    }
    Answer::Respond(Box::new(response))
}

/// The answer to a request that broke a rule.
pub(super) fn of_violation(violation: &Violation) -> Response<Reply> {
    let error = json!({
        "message": format!("{}: {}", violation.param, violation.message),
        "type": "invalid_request_error",
        "param": violation.param,
        "code": violation.rule,
    });
    Reply::json(StatusCode::BAD_REQUEST, &json!({ "error": error }))
}

/// An error in the vendor's shape.
pub(super) fn error(status: StatusCode, kind: &str, code: Option<&str>, message: &str) -> Response<Reply> {
    let error = json!({ "message": message, "type": kind, "param": null, "code": code });
    Reply::json(status, &json!({ "error": error }))
}

fn instead_of_a_turn(fault: Fault) -> Option<Answer> {
    let bad_request = "invalid_request_error";
    let response = match fault {
        Fault::Close => return Some(Answer::Close),
        Fault::Hang => return Some(Answer::Hang),
        Fault::RateLimited => rate_limited(Some("1".to_owned())),
        Fault::RateLimitedDate => rate_limited(http_date_in_two_seconds()),
        Fault::RateLimitedBare => rate_limited(None),
        Fault::ServerError => {
            error(StatusCode::INTERNAL_SERVER_ERROR, "server_error", None, "the server had an error")
        }
        Fault::Overloaded => {
            let status = StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            error(status, "overloaded_error", None, "overloaded")
        }
        Fault::Unauthorized => error(
            StatusCode::UNAUTHORIZED,
            bad_request,
            Some("invalid_api_key"),
            "incorrect API key provided",
        ),
        Fault::ContextLength => {
            let message = "this model's maximum context length is 8192 tokens, the messages have more";
            error(StatusCode::BAD_REQUEST, bad_request, Some("context_length_exceeded"), message)
        }
        Fault::Html => {
            let page = "<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>";
            Reply::whole(page).into_response(StatusCode::OK, "text/html; charset=utf-8")
        }
        _ => return None,
    };
    Some(Answer::Respond(Box::new(response)))
}

fn rate_limited(retry_after: Option<String>) -> Response<Reply> {
    let (kind, code) = ("requests", Some("rate_limit_exceeded"));
    let mut response = error(StatusCode::TOO_MANY_REQUESTS, kind, code, "rate limit reached for requests");
    if let Some(value) = retry_after.and_then(|value| HeaderValue::try_from(value).ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

fn http_date_in_two_seconds() -> Option<String> {
    let then = Timestamp::now().checked_add(2.seconds()).ok()?;
    DateTimePrinter::new().timestamp_to_rfc9110_string(&then).ok()
}

/// Every event in a write of its own.
fn paced(events: &Events, pace: Duration) -> Reply {
    let before = if pace.is_zero() { Write::Flush } else { Write::Pause(pace) };
    Reply::script(events.iter().flat_map(|event| [before.clone(), Write::Bytes(event)]))
}
