//! Where words go: data to stdout, everything else to stderr. A reader that went away ends us quietly.

use std::io::{self, Write};

use serde::Serialize;

use crate::{
    error::{CommandError, Complaint},
    paint::{Paint, Tone},
    table::{Room, Table},
    terminal::Terminal,
    text,
};

#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub terminal: Terminal,
}

impl Output {
    /// A line of data.
    pub fn data(&self, line: impl AsRef<str>) -> Result<(), CommandError> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{}", line.as_ref()).map_err(|error| CommandError::output(&error))
    }

    /// A line about something that was done. Who goes away without reading it stops nothing that is still to be done.
    pub fn done(&self, line: impl AsRef<str>) -> Result<(), CommandError> {
        match self.data(line) {
            Err(CommandError::Quiet(_)) => Ok(()),
            written => written,
        }
    }

    pub fn table(&self, table: &Table) -> Result<(), CommandError> {
        let room = self.room();
        self.lines(&table.lines(self.paint(), room))?;
        self.note_left_out(table, room);
        Ok(())
    }

    /// Many lines of data at once.
    pub fn lines(&self, lines: &[String]) -> Result<(), CommandError> {
        let mut stdout = io::BufWriter::new(io::stdout().lock());
        let written = lines.iter().try_for_each(|line| writeln!(stdout, "{line}"));
        written.and_then(|()| stdout.flush()).map_err(|error| CommandError::output(&error))
    }

    /// Says which columns found no room.
    pub fn note_left_out(&self, table: &Table, room: Option<Room>) {
        let titles = table.left_out(room);
        if !titles.is_empty() {
            let line = format!("no room for {}; a wider terminal or a pipe shows them", titles.join(", "));
            self.note(self.error_paint().tone(Tone::Quiet, &line));
        }
    }

    /// How wide a line may be: a pipe takes any.
    pub fn room(&self) -> Option<Room> {
        let Terminal { stdout, .. } = self.terminal;
        stdout
            .is_terminal
            .then(|| Room { columns: self.terminal.size().columns, ellipsis: self.terminal.ellipsis() })
    }

    pub fn json(&self, value: &impl Serialize) -> Result<(), CommandError> {
        let text = serde_json::to_string_pretty(value).map_err(|error| cannot_print(&error))?;
        self.data(text)
    }

    /// One line of JSON, for streams.
    pub fn json_line(&self, value: &impl Serialize) -> Result<(), CommandError> {
        self.data(serde_json::to_string(value).map_err(|error| cannot_print(&error))?)
    }

    pub fn yaml(&self, value: &impl Serialize) -> Result<(), CommandError> {
        let text = serde_saphyr::to_string(value).map_err(|error| cannot_print(&error))?;
        self.data(text.trim_end())
    }

    /// A line for the person who watches. If nobody can read it, nothing is lost.
    pub fn note(&self, line: impl AsRef<str>) {
        let _ = writeln!(io::stderr().lock(), "{}", line.as_ref());
    }

    /// Says what went wrong with one thing, so that the others can go on.
    pub fn tell(&self, error: &CommandError) {
        if let CommandError::Said(complaint) = error {
            self.complain(complaint);
        }
    }

    pub fn complain(&self, complaint: &Complaint) {
        let paint = self.error_paint();
        // A server's words, and with them what others named.
        self.note(format!("{} {}", paint.tone(Tone::Bad, "error:"), text::harmless(&complaint.message)));
        for detail in &complaint.details {
            self.note(format!("  {}", text::harmless(detail)));
        }
        if let Some(remedy) = &complaint.remedy {
            self.note(format!("{} {remedy}", paint.tone(Tone::Quiet, "hint:")));
        }
    }

    /// For stdout.
    pub fn paint(&self) -> Paint {
        Paint::new(self.terminal.stdout.has_colour)
    }

    /// For stderr.
    pub fn error_paint(&self) -> Paint {
        Paint::new(self.terminal.stderr.has_colour)
    }
}

fn cannot_print(error: &dyn std::fmt::Display) -> CommandError {
    CommandError::error(format!("can't print the answer: {error}"))
}
