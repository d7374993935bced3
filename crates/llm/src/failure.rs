//! What goes wrong between us and any vendor, as failures with stable codes.

use std::time::Duration;

use ostler_kernel::Failure;
use ostler_net::{NetError, StatusCode, Waiting};

/// The connection failed, before or within the answer.
pub(crate) fn of_net(endpoint: &str, error: &NetError) -> Failure {
    let message = format!("endpoint `{endpoint}`: {}", error.explain());
    match error {
        NetError::Timeout { waiting: Waiting::Total, .. } => Failure::transient("model_too_slow", message),
        NetError::Timeout { .. } => Failure::transient("model_timeout", message),
        NetError::Cut { .. } => Failure::transient("model_stream_cut", message),
        NetError::NotHttp { .. } => Failure::transient("model_bad_answer", message),
        NetError::Dns { .. } | NetError::Connect { .. } => Failure::transient("model_unreachable", message),
        NetError::Tls { .. } => Failure::permanent("model_insecure", message),
        NetError::TooLarge { .. } => Failure::permanent("model_answer_too_large", message),
        NetError::RefusedAddress { .. } => Failure::permanent("model_address_refused", message),
        NetError::Redirect { .. } | NetError::Redirected { .. } => {
            Failure::permanent("model_redirected", message)
        }
        NetError::BadUrl { .. } | NetError::BadSetting { .. } | NetError::Setup { .. } => {
            Failure::permanent("model_bad_endpoint", message)
        }
    }
}

/// The vendor answered with an error status, and `said` this.
pub(crate) fn of_status(
    endpoint: &str,
    status: StatusCode,
    said: &str,
    retry_after: Option<Duration>,
) -> Failure {
    let answered = format!("endpoint `{endpoint}` answered {}", ostler_net::status_text(status));
    let message = match said {
        "" => answered,
        said => format!("{answered}: {said}"),
    };
    let failure = match status.as_u16() {
        408 => Failure::transient("model_timeout", message),
        429 => Failure::transient("model_rate_limited", message),
        503 | 529 => Failure::transient("model_overloaded", message),
        500..=599 => Failure::transient("model_server_error", message),
        401 | 403 => Failure::permanent("model_auth", message),
        402 => Failure::permanent("model_quota_exhausted", message),
        413 => Failure::permanent("model_context_overflow", message),
        404 => Failure::permanent("model_not_found", message),
        _ => Failure::permanent("model_bad_request", message),
    };
    failure.with_retry_after(retry_after)
}

/// The answer is not what the vendor's wire promises. Vendors are rarely broken for long, so it is worth
/// another try.
pub(crate) fn bad_answer(endpoint: &str, what: impl std::fmt::Display) -> Failure {
    Failure::transient("model_bad_answer", format!("endpoint `{endpoint}` gave no usable answer: {what}"))
}

pub(crate) fn stream_cut(endpoint: &str) -> Failure {
    Failure::transient("model_stream_cut", format!("endpoint `{endpoint}` broke off its answer"))
}

pub(crate) fn too_large(endpoint: &str, max: usize) -> Failure {
    Failure::permanent(
        "model_answer_too_large",
        format!("the answer of endpoint `{endpoint}` is larger than {max} bytes"),
    )
}

/// An option that the vendor's wire doesn't have.
pub(crate) fn unknown_option(endpoint: &str, option: &str, known: &[&str]) -> Failure {
    let meant = ostler_spec::nearest(option, known.iter().copied());
    let meant = meant.map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default();
    let known = known.join(", ");
    let message = format!("endpoint `{endpoint}` has the option `{option}`{meant}; known are {known}");
    Failure::permanent("model_option_unknown", message)
}

pub(crate) fn invalid_option(endpoint: &str, option: &str, expected: &str) -> Failure {
    let message = format!("the option `{option}` of endpoint `{endpoint}` must be {expected}");
    Failure::permanent("model_option_invalid", message)
}

/// An image of a kind that the vendor's models are not shown.
pub(crate) fn image_refused(endpoint: &str, media_type: &str) -> Failure {
    let message = format!("endpoint `{endpoint}` can't be shown an image of the type {media_type}");
    Failure::permanent("model_image_refused", message)
}

/// Where the vendor has no address of its own.
pub(crate) fn no_base_url(endpoint: &str, example: &str) -> Failure {
    let message = format!(
        "endpoint `{endpoint}` has no `base_url`, and its provider has no default: set one, such as {example}"
    );
    Failure::permanent("model_bad_endpoint", message)
}
