//! Answers in tool contract v1, to requests in it and to raw ones.

use serde_json::{Value, json};

use super::behaviour::Call;
use crate::loopback::query_value;

/// The envelope that answers a call.
pub(super) fn answer(call: &Call<'_>) -> Value {
    let raw = String::from_utf8_lossy(&call.body);
    let request: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    let is_envelope = request.get("tool_contract_version").is_some();
    let request_id = request["request_id"].as_str().unwrap_or(if is_envelope { "" } else { call.request_id });
    let attempt = request["attempt"].as_u64().unwrap_or(1).max(1);
    let mut answer = json!({
        "tool_contract_version": "v1",
        "request_id": request_id,
        "status": "ok",
        "usage": { "duration_ms": 0, "attempt": attempt },
    });
    let failure = if is_envelope { unsound(&request) } else { None };
    if let Some(failure) = failure.or_else(|| asked_failure(call.query)) {
        answer["status"] = failure.status.into();
        answer["error"] = failure.error;
        return answer;
    }
    let input = if is_envelope { effective_input(&request) } else { raw.into_owned() };
    answer["output"] = json!({ "result": input });
    answer
}

struct Failure {
    status: String,
    error: Value,
}

/// What the contract asks of a request.
fn unsound(request: &Value) -> Option<Failure> {
    let version = request["tool_contract_version"].as_str().unwrap_or_default();
    let field = if !matches!(version.to_ascii_lowercase().as_str(), "" | "v1") {
        "tool_contract_version"
    } else if request["request_id"].as_str().unwrap_or_default().is_empty() {
        "request_id"
    } else if request["tool"]["name"].as_str().unwrap_or_default().is_empty() {
        "tool.name"
    } else {
        return None;
    };
    let error = json!({
        "code": "invalid_input",
        "reason": "tool_invalid_input",
        "retryable": false,
        "message": format!("{field} is missing or wrong"),
        "details": { "field": field },
    });
    Some(Failure { status: "error".to_owned(), error })
}

/// The failure that the query asks for.
fn asked_failure(query: Option<&str>) -> Option<Failure> {
    let status = query_value(query, "status").filter(|status| *status != "ok")?;
    let default_code = if status == "denied" { "permission_denied" } else { "execution_failed" };
    let code = query_value(query, "code").unwrap_or(default_code);
    let retryable = match query_value(query, "retryable") {
        Some(value) => value == "true",
        None => matches!(code, "timeout" | "execution_failed"),
    };
    let error = json!({
        "code": code,
        "reason": reason(code),
        "retryable": retryable,
        "message": "asked to fail",
    });
    Some(Failure { status: status.to_owned(), error })
}

fn reason(code: &str) -> String {
    match code {
        "unsupported_tool" => "tool_unsupported".to_owned(),
        "timeout" => "tool_execution_timeout".to_owned(),
        "canceled" => "tool_execution_canceled".to_owned(),
        "execution_failed" => "tool_backend_failure".to_owned(),
        other => format!("tool_{other}"),
    }
}

/// The raw input if there is any, or else the JSON of `input`.
fn effective_input(request: &Value) -> String {
    let raw = request["input_raw"].as_str().filter(|raw| !raw.trim().is_empty());
    match (raw, request.get("input")) {
        (Some(raw), _) => raw.to_owned(),
        (None, Some(input)) => input.to_string(),
        (None, None) => String::new(),
    }
}
