//! The real server, started in process on a free port with a folder of its own, seen from the wire.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod bad_address;
mod bad_input;
mod events;
mod lifecycle;
mod link;
mod resources;
mod retention;
mod support;
mod systems;
mod tasks;
mod workers;
