//! Every code that a task's failure may have, for the reference.

use ostler_agent::{llm, tools};
use ostler_kernel::error_code::{self, ErrorCode};

/// What ends a run between its agent and the server.
const CODES: [ErrorCode; 1] = [ErrorCode::new(
    "step_too_large",
    "What a step gave, or several at once, is more than a worker can send to its server (64 MiB).",
    "Lower `limits.max_tool_output`, or bound the output tokens in the endpoint's `options`.",
)];

pub fn codes() -> impl Iterator<Item = ErrorCode> {
    let own = error_code::CODES.into_iter().chain(CODES).chain(ostler_agent::CODES);
    own.chain(llm::CODES).chain(llm::secrets::CODES).chain(tools::codes())
}
