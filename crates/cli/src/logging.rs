//! What servers and workers log, and how: to stderr, as text for people or JSON for machines.

use std::io;

use tracing_subscriber::{EnvFilter, fmt};

use crate::{error::CommandError, terminal::Terminal};

/// Logs from here on, what the filter lets through.
pub fn start(is_json: bool, filter: &str, terminal: Terminal) -> Result<(), CommandError> {
    let failed = |error: &dyn std::fmt::Display| CommandError::error(format!("can't log: {error}"));
    let filter = EnvFilter::try_new(filter).map_err(|error| failed(&error))?;
    let logger = fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = if is_json {
        logger.json().flatten_event(true).try_init()
    } else {
        logger.with_ansi(terminal.stderr.has_colour).try_init()
    };
    started.map_err(|error| failed(&error))
}
