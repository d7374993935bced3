//! What the vendor says when it doesn't answer.

use ostler_kernel::Failure;
use ostler_net::{Response, StatusCode};
use serde_json::Value;

use super::Peer;
use crate::failure;

/// As much of an error's body as is looked at.
const MAX_BODY: usize = 64 * 1024;

/// An answer with an error status.
pub(super) async fn read(peer: &Peer, mut response: Response) -> Failure {
    let status = response.status();
    let retry_after = response.retry_after();
    let body = response.beginning(MAX_BODY).await;
    match serde_json::from_slice::<Value>(&body) {
        Ok(body) => of_value(peer, status, &body).with_retry_after(retry_after),
        Err(_) => failure::of_status(&peer.endpoint, status, &peer.quote(&body), retry_after),
    }
}

/// An answer of a kind that nobody asked for, such as the page of a proxy.
pub(super) async fn not_an_answer(peer: &Peer, mut response: Response) -> Failure {
    let media_type = response.media_type().unwrap_or_default().to_owned();
    let body = response.beginning(MAX_BODY).await;
    failure::bad_answer(&peer.endpoint, format_args!("it is {media_type}: {}", peer.quote(&body)))
}

/// An error in the place of an event or of an answer, under a status that said all is well.
pub(super) fn in_answer(peer: &Peer, error: &Value) -> Failure {
    let word = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let number = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let status = match number.filter(|code| (400..600).contains(code)) {
        Some(code) => code,
        None if [word("type"), word("code")].iter().any(|word| word.starts_with("rate_limit")) => 429,
        None if word("type") == "overloaded_error" => 529,
        None if word("type") == "invalid_request_error" => 400,
        None => 500,
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    of_value(peer, status, error)
}

/// The vendor's `{"error": {"message", "type", "code"}}`, or what its imitators make of it.
fn of_value(peer: &Peer, status: StatusCode, body: &Value) -> Failure {
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
    let said = [error, &error["message"], &error["detail"]].into_iter().find_map(Value::as_str);
    let said = match said {
        Some(said) => peer.quote(said.as_bytes()),
        None => peer.quote(error.to_string().as_bytes()),
    };
    let failure = failure::of_status(&peer.endpoint, status, &said, None);
    let is = |word: &str| error["code"] == word || error["type"] == word;
    if is("context_length_exceeded") {
        return Failure::permanent("model_context_overflow", failure.message);
    }
    // It comes as 429, but no waiting helps before somebody pays.
    if is("insufficient_quota") {
        return Failure::permanent("model_quota_exhausted", failure.message);
    }
    failure
}
