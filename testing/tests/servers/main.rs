//! The scripted servers, seen from the wire: a raw client proves that each fault looks as stated and that the
//! validator catches each violation. A testing ground that lies is worse than none.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "this whole crate is tests")]

mod anthropic;
mod binaries;
mod client;
mod control;
mod faults;
mod plans;
mod scripts;
mod tools;
mod validator;
mod wires;
