//! How the process ends. Documented in `ostler --help` and stable: scripts decide by these.

use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    /// Anything that has no number of its own.
    Error = 1,
    /// The command line makes no sense; clap says so itself.
    Usage = 2,
    /// The task that was followed failed, or was dropped.
    TaskFailed = 3,
    /// It used up its retries.
    TaskDeadLetter = 4,
    TaskCancelled = 5,
    /// No server, or none that answers.
    Unreachable = 6,
    Unauthorized = 7,
    /// What was waited for did not come in time.
    TimedOut = 8,
    /// Another worker has registered under this one's name. Started again it would take the name back, and so on.
    Superseded = 9,
    /// Ctrl-C: what was followed goes on.
    Interrupted = 130,
}

/// For `ostler --help`.
pub const HELP: &str = "\
Exit codes:
  0    done
  1    error
  2    the command line makes no sense
  3    the task failed
  4    the task used up its retries (dead letter)
  5    the task was cancelled
  6    the server can't be reached
  7    not authorised
  8    waited too long
  9    another worker has taken this one's name
  130  interrupted with Ctrl-C
`diff` ends with 0 if nothing differs, with 1 if something does, and with 2
where others end with 1. `validate` ends with 1 if there is a mistake, `doctor`
if something failed.";

impl Exit {
    /// How following a task ends, by its last state.
    pub fn of_task(state: &str) -> Self {
        match state {
            "succeeded" => Exit::Ok,
            "dead_letter" => Exit::TaskDeadLetter,
            "cancelled" => Exit::TaskCancelled,
            _ => Exit::TaskFailed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
