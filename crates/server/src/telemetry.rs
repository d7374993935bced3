//! What the server logs, one line for each happening.

use std::{fmt, io, net::IpAddr};

use ostler_control::{ControlError, store::StoreError};

pub fn store_failed(error: &StoreError) {
    tracing::error!(%error, "the store could not serve a request");
}

pub fn stream_failed(error: &ControlError) {
    tracing::error!(%error, "a stream could not go on");
}

pub fn accept_failed(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
}

/// Mostly clients that went away.
pub fn connection_failed(error: &dyn fmt::Display) {
    tracing::debug!(%error, "a connection ended early");
}

/// Whoever it was spoke neither HTTP nor, where it is asked for, TLS.
pub fn not_begun(error: &io::Error) {
    tracing::debug!(%error, "a connection came to nothing");
}

pub fn listening(url: &str) {
    tracing::info!(url, "listening");
}

pub fn not_removed(what: &str, error: &dyn fmt::Display) {
    tracing::warn!(what, %error, "can't remove a file");
}

pub fn not_closed(error: &dyn fmt::Display) {
    tracing::error!(%error, "the store was not closed in good order");
}

pub fn keys_not_read(error: &dyn fmt::Display) {
    tracing::warn!(%error, "the keys of secrets could not be turned");
}

pub fn sign_in_refused(from: IpAddr) {
    tracing::warn!(%from, "someone tried to sign in and was refused");
}

pub fn token_created(name: &str, by: &str) {
    tracing::info!(name, by, "a token was made");
}

pub fn token_deleted(name: &str, by: &str) {
    tracing::info!(name, by, "a token was taken away");
}

pub fn user_created(name: &str, by: &str) {
    tracing::info!(name, by, "a user was made");
}

pub fn user_changed(name: &str, by: &str) {
    tracing::info!(name, by, "a user was changed");
}

pub fn user_deleted(name: &str, by: &str) {
    tracing::info!(name, by, "a user was deleted");
}

pub fn password_reset(name: &str, by: &str) {
    tracing::info!(name, by, "a user was given another password");
}
