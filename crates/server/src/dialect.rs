//! Who reads some answers in another shape, and says so by its name. The JavaScript SDK of Orloj sends `User-Agent:
//! orloj-js-sdk/<version>` with all it asks. It takes lists of tokens, users and namespaces as bare arrays, and of all events
//! only those that a stream calls `resource`. Everybody else, whoever names no such SDK, is answered as described.

use std::convert::Infallible;

use axum::{extract::FromRequestParts, response::Response};
use http::{HeaderMap, StatusCode, header, request::Parts};
use serde::Serialize;

use crate::{
    parameters::{MAX_LIMIT, Parameters},
    problem::Problem,
    routes::answer,
    wire::list::List,
};

/// What such an SDK calls itself, before its version.
const ORLOJ_SDK: &str = "orloj-js-sdk/";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// As the description says.
    Ours,
    OrlojSdk,
}

impl Dialect {
    fn of(headers: &HeaderMap) -> Self {
        let name = headers.get(header::USER_AGENT).map_or(&b""[..], |name| name.as_bytes());
        if name.starts_with(ORLOJ_SDK.as_bytes()) { Dialect::OrlojSdk } else { Dialect::Ours }
    }

    /// How many at most. A bare array can't say that there are more, so it holds as many as a page may.
    pub fn limit(self, parameters: &Parameters) -> Result<usize, Problem> {
        match self {
            Dialect::OrlojSdk if parameters.get("limit").is_none() => Ok(MAX_LIMIT),
            Dialect::OrlojSdk | Dialect::Ours => parameters.limit(),
        }
    }

    pub fn list<T: Serialize>(self, list: &List<T>) -> Response {
        match self {
            Dialect::Ours => answer(StatusCode::OK, list),
            Dialect::OrlojSdk => answer(StatusCode::OK, &list.items()),
        }
    }

    /// What a stream of all events calls each of them.
    pub fn event_name(self) -> &'static str {
        match self {
            Dialect::Ours => "event",
            Dialect::OrlojSdk => "resource",
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Dialect {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}
