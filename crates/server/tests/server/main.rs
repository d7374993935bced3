//! The real server, started in process on a free port with a folder of its own, seen from the wire.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod access;
mod bad_address;
mod bad_input;
mod boundaries;
mod events;
mod lifecycle;
mod limits;
mod link;
mod resources;
mod retention;
mod sign_in;
mod support;
mod tasks;
mod tokens;
mod users;
mod workers;
