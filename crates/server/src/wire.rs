//! What goes over the wire, made from the kernel's types by plain conversions.

pub mod event;
pub mod history;
pub mod list;
pub mod log_line;
pub mod message;
pub mod output;
pub mod task;
pub mod trace;
pub mod worker;
