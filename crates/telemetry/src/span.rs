//! A span: something that began and ended, and what it was part of.

use std::time::Duration;

use ostler_kernel::{Failure, SpanId, Timestamp, TraceId};

#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    /// None where the trace begins.
    pub parent: Option<SpanId>,
    /// As the caller sent it.
    pub state: Option<String>,
    pub name: String,
    pub kind: Kind,
    pub began: Moment,
    pub ended: Moment,
    pub attributes: Vec<(&'static str, Value)>,
    /// What went wrong: its code, and a sentence.
    pub error: Option<(String, String)>,
}

/// Calendar time in nanoseconds since 1970. Beginnings are as exact as the calendar, which counts milliseconds; how long
/// something took may be known better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Internal,
    /// A call of somebody else.
    Client,
    /// Work that somebody asked for and does not wait for.
    Consumer,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Integer(i64),
    Number(f64),
    Flag(bool),
    Texts(Vec<String>),
}

impl Moment {
    pub fn nanos(self) -> u64 {
        self.0
    }

    #[must_use]
    pub fn after(self, took: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Self {
        Self(at.as_millis().max(0).cast_unsigned().saturating_mul(1_000_000))
    }
}

impl Span {
    pub fn with(&mut self, key: &'static str, value: impl Into<Value>) {
        self.attributes.push((key, value.into()));
    }

    /// Only where there is something to say.
    pub fn with_some(&mut self, key: &'static str, value: Option<impl Into<Value>>) {
        self.attributes.extend(value.map(|value| (key, value.into())));
    }

    pub fn failed(&mut self, failure: &Failure) {
        self.error = Some((failure.code.clone(), failure.message.clone()));
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Integer(number.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Flag(flag)
    }
}

impl From<Vec<String>> for Value {
    fn from(texts: Vec<String>) -> Self {
        Value::Texts(texts)
    }
}
