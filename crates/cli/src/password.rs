//! Passwords from a person: typed on the terminal without being shown, or from stdin. Never from the command line.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Write},
};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::{app::App, error::CommandError, exit::Exit, input};

/// A new password for somebody, typed twice.
pub fn new(app: &App, name: &str, from_stdin: bool) -> Result<String, CommandError> {
    if from_stdin {
        return given(&input::read_stdin()?);
    }
    let mut terminal = Terminal::open()?;
    loop {
        let first = terminal.ask(&format!("Password for {name}: "))?;
        let second = terminal.ask("The same again: ")?;
        if first == second {
            return given(&first);
        }
        app.output.note("these were not the same");
    }
}

/// The first line of what was given.
fn given(text: &str) -> Result<String, CommandError> {
    let password = text.lines().next().unwrap_or_default();
    if password.is_empty() {
        return Err(CommandError::new(Exit::Usage, "the password is empty"));
    }
    Ok(password.to_owned())
}

/// The person's terminal, whatever stdin and stdout are.
struct Terminal {
    reader: BufReader<File>,
    writer: File,
}

impl Terminal {
    fn open() -> Result<Self, CommandError> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty");
        let both = file.and_then(|file| Ok((file.try_clone()?, file)));
        let (reader, writer) = both.map_err(|_| {
            CommandError::new(Exit::Usage, "there is no terminal to ask for a password")
                .with_remedy("--password-stdin reads it from stdin")
        })?;
        Ok(Self { reader: BufReader::new(reader), writer })
    }

    fn ask(&mut self, question: &str) -> Result<String, CommandError> {
        let failed =
            |error: &dyn std::fmt::Display| CommandError::error(format!("can't ask for a password: {error}"));
        self.writer.write_all(question.as_bytes()).map_err(|error| failed(&error))?;
        let hidden = Hidden::begin(&self.writer).map_err(|error| failed(&error))?;
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        drop(hidden);
        self.writer.write_all(b"\n").map_err(|error| failed(&error))?;
        read.map_err(|error| failed(&error))?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

/// What is typed is not shown for as long as this lives.
struct Hidden {
    terminal: File,
    before: Termios,
}

impl Hidden {
    fn begin(terminal: &File) -> std::io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO;
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Self { terminal: terminal.try_clone()?, before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing either.
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}
