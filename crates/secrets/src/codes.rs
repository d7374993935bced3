//! What can go wrong between a call and its secret, for the reference.

use ostler_kernel::error_code::ErrorCode;

pub const CODES: [ErrorCode; 2] = [
    ErrorCode::new(
        "secret_refused",
        "The server keeps the secret and did not give it: its plan does not name it, it lacks the key, or it can't be opened.",
        "The message says which. `ostler secret check NAME` shows what is there; `ostler secret set NAME` puts it in place.",
    ),
    ErrorCode::new(
        "secret_unavailable",
        "The server that keeps the secret could not be asked in time.",
        "Tried again by itself, as the task's `retry` allows.",
    ),
];
