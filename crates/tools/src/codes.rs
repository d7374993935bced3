//! What can go wrong with a tool, for the reference.

use ostler_kernel::error_code::ErrorCode;

use crate::taxonomy::{OUTCOME_UNKNOWN, ToolCode};

/// Every code of the contract, and our own.
pub fn codes() -> impl Iterator<Item = ErrorCode> {
    let unknown = ErrorCode::new(
        OUTCOME_UNKNOWN,
        "The call was cut off, the tool is not idempotent, and nobody knows whether it happened.",
        "Look at the tool's side. If a repetition does no harm, declare the tool `idempotent: true`.",
    );
    ToolCode::ALL.into_iter().map(described).chain([unknown])
}

fn described(code: ToolCode) -> ErrorCode {
    let (cause, remedy) = match code {
        ToolCode::InvalidInput => (
            "The model called the tool with arguments that are no JSON object, or that the tool refused.",
            "The model is told and may try again. Give the tool an `input_schema` and a clear `description`.",
        ),
        ToolCode::UnsupportedTool => (
            "The model called a tool that its agent doesn't have, or that can't be called in this way.",
            "Name the tool in the agent's `tools`, or tell the model in its prompt which ones there are.",
        ),
        ToolCode::RuntimePolicyInvalid => (
            "The tool's endpoint is no address that may be called, such as a private one.",
            "Correct `endpoint`; if the private address is meant, set `allowPrivate: true`.",
        ),
        ToolCode::IsolationUnavailable => (
            "The isolation that the tool asks for can't be had here.",
            "Use a worker that has it, or another `runtime.isolation_mode`.",
        ),
        ToolCode::PermissionDenied => (
            "The tool, or a rule, denied the call.",
            "Ask whoever decides about the tool; it is not tried again.",
        ),
        ToolCode::SecretResolutionFailed => {
            ("A secret that the tool needs was not found.", "Set the secret where the tool looks for it.")
        }
        ToolCode::Timeout => (
            "The tool took longer than `runtime.timeout`, or said so itself.",
            "Raise `runtime.timeout`, or allow more attempts in `runtime.retry`.",
        ),
        ToolCode::Canceled => {
            ("The tool says that the call was cancelled on its side.", "Look at the tool's own log.")
        }
        ToolCode::ExecutionFailed => (
            "The tool failed: an error of its own, a 4xx or 5xx, or no connection.",
            "The message says what it said. `runtime.retry` tries again what may pass by itself.",
        ),
        ToolCode::AuthExpired => {
            ("The tool says that what it was shown has expired.", "Renew the credential.")
        }
        ToolCode::AuthInvalid => (
            "The tool answered 401, or says that what it was shown is not valid.",
            "Check the credential that the tool expects.",
        ),
        ToolCode::AuthForbidden => (
            "The tool answered 403, or says that this may not be done with what it was shown.",
            "Give the credential the right to do it.",
        ),
        ToolCode::ApprovalPending => (
            "The tool says that a person has to approve the call first.",
            "Approve it there, and retry the task.",
        ),
        ToolCode::ApprovalDenied => {
            ("The tool says that a person denied the call.", "It is not tried again.")
        }
        ToolCode::ApprovalTimeout => {
            ("The tool says that nobody approved the call in time.", "Retry the task when somebody is there.")
        }
    };
    ErrorCode::new(code.name(), cause, remedy)
}
