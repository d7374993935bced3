//! Every code that a task's failure may have, for the reference.

use ostler_agent::{llm, tools};
use ostler_kernel::error_code::{self, ErrorCode};

pub fn codes() -> impl Iterator<Item = ErrorCode> {
    let own = error_code::CODES.into_iter().chain(ostler_agent::CODES);
    own.chain(llm::CODES).chain(llm::secrets::CODES).chain(tools::codes())
}
