//! What servers and workers log, and how: to stderr, as text for people or JSON for machines, and without secrets.

mod json;

use std::io::{self, Write};

use ostler_worker::Redactor;
use tracing_subscriber::{EnvFilter, fmt};

use crate::{app::App, error::CommandError};

/// Logs from here on, what the filter lets through.
pub fn start(is_json: bool, filter: &str, app: &App) -> Result<(), CommandError> {
    let failed = |error: &dyn std::fmt::Display| CommandError::error(format!("can't log: {error}"));
    let filter = EnvFilter::try_new(filter).map_err(|error| failed(&error))?;
    let redactor = app.redactor.clone();
    let writer = move || Clean { redactor: redactor.clone(), to: io::stderr() };
    let logger = fmt().with_env_filter(filter).with_writer(writer);
    let started = if is_json {
        logger.json().event_format(json::Flat).try_init()
    } else {
        logger.with_ansi(app.output.terminal.stderr.has_colour).try_init()
    };
    started.map_err(|error| failed(&error))
}

/// Hides what is secret in each line. A line comes whole, in one piece.
struct Clean<W> {
    redactor: Redactor,
    to: W,
}

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.to.write_all(self.redactor.hidden_words(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_no_secret() {
        let redactor = Redactor::default();
        redactor.hide("geheim-wort-1");
        let mut log = Clean { redactor, to: Vec::new() };
        log.write_all(b"INFO said=\"geheim-wort-1\" authorization=abc url=http://x/\n").unwrap();
        let written = String::from_utf8(log.to).unwrap();
        assert_eq!(written, "INFO said=\"[REDACTED]\" authorization=[REDACTED] url=http://x/\n");
    }
}
