//! What can go wrong between us and a model, for the reference.

use ostler_kernel::error_code::ErrorCode;

pub const CODES: [ErrorCode; 26] = [
    ErrorCode::new(
        "model_unreachable",
        "The endpoint's host was not found, or took no connection.",
        "Check `base_url`, and that the worker's machine reaches it. Tried again by itself.",
    ),
    ErrorCode::new(
        "model_timeout",
        "The endpoint took too long to answer.",
        "Tried again by itself; if it goes on, look at the vendor's status.",
    ),
    ErrorCode::new(
        "model_too_slow",
        "The answer was still coming when its time in all was over.",
        "Raise `timeout_ms` in the endpoint's `options`, or bound the answer with `max_tokens`. An attempt of the run asks once.",
    ),
    ErrorCode::new(
        "model_stream_cut",
        "The answer broke off.",
        "Tried again by itself; if it goes on, look for a proxy in between that cuts long answers.",
    ),
    ErrorCode::new(
        "model_bad_answer",
        "What came back is not what this provider's wire promises.",
        "Check that `provider` and `base_url` belong together. Tried again by itself.",
    ),
    ErrorCode::new(
        "model_rate_limited",
        "The vendor answered 429.",
        "Tried again by itself, after the time that the vendor asks for. A Quota keeps you below the limit.",
    ),
    ErrorCode::new(
        "model_overloaded",
        "The vendor answered 503 or 529.",
        "Tried again by itself; give the task a `retry` with a longer `backoff`.",
    ),
    ErrorCode::new(
        "model_endpoint_busy",
        "The endpoint is at the `limits` of its ModelEndpoint, and no turn came in time.",
        "The run sleeps and comes back by itself, without using a retry. Raise the limits, or start fewer tasks at once.",
    ),
    ErrorCode::new(
        "model_circuit_open",
        "The endpoint failed too often in a row, and is left alone for a while.",
        "Tried again by itself; look at the errors before this one. `breaker` in the ModelEndpoint says how often and how long.",
    ),
    ErrorCode::new(
        "model_server_error",
        "The vendor answered with another 5xx.",
        "Tried again by itself; the message says what the vendor said.",
    ),
    ErrorCode::new(
        "model_auth",
        "The vendor answered 401 or 403: the key is missing, wrong, or may not use this model.",
        "Check the secret that `auth.secretRef` names, where the worker runs.",
    ),
    ErrorCode::new(
        "model_not_found",
        "The vendor answered 404: there is no such model, or no such address.",
        "Check `default_model` and `base_url`.",
    ),
    ErrorCode::new(
        "model_bad_request",
        "The vendor refused the request; the message says why.",
        "Check the endpoint's `options` and the schemas of the agent's tools.",
    ),
    ErrorCode::new(
        "model_context_overflow",
        "The conversation is longer than the model can read.",
        "Begin another session, lower `limits.max_tool_output`, or use a model with a larger context.",
    ),
    ErrorCode::new(
        "model_quota_exhausted",
        "The vendor's account has no credit left.",
        "No waiting helps: see to the account.",
    ),
    ErrorCode::new(
        "model_answer_too_large",
        "The answer is larger than is read.",
        "Ask for less, or bound the output tokens in the endpoint's `options`.",
    ),
    ErrorCode::new(
        "model_image_refused",
        "The model, or its provider, can't be shown an image of this kind, or none at all.",
        "Use a model that can see, or a PNG or JPEG.",
    ),
    ErrorCode::new(
        "model_insecure",
        "No encrypted connection to the endpoint came about; the message says why.",
        "Check its certificate, and who the worker's machine believes.",
    ),
    ErrorCode::new(
        "model_address_refused",
        "The endpoint lies at a private address.",
        "If that is meant, set `allowPrivate: true` in the ModelEndpoint.",
    ),
    ErrorCode::new(
        "model_redirected",
        "The endpoint answered with another address, where a key is not sent.",
        "Put the address that it names into `base_url`.",
    ),
    ErrorCode::new("model_bad_endpoint", "The address can't be called at all.", "Correct `base_url`."),
    ErrorCode::new(
        "model_provider_unknown",
        "The ModelEndpoint names a provider that this version doesn't have.",
        "Use one of those that the message lists.",
    ),
    ErrorCode::new(
        "model_option_unknown",
        "The ModelEndpoint has an option that its provider doesn't know.",
        "Remove it, or use one of those that the message lists.",
    ),
    ErrorCode::new(
        "model_option_invalid",
        "An option of the ModelEndpoint has a value that can't be used.",
        "The message says what is expected.",
    ),
    ErrorCode::new(
        "secret_not_found",
        "The secret that an endpoint names is in none of the variables that were looked at, or is empty.",
        "Set one of the variables that the message lists, where the worker is started.",
    ),
    ErrorCode::new(
        "secret_invalid",
        "The secret holds characters that can't stand in a header.",
        "Look for a line break or a stray character in it.",
    ),
];
