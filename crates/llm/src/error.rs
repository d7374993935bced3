//! What a vendor says when it doesn't answer. They differ less than their manuals do: nearly all send
//! `{"error": {"message", "type" or "code" or "status"}}`, and the same words mean the same.

use std::time::Duration;

use ostler_kernel::Failure;
use ostler_net::{Response, StatusCode};
use serde_json::Value;

use crate::{call::Peer, failure};

/// As much of an error's body as is looked at.
const MAX_BODY: usize = 64 * 1024;

/// An answer with an error status.
pub(crate) async fn read(peer: &Peer, mut response: Response) -> Failure {
    let status = response.status();
    let retry_after = response.retry_after();
    let body = response.beginning(MAX_BODY).await;
    match serde_json::from_slice::<Value>(&body) {
        Ok(body) => of_value(peer, status, &body, retry_after),
        Err(_) => {
            let failure = failure::of_status(&peer.endpoint, status, &peer.quote(&body), retry_after);
            by_phrase(peer, status, &String::from_utf8_lossy(&body), failure)
        }
    }
}

/// An answer of a kind that nobody asked for, such as the page of a proxy.
pub(crate) async fn not_an_answer(peer: &Peer, (mut body, mut response): (Vec<u8>, Response)) -> Failure {
    let media_type = response.media_type().unwrap_or_default().to_owned();
    body.extend_from_slice(&response.beginning(MAX_BODY).await);
    failure::bad_answer(&peer.endpoint, format_args!("it is {media_type}: {}", peer.quote(&body)))
}

/// An error in the place of an event or of an answer, under a status that said all is well.
pub(crate) fn in_answer(peer: &Peer, error: &Value) -> Failure {
    let number = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let by_word = || words(error).find_map(|word| STATUSES.iter().find(|(known, _)| word.starts_with(known)));
    let status = match number.filter(|code| (400..600).contains(code)) {
        Some(code) => code,
        None => by_word().map_or(500, |(_, status)| *status),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    of_value(peer, status, error, None)
}

/// What a status would have said, had there been one.
const STATUSES: [(&str, u16); 14] = [
    ("rate_limit", 429),
    ("RESOURCE_EXHAUSTED", 429),
    ("overloaded", 529),
    ("UNAVAILABLE", 503),
    ("DEADLINE_EXCEEDED", 504),
    ("timeout", 504),
    ("invalid_request", 400),
    ("invalid_prompt", 400),
    ("INVALID_ARGUMENT", 400),
    ("authentication", 401),
    ("UNAUTHENTICATED", 401),
    ("permission", 403),
    ("PERMISSION_DENIED", 403),
    ("billing", 402),
];

/// Words by which vendors name what no status tells, and what no waiting helps against.
const WORDS: [(&str, &str); 9] = [
    ("context_length_exceeded", "model_context_overflow"),
    ("request_too_large", "model_context_overflow"),
    ("insufficient_quota", "model_quota_exhausted"),
    ("billing_error", "model_quota_exhausted"),
    ("billing_hard_limit_reached", "model_quota_exhausted"),
    ("content_filter", "model_content_filter"),
    ("content_policy_violation", "model_content_filter"),
    ("invalid_prompt", "model_content_filter"),
    ("API_KEY_INVALID", "model_auth"),
];

/// Where a vendor has no word for it, its sentence is all there is.
const PHRASES: [(&str, &str); 11] = [
    ("prompt is too long", "model_context_overflow"),
    ("prompt too long", "model_context_overflow"),
    ("maximum context length", "model_context_overflow"),
    ("exceed context limit", "model_context_overflow"),
    ("exceeds the maximum number of tokens", "model_context_overflow"),
    ("exceeds the context length", "model_context_overflow"),
    ("exceeds the available context size", "model_context_overflow"),
    ("credit balance is too low", "model_quota_exhausted"),
    ("api key not valid", "model_auth"),
    ("content management policy", "model_content_filter"),
    ("content filtering policy", "model_content_filter"),
];

/// The vendor's `{"error": ...}`, or what its imitators make of it.
fn of_value(peer: &Peer, status: StatusCode, body: &Value, retry_after: Option<Duration>) -> Failure {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
    let said = [error, &error["message"], &error["detail"]].into_iter().find_map(Value::as_str);
    let quoted = match said {
        Some(said) => peer.quote(said.as_bytes()),
        None => peer.quote(error.to_string().as_bytes()),
    };
    let retry_after = retry_after.or_else(|| retry_info(error));
    let failure = failure::of_status(&peer.endpoint, status, &quoted, retry_after);
    let by_word = words(error).find_map(|word| WORDS.iter().find(|(known, _)| word == *known));
    match by_word {
        Some((_, code)) => Failure::permanent(*code, failure.message),
        None if is_daily_quota(error) => Failure::permanent("model_quota_exhausted", failure.message),
        None => by_phrase(peer, status, said.unwrap_or_default(), failure),
    }
}

/// Only what was refused for good is looked at: what may pass by itself is tried again whatever it says.
fn by_phrase(peer: &Peer, status: StatusCode, said: &str, failure: Failure) -> Failure {
    if failure.is_retryable() && status != StatusCode::INTERNAL_SERVER_ERROR {
        return failure;
    }
    let said = said.to_lowercase();
    if let Some((_, code)) = PHRASES.iter().find(|(phrase, _)| said.contains(phrase)) {
        return Failure::permanent(*code, failure.message);
    }
    let is_about_images =
        peer.has_images && ["image", "vision", "multimodal"].iter().any(|word| said.contains(word));
    match is_about_images && status.is_client_error() && failure.code == "model_bad_request" {
        true => Failure::permanent("model_image_refused", failure.message),
        false => failure,
    }
}

/// Everything in an error that may be its name.
fn words(error: &Value) -> impl Iterator<Item = &str> {
    let own = ["code", "type", "status"].into_iter().filter_map(|name| error.get(name)?.as_str());
    let inner = error.get("innererror").and_then(|inner| inner.get("code")?.as_str());
    let reasons = details(error).filter_map(|detail| detail.get("reason")?.as_str());
    own.chain(inner).chain(reasons)
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error.get("details").and_then(Value::as_array).into_iter().flatten()
}

/// `google.rpc.QuotaFailure` about what is counted by the day: no waiting of ours helps.
fn is_daily_quota(error: &Value) -> bool {
    let violations = details(error).filter_map(|detail| detail.get("violations")?.as_array()).flatten();
    let mut ids = violations.filter_map(|violation| violation.get("quotaId")?.as_str());
    ids.any(|id| id.contains("PerDay"))
}

/// `google.rpc.RetryInfo`: `"retryDelay": "13.5s"`.
fn retry_info(error: &Value) -> Option<Duration> {
    let text = details(error).find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(status: u16, body: Value, code: &str, retry_after: Option<u64>) {
        let status = StatusCode::from_u16(status).unwrap();
        let failure = of_value(&Peer::for_test(), status, &body, None);
        assert_eq!((failure.code.as_str(), failure.retry_after_ms), (code, retry_after), "{failure}");
        assert!(!failure.message.contains("hush-hush"), "{failure}");
    }

    #[test]
    fn each_vendors_words_have_our_code() {
        let anthropic =
            |kind: &str, said: &str| json!({"type": "error", "error": {"type": kind, "message": said}});
        let long = "prompt is too long: 210000 tokens > 200000 maximum";
        check(400, anthropic("invalid_request_error", long), "model_context_overflow", None);
        check(400, anthropic("invalid_request_error", "no hush-hush"), "model_bad_request", None);
        check(413, anthropic("request_too_large", "too large"), "model_context_overflow", None);
        check(529, anthropic("overloaded_error", "Overloaded"), "model_overloaded", None);
        check(400, anthropic("x", "Your credit balance is too low"), "model_quota_exhausted", None);
        check(402, anthropic("billing_error", "pay"), "model_quota_exhausted", None);
        let google = |status: &str, said: &str, details: Value| json!({"error": {"code": 429, "status": status, "message": said, "details": details}});
        let info = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}]);
        check(429, google("RESOURCE_EXHAUSTED", "slow", info.clone()), "model_rate_limited", Some(1500));
        check(429, json!([google("RESOURCE_EXHAUSTED", "slow", info)]), "model_rate_limited", Some(1500));
        let daily = json!([{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}]);
        check(429, google("RESOURCE_EXHAUSTED", "no more today", daily), "model_quota_exhausted", None);
        let reason = json!([{"reason": "API_KEY_INVALID"}]);
        check(400, google("INVALID_ARGUMENT", "no", reason), "model_auth", None);
        let said = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
        check(400, google("INVALID_ARGUMENT", said, json!([])), "model_context_overflow", None);
        let azure = json!({"error": {"code": "content_filter", "message": "filtered", "innererror":
            {"code": "ResponsibleAIPolicyViolation"}}});
        check(400, azure, "model_content_filter", None);
        check(
            400,
            json!({"error": "the input length exceeds the context length"}),
            "model_context_overflow",
            None,
        );
        check(404, json!({"error": "model 'x' not found"}), "model_not_found", None);
    }

    #[test]
    fn an_error_in_an_answer_is_judged_by_its_words() {
        let code = |error: Value| in_answer(&Peer::for_test(), &error).code;
        assert_eq!(code(json!({"type": "overloaded_error"})), "model_overloaded");
        assert_eq!(code(json!({"type": "rate_limit_error"})), "model_rate_limited");
        assert_eq!(code(json!({"code": "rate_limit_exceeded"})), "model_rate_limited");
        assert_eq!(code(json!({"code": 503, "status": "UNAVAILABLE"})), "model_overloaded");
        assert_eq!(code(json!({"status": "UNAVAILABLE"})), "model_overloaded");
        assert_eq!(code(json!({"type": "invalid_request_error"})), "model_bad_request");
        assert_eq!(code(json!("something broke")), "model_server_error");
    }

    #[test]
    fn a_refusal_of_images_is_told_apart() {
        let peer = |has_images| Peer { has_images, ..Peer::for_test() };
        let said = json!({"error": "this model does not support images"});
        let code = |peer: &Peer| of_value(peer, StatusCode::BAD_REQUEST, &said, None).code;
        assert_eq!(
            (code(&peer(true)), code(&peer(false))),
            ("model_image_refused".into(), "model_bad_request".into())
        );
    }
}
