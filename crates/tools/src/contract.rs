//! The answer envelope of the tool contract, version 1. A tool called over plain HTTP may use it, or just
//! answer.

use std::{borrow::Cow, collections::BTreeMap};

use ostler_kernel::Failure;
use ostler_secrets::Redactor;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use crate::taxonomy::ToolCode;

/// Characters of what a tool said that are told.
pub(crate) const MAX_QUOTED: usize = 300;

/// What an envelope says; none if the body is not one.
pub(crate) fn read(body: &[u8], redactor: &Redactor) -> Option<Result<String, Failure>> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).ok()?;
    let is_marked =
        envelope.tool_contract_version.is_some() || envelope.output.is_some() || envelope.error.is_some();
    match &*envelope.status {
        _ if !is_marked => None,
        "ok" => Some(Ok(envelope.output.map(output).unwrap_or_default())),
        "error" => Some(Err(failure(envelope.error, ToolCode::ExecutionFailed, redactor))),
        "denied" => Some(Err(failure(envelope.error, ToolCode::PermissionDenied, redactor))),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Envelope<'b> {
    #[serde(borrow)]
    status: Cow<'b, str>,
    tool_contract_version: Option<IgnoredAny>,
    #[serde(borrow)]
    output: Option<&'b RawValue>,
    #[serde(borrow)]
    error: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct WireError {
    #[serde(default)]
    code: String,
    retryable: Option<bool>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: BTreeMap<String, Value>,
}

/// The text of `output.result`, or of whatever stands in its place.
fn output(output: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Output<'b> {
        #[serde(borrow)]
        result: &'b RawValue,
    }
    let result = serde_json::from_str::<Output<'_>>(output.get()).map_or(output, |output| output.result);
    serde_json::from_str::<String>(result.get()).unwrap_or_else(|_| result.get().to_owned())
}

fn failure(error: Option<&RawValue>, otherwise: ToolCode, redactor: &Redactor) -> Failure {
    let excerpt = |text: &str| redactor.excerpt(text.as_bytes(), MAX_QUOTED);
    let Some(error) = error else {
        return otherwise.failure(false, "tool response missing error envelope");
    };
    let Ok(error) = serde_json::from_str::<WireError>(error.get()) else {
        return otherwise.failure(false, excerpt(error.get()));
    };
    // Only codes of the contract: others could pass for our own, which decide about runs.
    let known = ToolCode::parse(&error.code.trim().to_lowercase());
    let code = known.unwrap_or(otherwise);
    let mut message = match error.message.trim() {
        "" => code.reason().to_owned(),
        message => excerpt(message),
    };
    if known.is_none() && !error.code.trim().is_empty() {
        message.push_str(&format!(" code={}", excerpt(&error.code)));
    }
    for (name, value) in &error.details {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        message.push_str(&format!(" {}={}", excerpt(name), excerpt(&value)));
    }
    code.failure(error.retryable.unwrap_or(code.is_retryable()), message)
}

#[cfg(test)]
mod tests {
    use ostler_kernel::ErrorClass;

    use super::*;

    #[track_caller]
    fn check_ok(body: &str, expected: &str) {
        assert_eq!(read(body.as_bytes(), &Redactor::default()).unwrap().unwrap(), expected);
    }

    #[track_caller]
    fn check_error(body: &str, class: ErrorClass, code: &str, message: &str) {
        let failure = read(body.as_bytes(), &Redactor::default()).unwrap().unwrap_err();
        assert_eq!(failure, Failure::new(class, code, message));
    }

    #[test]
    fn a_good_result_is_unwrapped() {
        check_ok(r#"{"tool_contract_version":"v1","status":"ok","output":{"result":"a\nb"}}"#, "a\nb");
        check_ok(r#"{"status":"ok","output":{"result":{"n": 1}}}"#, r#"{"n": 1}"#);
        check_ok(r#"{"status":"ok","output":{"n": 1}}"#, r#"{"n": 1}"#);
        check_ok(r#"{"status":"ok","output":"plain"}"#, "plain");
        check_ok(r#"{"status":"ok","tool_contract_version":"v1"}"#, "");
    }

    #[test]
    fn an_error_is_typed() {
        use ErrorClass::{Permanent, Transient};
        let error = |error: &str| format!(r#"{{"status":"error","error":{error}}}"#);
        check_error(
            &error(r#"{"code":"timeout","retryable":true,"message":"slow","details":{"z":1,"a":"b"}}"#),
            Transient,
            "timeout",
            "slow a=b z=1",
        );
        check_error(&error(r#"{"code":"AUTH_INVALID","message":"no"}"#), Permanent, "auth_invalid", "no");
        check_error(&error(r#"{"message":"boom"}"#), Transient, "execution_failed", "boom");
        check_error(&error(r#"{"retryable":false}"#), Permanent, "execution_failed", "tool_backend_failure");
        check_error(&error(r#""just a text""#), Permanent, "execution_failed", "\"just a text\"");
        check_error(
            r#"{"status":"error","tool_contract_version":"v1"}"#,
            Permanent,
            "execution_failed",
            "tool response missing error envelope",
        );
        check_error(
            r#"{"status":"denied","error":{"message":"not you"}}"#,
            Permanent,
            "permission_denied",
            "not you",
        );
    }

    #[test]
    fn a_tool_can_not_use_codes_that_are_ours() {
        let body = r#"{"status":"error","error":{"code":"max_steps","message":"ha","retryable":false}}"#;
        check_error(body, ErrorClass::Permanent, "execution_failed", "ha code=max_steps");
    }

    #[test]
    fn other_answers_are_no_envelopes() {
        let bodies = [
            "",
            "plain text",
            "[1]",
            r#"{"n":1}"#,
            r#"{"status":"ok"}"#,
            r#"{"status":"shipped","output":1}"#,
            r#"{"status":200,"output":1}"#,
            r#"{"output":{"result":"x"}}"#,
        ];
        for body in bodies {
            assert!(read(body.as_bytes(), &Redactor::default()).is_none(), "{body}");
        }
    }
}
