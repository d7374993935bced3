//! The real server, started in process on a free port with a folder of its own, seen from the wire.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]
#![allow(clippy::disallowed_methods, reason = "the other end of the wire")]

mod access;
mod bad_address;
mod bad_input;
mod boundaries;
mod clocks;
mod declared;
mod description;
mod dialect;
mod endless;
mod events;
mod governance;
mod handing_out;
mod large;
mod lifecycle;
mod limits;
mod link;
mod link_trials;
mod missing;
mod namespaces;
mod observe;
mod pipeline;
mod replace;
mod resources;
mod retention;
mod secrets;
mod selecting;
mod sign_in;
mod support;
mod systems;
mod tasks;
mod templates;
mod together;
mod tokens;
mod users;
mod watches;
mod workers;
