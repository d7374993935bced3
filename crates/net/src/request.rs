//! One call to be made, with its bounds.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};

#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    /// Absolute, `http` or `https`, without credentials in it.
    pub url: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub timeouts: Timeouts,
    /// Bytes of an answer's body before the call fails.
    pub max_body: u64,
    /// Lets the call go to addresses that are not public.
    pub allow_private: bool,
    pub redirects: Redirects,
}

/// What becomes of an answer that says to ask elsewhere. Whatever is followed: each hop is checked like a call of its
/// own; a call that leaves its host and port can't reach private addresses any more; from https it never goes to http;
/// and another origin sees no header that might be a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redirects {
    /// It is a failure.
    #[default]
    Refused,
    /// Followed where the request is repeated as it is (307, 308), and where its result lies elsewhere (303).
    Unchanged { max: u8 },
    /// Followed; 301 and 302 turn a POST into a GET without a body.
    Followed { max: u8 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the request begins to be sent.
    pub connect: Duration,
    /// Until the head of the answer is there, connecting included.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
    /// For all of it.
    pub total: Duration,
}

impl Request {
    /// A POST with the usual bounds.
    pub fn post(url: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::POST,
            url: url.into(),
            headers: HeaderMap::new(),
            body: body.into(),
            timeouts: Timeouts::default(),
            max_body: 8 * 1024 * 1024,
            allow_private: false,
            redirects: Redirects::Refused,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
        }
    }
}
