//! What a tool does when called.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::json;

use super::calls::Calls;
use super::contract;
use crate::loopback::{Reply, pause, query_value};

/// The ways of a tool, chosen by the beginning of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Gives its input back.
    Echo,
    /// Gives its input back after `?ms=` milliseconds (100).
    Slow,
    /// Fails with `?status=` (500), for the first `?times=` calls of a request id (always); then echoes.
    Fail,
    /// Answers with `?bytes=` bytes of text (5,000,000).
    Flood,
    /// Answers with an HTML page.
    Html,
    /// Answers in tool contract v1, with `?status=`, `?code=`, `?retryable=`.
    Contract,
    /// Never answers.
    Hang,
    /// Answers with bytes that are not UTF-8.
    InvalidUtf8,
    /// Has an effect that can be counted: adds one.
    Counter,
}

/// A call of a tool.
pub(super) struct Call<'c> {
    pub request_id: &'c str,
    pub query: Option<&'c str>,
    pub body: Bytes,
    /// How often this request id has been called, this time included.
    pub n_calls: u64,
}

const JSON: &str = "application/json";

impl Behaviour {
    /// All of them.
    pub const ALL: [Behaviour; 9] = [
        Behaviour::Echo,
        Behaviour::Slow,
        Behaviour::Fail,
        Behaviour::Flood,
        Behaviour::Html,
        Behaviour::Contract,
        Behaviour::Hang,
        Behaviour::InvalidUtf8,
        Behaviour::Counter,
    ];

    /// What names of such tools begin with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Behaviour::Echo => "echo",
            Behaviour::Slow => "slow",
            Behaviour::Fail => "fail",
            Behaviour::Flood => "flood",
            Behaviour::Html => "html",
            Behaviour::Contract => "contract",
            Behaviour::Hang => "hang",
            Behaviour::InvalidUtf8 => "invalid-utf8",
            Behaviour::Counter => "counter",
        }
    }

    /// The behaviour `?as=` names, or else the tool's name.
    pub fn of(tool: &str, query: Option<&str>) -> Option<Self> {
        let name = query_value(query, "as").unwrap_or(tool);
        Self::ALL.into_iter().find(|behaviour| name.starts_with(behaviour.prefix()))
    }

    pub(super) async fn perform(self, call: Call<'_>, calls: &Calls) -> Response<Reply> {
        let respond = |reply: Reply, content_type| reply.into_response(StatusCode::OK, content_type);
        match self {
            Behaviour::Echo => respond(Reply::whole(call.body), JSON),
            Behaviour::Slow => {
                pause(Duration::from_millis(number(call.query, "ms", 100))).await;
                respond(Reply::whole(call.body), JSON)
            }
            Behaviour::Fail => fail(call),
            Behaviour::Flood => {
                let n_bytes = usize::try_from(number(call.query, "bytes", 5_000_000)).unwrap_or(usize::MAX);
                respond(Reply::whole("x".repeat(n_bytes)), "text/plain")
            }
            Behaviour::Html => {
                respond(Reply::whole("<!DOCTYPE html><html><body>hello</body></html>"), "text/html")
            }
            Behaviour::Contract => Reply::json(StatusCode::OK, &contract::answer(&call)),
            Behaviour::Hang => std::future::pending().await,
            Behaviour::InvalidUtf8 => respond(Reply::whole(&b"{\"text\":\"\xff\xfe\"}"[..]), JSON),
            Behaviour::Counter => Reply::json(StatusCode::OK, &json!({ "counter": calls.count_up() })),
        }
    }
}

fn fail(call: Call<'_>) -> Response<Reply> {
    if call.n_calls > number(call.query, "times", u64::MAX) {
        return Reply::whole(call.body).into_response(StatusCode::OK, JSON);
    }
    let status = u16::try_from(number(call.query, "status", 500)).ok();
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    let body = json!({ "error": "asked to fail", "call": call.n_calls });
    Reply::json(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &body)
}

fn number(query: Option<&str>, key: &str, default: u64) -> u64 {
    query_value(query, key).and_then(|value| value.parse().ok()).unwrap_or(default)
}
