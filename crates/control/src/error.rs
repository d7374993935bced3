//! What can go wrong with a command, with a stable code for each.

use std::time::Duration;

use ostler_spec::Problem;
use ostler_store::StoreError;

#[derive(Debug, Clone, thiserror::Error)]
pub enum ControlError {
    #[error("there is no {kind} {name:?}")]
    NotFound { kind: &'static str, name: String },
    #[error("{}", problems(.0))]
    Invalid(Vec<Problem>),
    #[error("{0}")]
    BadReference(String),
    /// Declared, and kept, and not to be used in this version.
    #[error("{0}")]
    NotAvailable(String),
    /// The keys of this server are not those that the store's secrets are sealed with.
    #[error("{0}")]
    WrongKeys(String),
    /// Something would not open any more with the keys to turn to.
    #[error("{0}")]
    KeysInUse(String),
    #[error("{0}")]
    Conflict(String),
    #[error("there is a task {name:?} already")]
    NameTaken { name: String },
    /// The task has ended; terminal is terminal.
    #[error("task {name:?} is {state}, which is final")]
    Ended { name: String, state: &'static str },
    #[error("task {name:?} is {state}; it has to end first")]
    NotEnded { name: String, state: &'static str },
    #[error("the store can't serve this now")]
    Store(#[from] StoreError),
    /// More than there may be; later there may be room again.
    #[error("{message}")]
    TooMany { message: String, retry_after: Duration },
    /// Others kept getting in between.
    #[error("too many others changed it at the same time; try again")]
    Contended,
}

impl ControlError {
    /// Stable; documented in the reference of error codes.
    pub fn code(&self) -> &'static str {
        match self {
            ControlError::NotFound { .. } => "not_found",
            ControlError::Invalid(_) => "invalid_manifest",
            ControlError::BadReference(_) => "bad_reference",
            ControlError::NotAvailable(_) => "not_available",
            ControlError::WrongKeys(_) => "secret_key_wrong",
            ControlError::KeysInUse(_) => "secret_key_in_use",
            ControlError::Conflict(_) | ControlError::NameTaken { .. } => "conflict",
            ControlError::Ended { .. } => "task_ended",
            ControlError::NotEnded { .. } => "task_not_ended",
            ControlError::Store(_) => "store_unavailable",
            ControlError::TooMany { .. } => "too_many_tasks",
            ControlError::Contended => "contended",
        }
    }
}

fn problems(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
