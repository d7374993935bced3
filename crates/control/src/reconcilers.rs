//! What happens by itself. Each takes no input, may run on every server at once, and may be cut off anywhere:
//! what it decides counts only if it is still true.

mod due_wake;
mod lease_judge;
pub(crate) mod plan_forget;
mod retention;
