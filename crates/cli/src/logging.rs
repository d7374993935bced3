//! What `ostler up` logs, and how: to stderr, as text for people or JSON for machines.

use std::{env, io};

use clap::ValueEnum;
use tracing_subscriber::{EnvFilter, fmt};

use crate::{error::CommandError, exit::Exit, terminal::Terminal};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

const VARIABLE: &str = "OSTLER_LOG";

/// Logs from here on. What is logged is said by `OSTLER_LOG`, or else by `default`.
pub fn start(format: LogFormat, default: &str, terminal: Terminal) -> Result<(), CommandError> {
    let written = env::var(VARIABLE).ok().filter(|written| !written.trim().is_empty());
    let directives = written.as_deref().unwrap_or(default);
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        CommandError::new(Exit::Usage, format!("{VARIABLE}={directives:?} is no filter: {error}"))
            .with_remedy("such as `info`, or `warn,ostler_worker=debug`")
    })?;
    let logger = fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => logger.with_ansi(terminal.stderr.has_colour).try_init(),
        LogFormat::Json => logger.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| CommandError::error(format!("can't log: {error}")))
}
