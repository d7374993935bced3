//! Who reads some answers in another shape, and says so by its name. The SDKs of Orloj send `User-Agent:
//! orloj-js-sdk/<version>` or `orloj-sdk-python/<version>` with all they ask. Both take lists of tokens, users and namespaces
//! as bare arrays; the one for JavaScript, of all events only those that a stream calls `resource`; the one for Python, lines
//! of a log as objects, and it sends what is to be otherwise in a retry without a name around it. Everybody else, whoever names
//! no such SDK, is answered as described.

use std::convert::Infallible;

use axum::{extract::FromRequestParts, response::Response};
use http::{HeaderMap, StatusCode, header, request::Parts};
use ostler_kernel::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    parameters::{MAX_LIMIT, Parameters},
    problem::Problem,
    routes::answer,
    wire::list::List,
};

/// What such an SDK calls itself, before its version.
const JAVASCRIPT: &[u8] = b"orloj-js-sdk/";
const PYTHON: &[u8] = b"orloj-sdk-python/";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// As the description says.
    Ours,
    /// The SDK of Orloj for JavaScript,
    OrlojJavaScript,
    /// and the one for Python.
    OrlojPython,
}

impl Dialect {
    fn of(headers: &HeaderMap) -> Self {
        let name = headers.get(header::USER_AGENT).map_or(&b""[..], |name| name.as_bytes());
        if name.starts_with(JAVASCRIPT) {
            Dialect::OrlojJavaScript
        } else if name.starts_with(PYTHON) {
            Dialect::OrlojPython
        } else {
            Dialect::Ours
        }
    }

    /// How many at most. A bare array can't say that there are more, so it holds as many as a page may.
    pub fn limit(self, parameters: &Parameters) -> Result<usize, Problem> {
        match self {
            Dialect::OrlojJavaScript | Dialect::OrlojPython if parameters.get("limit").is_none() => {
                Ok(MAX_LIMIT)
            }
            Dialect::OrlojJavaScript | Dialect::OrlojPython | Dialect::Ours => parameters.limit(),
        }
    }

    pub fn list<T: Serialize>(self, list: &List<T>) -> Response {
        match self {
            Dialect::Ours => answer(StatusCode::OK, list),
            Dialect::OrlojJavaScript | Dialect::OrlojPython => answer(StatusCode::OK, &list.items()),
        }
    }

    /// What a stream of all events calls each of them.
    pub fn event_name(self) -> &'static str {
        match self {
            Dialect::Ours | Dialect::OrlojPython => "event",
            Dialect::OrlojJavaScript => "resource",
        }
    }

    /// What was found out: the SDK for JavaScript looks for it beside the status, too.
    pub fn status(self, mut told: Value) -> Value {
        if self == Dialect::OrlojJavaScript
            && let Some(status) = told.get("status").and_then(Value::as_object).cloned()
            && let Some(members) = told.as_object_mut()
        {
            let read = ["phase", "lastError", "observedGeneration"];
            members.extend(status.into_iter().filter(|(name, _)| read.contains(&name.as_str())));
        }
        told
    }

    /// A line of a log, which tells what happened and when.
    pub fn log_line(self, at: Timestamp, what: &str) -> Value {
        match self {
            Dialect::Ours | Dialect::OrlojJavaScript => json!(format!("{at} {what}")),
            Dialect::OrlojPython => json!({"timestamp": at.to_string(), "message": what}),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Dialect {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}
