//! `ostler doctor`: looks at everything that may be wrong, and says what to do about it.

mod machine;
mod references;
pub mod server;

use clap::ValueEnum;
use serde::Serialize;

use crate::{app::App, error::CommandError, exit::Exit, format::Plain, paint::Tone, text};

/// Checks what may be wrong: the server, the token, the data folder, secrets, workers, tasks
///
/// Each check is ok, a warning or a failure, with what to do about it. What the token may not see is skipped: with one for
/// some namespaces, that of -n is looked at. Ends with 1 if something failed; warnings alone end with 0.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// How to tell it
    #[arg(short, long, value_enum, default_value_t = Plain::Table)]
    output: Plain,
}

const EXAMPLES: &str = "\
Examples:
  ostler doctor
  ostler doctor --profile prod -o json | jq '.[] | select(.verdict != \"ok\")'";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    Warn,
    Fail,
    /// It was not looked at.
    Skip,
}

impl Check {
    pub fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, found: found.into(), remedy: None }
    }

    pub fn warn(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Warn, found: found.into(), remedy: Some(remedy.into()) }
    }

    pub fn fail(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Fail, found: found.into(), remedy: Some(remedy.into()) }
    }

    /// What the token may not see is neither well nor wrong.
    pub fn skip(name: &'static str) -> Self {
        Self { name, verdict: Verdict::Skip, found: "not for this token".into(), remedy: None }
    }

    /// The same where that is what went wrong, or a failure. The token itself is one that the server takes.
    fn unseen(name: &'static str, error: CommandError) -> Self {
        if error.exit() == Exit::Unauthorized { Self::skip(name) } else { Self::of_error(name, error) }
    }

    /// A failure, in the words that a command would have had for it.
    fn of_error(name: &'static str, error: CommandError) -> Self {
        match error {
            CommandError::Said(complaint) => {
                Self { name, verdict: Verdict::Fail, found: complaint.message, remedy: complaint.remedy }
            }
            CommandError::Quiet(_) => {
                Self { name, verdict: Verdict::Fail, found: "failed".into(), remedy: None }
            }
        }
    }
}

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let mut checks = machine::checks(app);
    checks.extend(server::checks(app).await);
    match arguments.output {
        Plain::Json => app.output.json(&checks)?,
        Plain::Table => checks.iter().try_for_each(|check| show(app, check))?,
    }
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (n_warn, n_fail) = (count(Verdict::Warn), count(Verdict::Fail));
    if arguments.output == Plain::Table {
        let skipped = match count(Verdict::Skip) {
            0 => String::new(),
            n_skip => format!(", {n_skip} not for this token"),
        };
        app.output.note(format!("{} ok, {n_warn} to look at, {n_fail} failed{skipped}", count(Verdict::Ok)));
    }
    Ok(if n_fail == 0 { Exit::Ok } else { Exit::Error })
}

fn show(app: &App, check: &Check) -> Result<(), CommandError> {
    let (word, tone) = match check.verdict {
        Verdict::Ok => ("ok  ", Tone::Good),
        Verdict::Warn => ("warn", Tone::Pending),
        Verdict::Fail => ("fail", Tone::Bad),
        Verdict::Skip => ("skip", Tone::Quiet),
    };
    let paint = app.output.paint();
    let columns = app.output.room().map_or(100, |room| room.columns);
    let indent = " ".repeat(21);
    let found = text::wrap(&check.found, columns.saturating_sub(indent.len()));
    for (place, line) in found.iter().enumerate() {
        match place {
            0 => app.output.data(format!("{}  {:<15}{line}", paint.tone(tone, word), check.name))?,
            _ => app.output.data(format!("{indent}{line}"))?,
        }
    }
    for line in
        text::wrap(check.remedy.as_deref().unwrap_or_default(), columns.saturating_sub(indent.len() + 2))
    {
        app.output.data(format!("{indent}{}", paint.tone(Tone::Quiet, &format!("> {line}"))))?;
    }
    Ok(())
}
