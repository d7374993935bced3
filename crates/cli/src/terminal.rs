//! What our output goes to: a person's terminal, or a pipe. Looked at once, before anything is printed.

use std::{
    env,
    io::{self, IsTerminal},
};

use clap::{ColorChoice, ValueEnum};
use rustix::termios::{Winsize, tcgetwinsize};

/// Nobody reads lines longer than this, and a terminal that claims to be wider is wrong.
const WIDEST: usize = 500;

#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    pub stdout: Sink,
    pub stderr: Sink,
    /// Box characters and check marks can be shown.
    pub is_utf8: bool,
    /// Its cursor does not move: it takes plain lines, as a pipe does.
    is_dumb: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Sink {
    pub is_terminal: bool,
    pub has_colour: bool,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    #[default]
    Auto,
    Always,
    Never,
}

/// Columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

impl From<Colour> for ColorChoice {
    fn from(colour: Colour) -> Self {
        match colour {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        }
    }
}

impl Terminal {
    pub fn look(colour: Colour) -> Self {
        let is_dumb = env::var("TERM").is_ok_and(|term| term == "dumb");
        let plain = is_set("NO_COLOR") || is_dumb;
        let sink = |is_terminal: bool| {
            let has_colour = match colour {
                Colour::Auto => is_terminal && !plain,
                Colour::Always => true,
                Colour::Never => false,
            };
            Sink { is_terminal, has_colour }
        };
        Self {
            stdout: sink(io::stdout().is_terminal()),
            stderr: sink(io::stderr().is_terminal()),
            is_utf8: is_utf8(),
            is_dumb,
        }
    }

    /// Whether something can be drawn over what stands there already.
    pub fn can_redraw(&self, sink: Sink) -> bool {
        sink.is_terminal && !self.is_dumb
    }

    /// What stands for what was left out.
    pub fn ellipsis(&self) -> &'static str {
        if self.is_utf8 { "…" } else { "..." }
    }

    /// Asked anew each time: people resize their windows.
    pub fn size(&self) -> Size {
        let of_terminal = [
            self.stdout.is_terminal.then(|| tcgetwinsize(io::stdout())),
            self.stderr.is_terminal.then(|| tcgetwinsize(io::stderr())),
        ];
        let window = of_terminal.into_iter().flatten().find_map(Result::ok).filter(|size| size.ws_col > 0);
        match window {
            Some(Winsize { ws_col, ws_row, .. }) => {
                Size { columns: usize::from(ws_col), rows: usize::from(ws_row) }
            }
            None => Size { columns: columns_variable().unwrap_or(80), rows: 24 },
        }
        .within_reason()
    }
}

impl Size {
    fn within_reason(self) -> Self {
        Self { columns: self.columns.clamp(20, WIDEST), rows: self.rows.max(4) }
    }
}

fn columns_variable() -> Option<usize> {
    env::var("COLUMNS").ok()?.trim().parse().ok()
}

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// As the C library decides it: the first of these that is set.
fn is_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| env::var(name).ok());
    let locale = locale.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
