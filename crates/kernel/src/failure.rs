//! Why something went wrong, as data: a stable code, a class that decides about retries, and a sentence for
//! people. Nothing decides anything by searching a message, but for words that a task itself names (`task/tries.rs`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Usage;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// Stable and documented, such as `model_rate_limited` or `max_steps`.
    pub code: String,
    pub class: ErrorClass,
    pub message: String,
    /// What the other side asked for (`Retry-After`), in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What it took all the same, told to whoever made the call. It is kept with the step, and not here.
    #[serde(skip)]
    pub spent: Option<Box<Usage>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// May pass by itself: overload, a broken connection, a cut stream. Retried.
    Transient,
    /// Will fail the same way again: a bad request, a missing model, a refused key.
    Permanent,
    /// A bound that someone set was reached: steps, tokens.
    Limit,
    /// Ran out of time.
    Timeout,
    /// Nobody knows whether it happened, and it must not happen twice.
    OutcomeUnknown,
    /// Someone stopped it.
    Cancelled,
}

impl Failure {
    pub fn new(class: ErrorClass, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), class, message: message.into(), retry_after_ms: None, spent: None }
    }

    pub fn transient(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Transient, code, message)
    }

    pub fn permanent(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Permanent, code, message)
    }

    pub fn limit(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Limit, code, message)
    }

    pub fn timeout(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Timeout, code, message)
    }

    #[must_use]
    pub fn with_retry_after(mut self, delay: Option<Duration>) -> Self {
        self.retry_after_ms = delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        self
    }

    #[must_use]
    pub fn with_spent(mut self, usage: Usage) -> Self {
        self.spent = Some(Box::new(usage));
        self
    }

    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_ms.map(Duration::from_millis)
    }

    pub fn is_retryable(&self) -> bool {
        match self.class {
            ErrorClass::Transient => true,
            ErrorClass::Permanent
            | ErrorClass::Limit
            | ErrorClass::Timeout
            | ErrorClass::OutcomeUnknown
            | ErrorClass::Cancelled => false,
        }
    }
}
