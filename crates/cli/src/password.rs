//! Passwords from a person: typed on the terminal without being shown, or from stdin. Never from the command line.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::{app::App, error::CommandError, exit::Exit, input};

/// A new password for somebody, typed twice.
pub fn new(app: &App, name: &str, from_stdin: bool) -> Result<String, CommandError> {
    if from_stdin {
        return given(&input::read_stdin()?);
    }
    let mut terminal = Terminal::open("--password-stdin reads it from stdin")?;
    loop {
        let first = terminal.ask(&format!("Password for {name}: "))?;
        let second = terminal.ask("The same again: ")?;
        if first == second {
            return given(&first);
        }
        app.output.note("these were not the same");
    }
}

/// Something secret that is not a password, typed once.
pub fn ask(question: &str, otherwise: &'static str) -> Result<String, CommandError> {
    Terminal::open(otherwise)?.ask(question)
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
struct Terminal(File);

impl Terminal {
    fn open(otherwise: &'static str) -> Result<Self, CommandError> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(|_| {
            CommandError::new(Exit::Usage, "there is no terminal to ask for what is secret")
                .with_remedy(otherwise)
        })?;
        Ok(Self(file))
    }

    fn ask(&mut self, question: &str) -> Result<String, CommandError> {
        let failed = |error: io::Error| CommandError::error(format!("can't ask for a password: {error}"));
        self.0.write_all(question.as_bytes()).map_err(failed)?;
        let hidden = Hidden::begin(&self.0).map_err(failed)?;
        let typed = typed(&self.0);
        drop(hidden);
        self.0.write_all(b"\n").map_err(failed)?;
        typed.map_err(failed)?.ok_or(CommandError::Quiet(Exit::Interrupted))
    }
}

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const CTRL_U: u8 = 21;
const BACKSPACE: [u8; 2] = [8, 127];

/// What is typed up to the end of the line; none if the person would rather not.
#[expect(clippy::unbuffered_bytes, reason = "what is typed behind the line is for the question that follows")]
fn typed(keys: impl Read) -> io::Result<Option<String>> {
    let mut line = String::new();
    let mut letter = Vec::new();
    for key in keys.bytes() {
        match key? {
            b'\n' | b'\r' | CTRL_D => return Ok(Some(line)),
            CTRL_C => return Ok(None),
            CTRL_U => line.clear(),
            key if BACKSPACE.contains(&key) => drop(line.pop()),
            key => {
                // A letter may take several bytes.
                letter.push(key);
                if let Ok(text) = std::str::from_utf8(&letter) {
                    line.push_str(text);
                    letter.clear();
                }
            }
        }
    }
    Ok(Some(line))
}

/// What is typed is not shown for as long as this lives. Keys come one by one, Ctrl-C too: whoever was stopped by it
/// would leave a terminal behind that shows nothing any more.
struct Hidden {
    terminal: File,
    before: Termios,
}

impl Hidden {
    fn begin(terminal: &File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_make_a_line() {
        let line = |keys: &str| typed(keys.as_bytes()).unwrap();
        assert_eq!(line("geheim\nrest").as_deref(), Some("geheim"));
        assert_eq!(line("wrong\u{15}geh\u{e4}x\u{7f}im\r").as_deref(), Some("geh\u{e4}im"));
        assert_eq!(line("\u{8}\u{7f}a\u{4}").as_deref(), Some("a"));
        assert_eq!(line("geh\u{3}eim\n"), None);
    }

    #[test]
    fn the_first_line_counts_and_must_not_be_empty() {
        assert_eq!(given("one\ntwo\n").unwrap(), "one");
        assert!(given("\n").is_err() && given("").is_err());
    }
}
