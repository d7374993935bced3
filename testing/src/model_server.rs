//! A scripted model that speaks every vendor's wire: it streams, thinks, calls tools, misbehaves on demand, and is
//! strict about what it is sent.
//!
//! In a test: `ModelServer::start(Script::turns([Turn::call("lookup", &json!({})), Turn::text("done")]))`. As
//! a program that outlives what it serves: `model-server`, which plays the plan in the user's message
//! ([`plan`]). One script serves all wires, which are told apart by their paths ([`Wire`]). This file owns the
//! way of a request through the parts: read, check, script, fault, answer. The folder of a wire owns what only
//! that vendor does.

mod answer;
mod anthropic;
mod azure;
mod chat;
mod completion;
mod control;
mod conversation;
mod events;
mod fault;
mod gemini;
mod ledger;
mod media;
mod ollama;
pub mod plan;
mod responses;
mod rules;
mod schema;
mod script;
mod shape;
mod signature;
mod trouble;
mod wire;

pub use conversation::{Conversation, Said, Speaker};
pub use fault::{Fault, UnknownFault};
pub use ledger::CapturedRequest;
pub use rules::{Rule, Violation};
pub use script::{Finish, Script, ScriptError, Turn, Usage};
pub use wire::Wire;

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::json;

use crate::loopback::{Desk, Handler, Hangup, Loopback, Reply, pause, read_body};
use answer::Answer;
use anthropic::Anthropic;
use azure::Azure;
use chat::Chat;
use completion::{Completion, tokens};
use gemini::Gemini;
use ledger::{Ledger, LogLine};
use ollama::Ollama;
use responses::Responses;
use rules::Findings;
use trouble::Trouble;
use wire::{Call, Dialect};

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

    /// What a model endpoint on an OpenAI wire is configured with: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.root_url())
    }

    /// Where every wire begins: `http://127.0.0.1:PORT`.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.loopback.address())
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

    async fn complete(&self, wire: Wire, parts: Parts, body: Incoming) -> Result<Response<Reply>, Hangup> {
        let body = read_body(body).await?;
        if !self.settings.forget_bodies {
            self.ledger.capture(CapturedRequest {
                wire,
                path: parts.uri.to_string(),
                headers: parts.headers.clone(),
                body: body.clone(),
            });
        }
        let Decision { id, latency, answer } = self.decide_on(wire, &parts, &body);
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

    fn decide_on(&self, wire: Wire, parts: &Parts, body: &Bytes) -> Decision {
        let call = Call { wire, parts, body_length: body.len() };
        match wire {
            Wire::Chat => self.decide::<Chat>(&call, body),
            Wire::Responses => self.decide::<Responses>(&call, body),
            Wire::Anthropic => self.decide::<Anthropic>(&call, body),
            Wire::Azure => self.decide::<Azure>(&call, body),
            Wire::Ollama => self.decide::<Ollama>(&call, body),
            Wire::Gemini => self.decide::<Gemini>(&call, body),
        }
    }

    fn decide<D: Dialect>(&self, call: &Call<'_>, body: &[u8]) -> Decision {
        let headers = &call.parts.headers;
        let request = match D::read(body) {
            Ok(request) => request,
            Err(error) => {
                return self.refuse::<D>(unreadable_id(headers), 0, &[Violation::unreadable(&error)]);
            }
        };
        let conversation = D::conversation(call, &request);
        let id = request_id(headers, conversation.fingerprint);
        let turn_index = conversation.n_assistant_messages();
        let mut findings = Findings::default();
        if !self.settings.fast {
            D::check(call, &request, &mut findings);
        }
        if !findings.0.is_empty() {
            return self.refuse::<D>(id, turn_index, &findings.0);
        }
        let turn = match self.script.turn(&conversation) {
            Ok(turn) => turn,
            Err(error) => return self.refuse::<D>(id, turn_index, &[Violation::unscripted(&error)]),
        };
        let latency = turn.latency;
        let fault = self.fault(&turn, conversation.fingerprint);
        let fault_name = fault.map(Fault::name);
        self.ledger.log(&LogLine { id: &id, turn: turn_index, fault: fault_name, violations: &[] });
        let settle =
            |completion: &mut Completion<'_>| self.settle(completion, &conversation, call.body_length);
        Decision { id, latency, answer: answer::of_turn::<D>(turn, fault, &conversation, settle) }
    }

    /// Counts the tokens of an answer whose turn doesn't tell them.
    fn settle(&self, completion: &mut Completion<'_>, conversation: &Conversation<'_>, body_length: usize) {
        if completion.usage.is_some() {
            return;
        }
        let reasoning = completion.n_thinking_tokens();
        let (cache_read, cache_write) = self.ledger.cache(&conversation.prefixes);
        completion.usage = Some(Usage {
            prompt_tokens: tokens(body_length),
            completion_tokens: completion.n_tokens() + reasoning,
            cache_read,
            cache_write,
            reasoning,
        });
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

    fn refuse<D: Dialect>(&self, id: String, turn: usize, violations: &[Violation]) -> Decision {
        self.ledger.violate(violations);
        self.ledger.log(&LogLine { id: &id, turn, fault: None, violations });
        let response = answer::of_trouble::<D>(&Trouble::Invalid(&violations[0]));
        Decision { id, latency: Duration::ZERO, answer: Answer::Respond(Box::new(response)) }
    }
}

impl Handler for Model {
    async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Reply>, Hangup> {
        let (parts, body) = request.into_parts();
        let (method, path) = (&parts.method, parts.uri.path());
        if let Some(wire) = Wire::of(method, path) {
            return self.complete(wire, parts, body).await;
        }
        if let Some(route) = path.strip_prefix("/_control/") {
            return Ok(control::answer(&self.ledger, method, route, parts.uri.query()));
        }
        Ok(match (method, path) {
            (&Method::GET, "/v1/models") => models(),
            _ => not_found(path, &format!("unknown request: {method} {path}")),
        })
    }
}

/// Nothing is there, said in the shape of the wire that is nearest.
fn not_found(path: &str, message: &str) -> Response<Reply> {
    let trouble = Trouble::NotFound(message);
    match Wire::near(path) {
        Wire::Chat => answer::of_trouble::<Chat>(&trouble),
        Wire::Responses => answer::of_trouble::<Responses>(&trouble),
        Wire::Anthropic => answer::of_trouble::<Anthropic>(&trouble),
        Wire::Azure => answer::of_trouble::<Azure>(&trouble),
        Wire::Ollama => answer::of_trouble::<Ollama>(&trouble),
        Wire::Gemini => answer::of_trouble::<Gemini>(&trouble),
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
        "created": chat::CREATED,
        "owned_by": "testing",
    });
    Reply::json(StatusCode::OK, &json!({ "object": "list", "data": [model] }))
}
