//! A tool server that outlives what it serves and remembers every call by its request id.
//!
//! `POST /tool/{name}` with a raw JSON body and `x-request-id`. What a tool does is told by the beginning of its
//! name (`echo`, `slow-lookup`, `fail_twice`), or by `?as=`; see [`Behaviour`]. Control routes:
//!
//! - `GET /_control/calls`: what is known of each request id.
//! - `GET /_control/counter`: how often `counter` had its effect.
//! - `GET /_control/inflight`: how many calls are being answered now, and their ids.
//! - `POST /_control/reset`: forgets everything.

mod behaviour;
mod calls;
mod contract;

pub use behaviour::Behaviour;
pub use calls::CallRecord;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::json;

use crate::loopback::{Desk, Handler, Hangup, Loopback, Reply, read_body};
use behaviour::Call;
use calls::Calls;

/// A tool server running in this process; gone when dropped.
pub struct ToolServer {
    tools: Arc<Tools>,
    loopback: Loopback,
}

impl ToolServer {
    /// Starts on a free port.
    pub async fn start() -> io::Result<Self> {
        let tools = Arc::new(Tools::default());
        let loopback = Loopback::start(Arc::clone(&tools)).await?;
        Ok(Self { tools, loopback })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.loopback.address())
    }

    /// Where the tool of this name is called; a query may follow.
    pub fn tool_url(&self, name: &str) -> String {
        format!("{}/tool/{name}", self.base_url())
    }

    /// What is known of each request id.
    pub fn calls(&self) -> BTreeMap<String, CallRecord> {
        self.tools.calls.all(&self.tools.desk)
    }

    /// How often `counter` had its effect.
    pub fn counter(&self) -> u64 {
        self.tools.calls.counter()
    }

    /// The counts, in all and by request id.
    pub fn desk(&self) -> &Desk {
        &self.tools.desk
    }
}

/// The tools themselves, for whoever brings a listener ([`crate::loopback::serve`]).
#[derive(Default)]
pub struct Tools {
    calls: Calls,
    desk: Arc<Desk>,
}

impl Tools {
    async fn call(&self, tool: &str, parts: &Parts, body: Incoming) -> Result<Response<Reply>, Hangup> {
        let query = parts.uri.query();
        let Some(behaviour) = Behaviour::of(tool, query) else {
            return Ok(problem(StatusCode::NOT_FOUND, "no tool's behaviour begins like this name"));
        };
        let body = read_body(body).await?;
        let request_id = request_id(&parts.headers);
        let ticket = self.desk.arrive(Some(request_id));
        let n_calls = self.calls.record(request_id, tool, &parts.headers, &body);
        let call = Call { request_id, query, body, n_calls };
        let response = behaviour.perform(call, &self.calls).await;
        Ok(response.map(|reply| reply.with_ticket(ticket)))
    }

    fn control(&self, method: &Method, route: &str) -> Response<Reply> {
        let body = match (method, route) {
            (&Method::GET, "calls") => json!(self.calls.all(&self.desk)),
            (&Method::GET, "counter") => json!({ "counter": self.calls.counter() }),
            (&Method::GET, "inflight") => {
                let by_id = self.desk.by_id(|tally| tally.inflight > 0);
                let ids: Vec<_> = by_id.keys().map(|id| &**id).collect();
                json!({ "inflight": self.desk.all().inflight, "ids": ids })
            }
            (&Method::POST, "reset") => {
                self.calls.reset();
                self.desk.reset();
                json!({})
            }
            _ => return problem(StatusCode::NOT_FOUND, "no such control route"),
        };
        Reply::json(StatusCode::OK, &body)
    }
}

impl Handler for Tools {
    async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Reply>, Hangup> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        if let Some(route) = path.strip_prefix("/_control/") {
            return Ok(self.control(&parts.method, route));
        }
        match path.strip_prefix("/tool/") {
            Some(tool) if parts.method == Method::POST => self.call(tool, &parts, body).await,
            Some(_) => Ok(problem(StatusCode::METHOD_NOT_ALLOWED, "a tool is called with POST")),
            None => Ok(problem(StatusCode::NOT_FOUND, "tools are at /tool/{name}")),
        }
    }
}

/// A call without an id is remembered too: as a mistake of its caller.
fn request_id(headers: &HeaderMap) -> &str {
    headers.get("x-request-id").and_then(|value| value.to_str().ok()).unwrap_or("none")
}

fn problem(status: StatusCode, message: &str) -> Response<Reply> {
    Reply::json(status, &json!({ "error": message }))
}
