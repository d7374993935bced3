//! The ways a tool can fail: each code with the reason that stands beside it, and the one line of text that
//! traces show, which other systems search.

use ostler_kernel::{ErrorClass, Failure};

/// A code of the tool contract; it is a [`Failure`]'s code too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolCode {
    InvalidInput,
    UnsupportedTool,
    RuntimePolicyInvalid,
    IsolationUnavailable,
    PermissionDenied,
    SecretResolutionFailed,
    Timeout,
    Canceled,
    ExecutionFailed,
    AuthExpired,
    AuthInvalid,
    AuthForbidden,
    ApprovalPending,
    ApprovalDenied,
    ApprovalTimeout,
}

/// Not of the contract: what a call is worth of which nobody knows whether it happened.
pub const OUTCOME_UNKNOWN: &str = "outcome_unknown";

impl ToolCode {
    pub const ALL: [ToolCode; 15] = [
        ToolCode::InvalidInput,
        ToolCode::UnsupportedTool,
        ToolCode::RuntimePolicyInvalid,
        ToolCode::IsolationUnavailable,
        ToolCode::PermissionDenied,
        ToolCode::SecretResolutionFailed,
        ToolCode::Timeout,
        ToolCode::Canceled,
        ToolCode::ExecutionFailed,
        ToolCode::AuthExpired,
        ToolCode::AuthInvalid,
        ToolCode::AuthForbidden,
        ToolCode::ApprovalPending,
        ToolCode::ApprovalDenied,
        ToolCode::ApprovalTimeout,
    ];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            ToolCode::InvalidInput => "invalid_input",
            ToolCode::UnsupportedTool => "unsupported_tool",
            ToolCode::RuntimePolicyInvalid => "runtime_policy_invalid",
            ToolCode::IsolationUnavailable => "isolation_unavailable",
            ToolCode::PermissionDenied => "permission_denied",
            ToolCode::SecretResolutionFailed => "secret_resolution_failed",
            ToolCode::Timeout => "timeout",
            ToolCode::Canceled => "canceled",
            ToolCode::ExecutionFailed => "execution_failed",
            ToolCode::AuthExpired => "auth_expired",
            ToolCode::AuthInvalid => "auth_invalid",
            ToolCode::AuthForbidden => "auth_forbidden",
            ToolCode::ApprovalPending => "approval_pending",
            ToolCode::ApprovalDenied => "approval_denied",
            ToolCode::ApprovalTimeout => "approval_timeout",
        }
    }

    pub const fn reason(self) -> &'static str {
        match self {
            ToolCode::InvalidInput => "tool_invalid_input",
            ToolCode::UnsupportedTool => "tool_unsupported",
            ToolCode::RuntimePolicyInvalid => "tool_runtime_policy_invalid",
            ToolCode::IsolationUnavailable => "tool_isolation_unavailable",
            ToolCode::PermissionDenied => "tool_permission_denied",
            ToolCode::SecretResolutionFailed => "tool_secret_resolution_failed",
            ToolCode::Timeout => "tool_execution_timeout",
            ToolCode::Canceled => "tool_execution_canceled",
            ToolCode::ExecutionFailed => "tool_backend_failure",
            ToolCode::AuthExpired => "tool_auth_expired",
            ToolCode::AuthInvalid => "tool_auth_invalid",
            ToolCode::AuthForbidden => "tool_auth_forbidden",
            ToolCode::ApprovalPending => "tool_approval_pending",
            ToolCode::ApprovalDenied => "tool_approval_denied",
            ToolCode::ApprovalTimeout => "tool_approval_timeout",
        }
    }

    /// Whether it is worth another try when the tool doesn't say.
    pub const fn is_retryable(self) -> bool {
        matches!(self, ToolCode::Timeout | ToolCode::ExecutionFailed)
    }

    const fn is_denial(self) -> bool {
        matches!(self, ToolCode::PermissionDenied | ToolCode::ApprovalDenied)
    }

    pub(crate) fn failure(self, retryable: bool, message: impl Into<String>) -> Failure {
        let class = if retryable { ErrorClass::Transient } else { ErrorClass::Permanent };
        Failure::new(class, self.name(), message)
    }
}

/// A tool's failure as one line: `tool_status=… tool_code=… tool_reason=… retryable=… message=…`.
pub fn text_form(failure: &Failure) -> String {
    let code = ToolCode::parse(&failure.code);
    let status = if code.is_some_and(ToolCode::is_denial) { "denied" } else { "error" };
    let reason = code.map_or_else(|| format!("tool_{}", failure.code), |code| code.reason().to_owned());
    // A line break in what a tool said must not begin a line of its own.
    let message = failure.message.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(
        "tool_status={status} tool_code={} tool_reason={reason} retryable={} message={message}",
        failure.code,
        failure.is_retryable(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_read_back() {
        for code in ToolCode::ALL {
            assert_eq!(ToolCode::parse(code.name()), Some(code));
            assert!(code.reason().starts_with("tool_"));
        }
        assert_eq!(ToolCode::parse("max_steps"), None);
    }

    #[test]
    fn a_failure_prints_as_one_line() {
        let failure = ToolCode::ExecutionFailed.failure(true, "boom\ntool_status=ok a=1 b=2");
        let expected = "tool_status=error tool_code=execution_failed tool_reason=tool_backend_failure \
                        retryable=true message=boom tool_status=ok a=1 b=2";
        assert_eq!(text_form(&failure), expected);
        let denied = ToolCode::PermissionDenied.failure(false, "no");
        assert!(text_form(&denied).starts_with("tool_status=denied tool_code=permission_denied "));
        let unknown = Failure::new(ErrorClass::OutcomeUnknown, OUTCOME_UNKNOWN, "?");
        assert!(text_form(&unknown).contains("tool_reason=tool_outcome_unknown retryable=false"));
    }
}
