//! What the reference says about a code: what brings it about, and the way out. Each crate lists its own in its
//! `codes.rs`; a test fails on a code that is sent and not listed, and on one that is listed and never sent.

/// A stable word for something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    pub code: &'static str,
    pub cause: &'static str,
    pub remedy: &'static str,
}

impl ErrorCode {
    pub const fn new(code: &'static str, cause: &'static str, remedy: &'static str) -> Self {
        Self { code, cause, remedy }
    }
}

/// What ends a task from outside, whatever its agent was doing.
pub const CODES: [ErrorCode; 3] = [
    ErrorCode::new(
        "cancelled",
        "Someone cancelled the task.",
        "None is needed; `ostler retry` makes a new task that repeats it.",
    ),
    ErrorCode::new(
        "deadline_exceeded",
        "The task's deadline passed before it was done, waiting included.",
        "Give it more time with `deadline`, or look with `ostler trace` where the time went: a long queue wants more \
         workers or a higher `priority`.",
    ),
    ErrorCode::new(
        "run_too_large",
        "What the session holds, together with the agent's plan, is more than a worker can be sent at once (64 MiB).",
        "Go on in another session, with fewer large messages and images in it; lower `limits.max_tool_output`, so that tools \
         fill less of it.",
    ),
];
