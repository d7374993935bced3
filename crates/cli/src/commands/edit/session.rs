//! The file that is edited: what stands in it, what is told on top of it, and where it stays if something goes wrong.

use std::{
    env, fs,
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{app::App, commands::target::Target, error::CommandError};

/// Every line that we put on top begins so; whoever reads the text again leaves them out.
const MARK: &str = "#: ";

pub struct Session {
    path: PathBuf,
    editor: String,
    /// As the object was when it was looked at.
    found: String,
    /// What the person has seen last, without what is told on top.
    shown: String,
    /// What is told on top.
    words: Vec<String>,
    was_refused: bool,
}

impl Session {
    pub fn begin(app: &App, target: &Target, text: String) -> Result<Self, CommandError> {
        let name = target.title().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let path = env::temp_dir().join(format!("ostler-{name}-{:08x}.yaml", app.runtime.random() >> 32));
        let words = vec![
            format!("{} as it is stored; save it and close the editor to put it back.", target.title()),
            "Lines that begin with `#:` are left out. An empty text, or one that is not changed, changes nothing."
                .to_owned(),
        ];
        let session =
            Self { path, editor: editor(), found: text.clone(), shown: text, words, was_refused: false };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&session.path)
            .map_err(|error| session.cannot("write", &error))?;
        file.write_all(session.whole().as_bytes()).map_err(|error| session.cannot("write", &error))?;
        Ok(session)
    }

    /// Opens the editor and gives what was written, unless nothing was changed.
    pub fn open(&mut self) -> Result<Option<String>, CommandError> {
        edit(&self.editor, &self.path)?;
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CommandError::error("the editor has removed the file; nothing was stored"));
            }
            Err(error) => return Err(self.cannot("read", &error)),
        };
        let text = without_words(&text);
        if text.trim().is_empty() || (text == self.shown && !self.was_refused) {
            return Ok(None);
        }
        // Refused once, and closed without another word: who goes on would go on for ever.
        if text == self.shown {
            return Err(CommandError::error("nothing was stored").with_details(self.words.clone()));
        }
        self.shown.clone_from(&text);
        Ok(Some(text))
    }

    /// Puts what is wrong on top of what was written; the next look starts from there.
    pub fn refuse(&mut self, title: &str, mistakes: Vec<String>) -> Result<(), CommandError> {
        self.words = std::iter::once(title.to_owned())
            .chain(mistakes.iter().flat_map(|mistake| mistake.lines()).map(|line| format!("  {line}")))
            .collect();
        self.was_refused = true;
        fs::write(&self.path, self.whole()).map_err(|error| self.cannot("write", &error))
    }

    /// As the object was when it was looked at last.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// The object is another one by now: what the person wrote is to go on top of that.
    pub fn found_anew(&mut self, text: String, version: Option<&str>) {
        self.found = text;
        let Some(version) = version else { return };
        let is_version = |line: &&str| line.trim_start().starts_with("resourceVersion:");
        if let Some(line) = self.shown.lines().find(is_version) {
            let indent = &line[..line.len() - line.trim_start().len()];
            self.shown = self.shown.replacen(line, &format!("{indent}resourceVersion: \"{version}\""), 1);
        }
    }

    /// What was written and not stored is kept, and where.
    pub fn end(self, done: Result<(), CommandError>) -> Result<(), CommandError> {
        match done {
            Ok(()) => {
                // If it stays, it is in a folder that is emptied now and then.
                let _ = fs::remove_file(&self.path);
                Ok(())
            }
            Err(error) if !self.path.exists() => Err(error),
            Err(error) => Err(error.with_details([format!("what you wrote is in {}", self.path.display())])),
        }
    }

    /// Where it is edited, as people are told.
    pub fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// The words on top, and the text.
    fn whole(&self) -> String {
        let head: String = self.words.iter().map(|line| format!("{MARK}{line}\n")).collect();
        format!("{head}{}", self.shown)
    }

    fn cannot(&self, verb: &str, error: &dyn std::fmt::Display) -> CommandError {
        CommandError::error(format!("can't {verb} {}: {error}", self.path.display()))
    }
}

fn without_words(text: &str) -> String {
    text.split_inclusive('\n').skip_while(|line| line.starts_with(MARK.trim_end())).collect()
}

/// As other programs choose it.
fn editor() -> String {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned())
}

/// The variable may hold flags, so a shell takes it apart.
fn edit(editor: &str, path: &Path) -> Result<(), CommandError> {
    let remedy = "EDITOR names the editor, such as `EDITOR=nano` or `EDITOR='code --wait'`";
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(path).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let message = format!("the editor {editor:?} ended with {status}; nothing was stored");
            Err(CommandError::error(message).with_remedy(remedy))
        }
        Err(error) => {
            Err(CommandError::error(format!("can't start {editor:?}: {error}")).with_remedy(remedy))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_words_are_left_out_and_nothing_else() {
        let text = "#: this can't be stored:\n#:   line:2:1: x\nkind: Agent\n# mine\n#: mine too\n";
        assert_eq!(without_words(text), "kind: Agent\n# mine\n#: mine too\n");
        assert_eq!(without_words("#:"), "");
    }
}
