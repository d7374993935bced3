//! What goes over the wire, made from the kernel's types by plain conversions.

pub mod list;
pub mod log_line;
pub mod task;
pub mod worker;
