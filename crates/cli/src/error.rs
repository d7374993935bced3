//! What a command says when it can't go on: what happened, what to do about it, and the exit code.

use std::{error::Error, io};

use ostler_client::{ClientError, Problem};

use crate::{config::is_loopback, exit::Exit};

#[derive(Debug)]
pub enum CommandError {
    /// Nothing more to say: the reader of our output went away, or everything was said already.
    Quiet(Exit),
    Said(Complaint),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Complaint {
    pub exit: Exit,
    /// Follows `error: `.
    pub message: String,
    /// One line each, as they are.
    pub details: Vec<String>,
    /// What to do now.
    pub remedy: Option<String>,
}

impl CommandError {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        CommandError::Said(Complaint { exit, message: message.into(), details: Vec::new(), remedy: None })
    }

    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Exit::Error, message)
    }

    #[must_use]
    pub fn with_details(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        if let CommandError::Said(complaint) = &mut self {
            complaint.details.extend(lines);
        }
        self
    }

    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        if let CommandError::Said(complaint) = &mut self {
            complaint.remedy = Some(remedy.into());
        }
        self
    }

    /// Our own output could not be written.
    pub fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CommandError::Quiet(Exit::Ok),
            _ => Self::error(format!("can't write the output: {error}")),
        }
    }

    /// The number the process ends with.
    pub fn exit(&self) -> Exit {
        match self {
            CommandError::Quiet(exit) => *exit,
            CommandError::Said(complaint) => complaint.exit,
        }
    }
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        match &error {
            ClientError::ConnectionRefused { .. }
            | ClientError::Connection { .. }
            | ClientError::NoTls { .. }
            | ClientError::TimedOut { .. }
            | ClientError::StreamEnded { .. } => {
                Self::new(Exit::Unreachable, with_causes(&error)).with_remedy(unreachable_remedy(&error))
            }
            ClientError::Problem(problem) => refused(problem),
            ClientError::Unexpected { .. } | ClientError::BadAnswer(_) => {
                Self::error(with_causes(&error)).with_remedy("is that address really an Ostler server?")
            }
            ClientError::File { error: why, .. } => {
                let told = Self::error(with_causes(&error));
                match place_remedy(why) {
                    Some(remedy) => told.with_remedy(remedy),
                    None => told,
                }
            }
            ClientError::BadUrl { .. }
            | ClientError::BadName { .. }
            | ClientError::UnknownKind
            | ClientError::Setup(_) => Self::error(with_causes(&error)),
        }
    }
}

/// What to do about a file that can't be written, where the system's words alone don't say it.
pub fn place_remedy(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::NotFound => Some("the folder has to be there: make it first, or name another one"),
        io::ErrorKind::NotADirectory => Some("what stands before the last / is a file: name a folder there"),
        io::ErrorKind::PermissionDenied => Some("you may not write there: name another place"),
        io::ErrorKind::StorageFull => Some("the disk is full: make room, or name a place on another one"),
        _ => None,
    }
}

/// One of this machine can be started; of another the address may be wrong.
fn unreachable_remedy(error: &ClientError) -> String {
    if let ClientError::NoTls { url } = error {
        return format!("write {} if it is a server without TLS", url.replacen("https://", "http://", 1));
    }
    let remedy = match error.url().is_none_or(is_loopback) {
        true => "is it running? `ostler up` starts one here",
        false => "is it running, and is that its address? `ostler config show` tells where that comes from",
    };
    remedy.to_owned()
}

/// What the server says about a request it did not take.
fn refused(problem: &Problem) -> CommandError {
    let unauthorized = matches!(problem.status, 401 | 403);
    let exit = if unauthorized { Exit::Unauthorized } else { Exit::Error };
    // The detail repeats what the problems say one by one.
    let message = if problem.problems.is_empty() { problem.to_string() } else { "not accepted".to_owned() };
    let error =
        CommandError::new(exit, message).with_details(problem.problems.iter().map(ToString::to_string));
    match &problem.remedy {
        // The server's own speaks of headers.
        _ if problem.status == 401 => error.with_remedy(
            "`ostler config show` tells which token was sent, from where. It may have been deleted, or have expired: `ostler \
             token list`, asked by an admin, tells. The server's own is in the file `token` of its data folder; \
             OSTLER_TOKEN counts before it",
        ),
        // What is a parameter to the server is a flag here, and of its headers only the time is told.
        Some(remedy) => {
            let remedy = remedy.replace("`namespace=`", "-n");
            let when = match problem.retry_after_s {
                Some(seconds) => format!("in {seconds} s"),
                None => "in a moment".to_owned(),
            };
            error.with_remedy(remedy.replace("after the time in Retry-After", &when))
        }
        None => error,
    }
}

/// The error and what it came from, in one line.
pub fn with_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !message.ends_with(&words) {
            message = format!("{message}: {words}");
        }
        cause = error.source();
    }
    message
}
