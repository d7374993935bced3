//! A scripted model on the OpenAI chat-completions wire: it streams, calls tools, misbehaves on demand, and
//! is strict about what it is sent.
//!
//! In a test: `ModelServer::start(Script::turns([Turn::call("lookup", &json!({})), Turn::text("done")]))`. As
//! a program that outlives what it serves: `model-server`, which plays the plan in the user's message
//! ([`plan`]). This file owns the routes and the way of a request through the parts: read, validate, script,
//! fault, answer.

mod answer;
mod completion;
mod control;
mod fault;
mod ledger;
pub mod plan;
mod script;
mod stream;
mod validate;
mod whole;
mod wire;

pub use fault::{Fault, UnknownFault};
pub use ledger::CapturedRequest;
pub use script::{Script, ScriptError, Turn, Usage};
pub use validate::{Rule, Violation};
pub use wire::{ChatRequest, Content, Message, Part, Role, Text, ToolCall};

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::json;

use crate::loopback::{Desk, Handler, Hangup, Loopback, Reply, pause, read_body};
use answer::Answer;
use ledger::{Ledger, LogLine};

/// How the server goes about it, beside the script.
#[derive(Default)]
pub struct Settings {
    /// Waited before every answer, on top of what the turn asks for.
    pub latency: Duration,
    /// Keep no request bodies; a benchmark would fill the memory with them.
    pub forget_bodies: bool,
    /// Trust the requests and count them only in total.
    pub fast: bool,
    /// Where to write a line per request.
    pub log: Option<File>,
}

/// A scripted model running in this process; gone when dropped.
pub struct ModelServer {
    model: Arc<Model>,
    loopback: Loopback,
}

impl ModelServer {
    /// Starts on a free port.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_with(script, Settings::default()).await
    }

    /// Starts on a free port, set up differently.
    pub async fn start_with(script: Script, settings: Settings) -> io::Result<Self> {
        let model = Arc::new(Model::new(script, settings));
        let loopback = Loopback::start(Arc::clone(&model)).await?;
        Ok(Self { model, loopback })
    }

    /// What a model endpoint is configured with: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.loopback.address())
    }

    /// Every request to the model so far, in the order they came.
    pub fn requests(&self) -> Vec<CapturedRequest> {
        self.model.ledger.requests()
    }

    /// Every rule that was broken so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.model.ledger.violations()
    }

    /// The counts, in all and by request id.
    pub fn desk(&self) -> &Desk {
        &self.model.ledger.desk
    }
}

/// The model itself, for whoever brings a listener ([`crate::loopback::serve`]).
pub struct Model {
    script: Script,
    settings: Settings,
    ledger: Ledger,
}

/// A request with what is derived from it once.
struct Asked<'r> {
    request: &'r ChatRequest<'r>,
    fingerprint: u64,
    /// Stands in for the number of prompt tokens.
    body_length: usize,
}

/// What was decided about one request: everything but the waiting.
struct Decision {
    /// By which the request is counted.
    id: String,
    latency: Duration,
    answer: Answer,
}

impl Model {
    /// A model that plays `script`.
    pub fn new(script: Script, mut settings: Settings) -> Self {
        let ledger = Ledger::new(settings.log.take());
        Self { script, settings, ledger }
    }

    async fn complete(&self, parts: Parts, body: Incoming) -> Result<Response<Reply>, Hangup> {
        let body = read_body(body).await?;
        if !self.settings.forget_bodies {
            self.ledger.capture(CapturedRequest { headers: parts.headers.clone(), body: body.clone() });
        }
        let Decision { id, latency, answer } = self.decide(&parts.headers, &body);
        let ticket = self.ledger.desk.arrive(Some(&*id).filter(|_| !self.settings.fast));
        let latency = latency + self.settings.latency;
        if !latency.is_zero() {
            pause(latency).await;
        }
        match answer {
            Answer::Respond(response) => Ok(response.map(|reply| reply.with_ticket(ticket))),
            Answer::Close => Err(Hangup),
            Answer::Hang => std::future::pending().await,
        }
    }

    fn decide(&self, headers: &HeaderMap, body: &[u8]) -> Decision {
        let request = match ChatRequest::read(body) {
            Ok(request) => request,
            Err(error) => return self.refuse(unreadable_id(headers), 0, &[Violation::unreadable(&error)]),
        };
        let asked = Asked { request: &request, fingerprint: request.fingerprint(), body_length: body.len() };
        let id = request_id(headers, asked.fingerprint);
        let turn_index = request.n_assistant_messages();
        let violations = if self.settings.fast { Vec::new() } else { validate::check(headers, &request) };
        if !violations.is_empty() {
            return self.refuse(id, turn_index, &violations);
        }
        let turn = match self.script.turn(&request) {
            Ok(turn) => turn,
            Err(error) => return self.refuse(id, turn_index, &[Violation::unscripted(&error)]),
        };
        let latency = turn.latency;
        let fault = self.fault(&turn, asked.fingerprint);
        let fault_name = fault.map(Fault::name);
        self.ledger.log(&LogLine { id: &id, turn: turn_index, fault: fault_name, violations: &[] });
        Decision { id, latency, answer: answer::of_turn(turn, fault, &asked) }
    }

    /// The fault that strikes now, if any.
    fn fault(&self, turn: &Turn, fingerprint: u64) -> Option<Fault> {
        let planned = turn.fault?;
        let strikes = match planned.times {
            None => true,
            Some(times) => self.ledger.strike(fingerprint, planned.fault, times),
        };
        strikes.then_some(planned.fault)
    }

    fn refuse(&self, id: String, turn: usize, violations: &[Violation]) -> Decision {
        self.ledger.violate(violations);
        self.ledger.log(&LogLine { id: &id, turn, fault: None, violations });
        let response = answer::of_violation(&violations[0]);
        Decision { id, latency: Duration::ZERO, answer: Answer::Respond(Box::new(response)) }
    }
}

impl Handler for Model {
    async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Reply>, Hangup> {
        let (parts, body) = request.into_parts();
        match (&parts.method, parts.uri.path()) {
            (&Method::POST, "/v1/chat/completions") => self.complete(parts, body).await,
            (&Method::GET, "/v1/models") => Ok(models()),
            (method, path) => Ok(match path.strip_prefix("/_control/") {
                Some(route) => control::answer(&self.ledger, method, route, parts.uri.query()),
                None => {
                    let message = format!("unknown request: {method} {path}");
                    answer::error(
                        StatusCode::NOT_FOUND,
                        "invalid_request_error",
                        Some("unknown_url"),
                        &message,
                    )
                }
            }),
        }
    }
}

/// The id a request is counted by: the one its headers name, or else its transcript, which is as good an id
/// of a step as any.
fn request_id(headers: &HeaderMap, fingerprint: u64) -> String {
    named_id(headers).map_or_else(|| format!("transcript-{fingerprint:016x}"), str::to_owned)
}

fn unreadable_id(headers: &HeaderMap) -> String {
    named_id(headers).unwrap_or("unreadable").to_owned()
}

fn named_id(headers: &HeaderMap) -> Option<&str> {
    ["x-request-id", "idempotency-key"].into_iter().find_map(|name| headers.get(name)?.to_str().ok())
}

fn models() -> Response<Reply> {
    let model = json!({
        "id": "scripted",
        "object": "model",
        "created": whole::CREATED,
        "owned_by": "testing",
    });
    Reply::json(StatusCode::OK, &json!({ "object": "list", "data": [model] }))
}
