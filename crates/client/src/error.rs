//! What can go wrong with a call: nobody there, no understanding, or a problem that the server explains.

use std::{error::Error, fmt, io, path::PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nothing listens at the address: the server isn't running, or runs elsewhere.
    #[error("nothing answers at {url}")]
    ConnectionRefused { url: String },
    #[error("the connection to {url} failed")]
    Connection {
        url: String,
        #[source]
        error: reqwest::Error,
    },
    /// Something answers there, and not over TLS.
    #[error("what answers at {url} does not speak TLS")]
    NoTls { url: String },
    #[error("{url} did not answer in time")]
    TimedOut { url: String },
    /// While following a task that has not ended.
    #[error("{url} ended the stream early")]
    StreamEnded { url: String },
    /// The server refused, and says why.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// Whatever answered is not an Ostler server, or something stands in between.
    #[error("an answer that is not ours: status {status}{}", excerpt(.body))]
    Unexpected { status: u16, body: String },
    #[error("the answer can't be understood")]
    BadAnswer(#[source] serde_json::Error),
    #[error("{url:?} is not the address of a server: {reason}")]
    BadUrl { url: String, reason: String },
    #[error("{name:?} can't be a name")]
    BadName { name: String },
    #[error("the manifest has no kind that this version knows")]
    UnknownKind,
    #[error("can't write {path:?}")]
    File {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("can't set up connections")]
    Setup(#[source] Box<dyn Error + Send + Sync>),
}

/// A problem document (RFC 9457), as the server sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub status: u16,
    pub title: String,
    /// Stable; listed in the reference of error codes.
    pub code: String,
    #[serde(default)]
    pub detail: String,
    /// Each mistake of a manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<FieldProblem>,
    /// What can be done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// After so many seconds it may be sent again, as the header `Retry-After` says.
    #[serde(skip)]
    pub retry_after_s: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldProblem {
    /// Which of several objects it is about, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<usize>,
    #[serde(default)]
    pub path: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl ClientError {
    /// The server's code for what went wrong, if it was the server who said so.
    pub fn code(&self) -> Option<&str> {
        self.problem().map(|problem| problem.code.as_str())
    }

    pub fn problem(&self) -> Option<&Problem> {
        match self {
            ClientError::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// The server that could not be reached, or not long enough.
    pub fn url(&self) -> Option<&str> {
        match self {
            ClientError::ConnectionRefused { url }
            | ClientError::Connection { url, .. }
            | ClientError::NoTls { url }
            | ClientError::TimedOut { url }
            | ClientError::StreamEnded { url } => Some(url),
            ClientError::Problem(_)
            | ClientError::Unexpected { .. }
            | ClientError::BadAnswer(_)
            | ClientError::BadUrl { .. }
            | ClientError::BadName { .. }
            | ClientError::UnknownKind
            | ClientError::File { .. }
            | ClientError::Setup(_) => None,
        }
    }

    /// The same request may succeed a moment later: nobody was there, or the server could not serve it now.
    pub fn may_pass(&self) -> bool {
        match self {
            ClientError::ConnectionRefused { .. }
            | ClientError::Connection { .. }
            | ClientError::TimedOut { .. }
            | ClientError::StreamEnded { .. } => true,
            ClientError::Problem(problem) => problem.status >= 500 || problem.status == 429,
            ClientError::Unexpected { status, .. } => *status >= 500 || *status == 429,
            ClientError::BadAnswer(_)
            | ClientError::NoTls { .. }
            | ClientError::BadUrl { .. }
            | ClientError::BadName { .. }
            | ClientError::UnknownKind
            | ClientError::File { .. }
            | ClientError::Setup(_) => false,
        }
    }

    pub(crate) fn from_transport(error: reqwest::Error, url: &str) -> Self {
        let url = url.trim_end_matches('/').to_owned();
        if is_refused(&error) {
            return ClientError::ConnectionRefused { url };
        }
        if error.is_timeout() {
            return ClientError::TimedOut { url };
        }
        if speaks_no_tls(&error) {
            return ClientError::NoTls { url };
        }
        // The path may hold a name that is nobody else's business.
        ClientError::Connection { url, error: error.without_url() }
    }

    pub(crate) fn from_answer(status: u16, retry_after_s: Option<u64>, body: &[u8]) -> Self {
        match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => ClientError::Problem(Box::new(Problem { retry_after_s, ..problem })),
            Err(_) => ClientError::Unexpected { status, body: String::from_utf8_lossy(body).into_owned() },
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.detail.is_empty() { &self.title } else { &self.detail })
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "{line}:{column}: ")?;
        }
        if !self.path.is_empty() {
            // As in a manifest: `spec.model_ref`.
            write!(f, "{}: ", self.path.trim_start_matches('/').replace('/', "."))?;
        }
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, ", did you mean {suggestion:?}?"),
            None => Ok(()),
        }
    }
}

fn is_refused(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind == Some(io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Whether the other side said something that is no part of TLS, as a server of plain http does.
fn speaks_no_tls(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(error) = cause {
        if let Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) =
            error.downcast_ref()
        {
            return true;
        }
        // What an error of I/O holds is not told as its source.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = held.map(|held| held as &dyn Error).or_else(|| error.source());
    }
    false
}

/// The start of an answer that was not meant for us.
fn excerpt(body: &str) -> String {
    let line = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let start: String = line.trim().chars().take(120).collect();
    if start.is_empty() { start } else { format!(": {start}") }
}
