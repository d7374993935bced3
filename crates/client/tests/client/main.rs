//! The client against a scripted server on loopback.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod calls;
mod follow;
mod support;
mod watch;
