//! What the server works with and on: a model and a tool on loopback, two agents, and tasks for them.
//!
//! The model notes when the first call of each task arrived, by the clock that also times the client.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use ostler_client::Client;
use ostler_testing::model_server::{Conversation, ModelServer, Script, Settings, Turn};
use ostler_testing::tool_server::ToolServer;
use serde_json::{Value, json};

use crate::http::{Connection, Request};
use crate::ostler::Ostler;

/// Who does a task.
#[derive(Debug, Clone, Copy)]
pub enum Agent {
    /// One model call.
    Answers,
    /// A model call, a tool call, a model call.
    LooksUp,
}

pub struct Ground {
    model: ModelServer,
    tools: ToolServer,
    arrivals: Arc<Arrivals>,
    n_tasks: AtomicU64,
}

/// How long a task took, from just before it was sent.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub accepted: Duration,
    pub first_call: Duration,
    pub done: Duration,
}

#[derive(Default)]
struct Arrivals(Mutex<BTreeMap<String, Instant>>);

impl Ground {
    pub async fn start() -> anyhow::Result<Self> {
        let arrivals = Arc::new(Arrivals::default());
        let noting = Arc::clone(&arrivals);
        let script = Script::function(move |request| answer(&noting, request));
        let settings = Settings { forget_bodies: true, fast: true, ..Settings::default() };
        let model = ModelServer::start_with(script, settings).await?;
        Ok(Self { model, tools: ToolServer::start().await?, arrivals, n_tasks: AtomicU64::new(0) })
    }

    /// The model's address, for whoever calls it without Ostler.
    pub fn model_url(&self) -> String {
        self.model.base_url()
    }

    /// Declares the model, the tool and the agents.
    pub async fn prepare(&self, ostler: &Ostler) -> anyhow::Result<()> {
        let client = Client::new(&ostler.url(), ostler.token())?;
        let endpoint = json!({
            "provider": "openai", "base_url": self.model.base_url(), "default_model": "scripted",
            "allowPrivate": true,
        });
        let tool = json!({
            "type": "http", "endpoint": self.tools.tool_url("echo"), "allowPrivate": true, "idempotent": true,
            "description": "Answers a question.",
            "input_schema": { "type": "object", "properties": { "q": { "type": "string" } } },
        });
        let answers = json!({ "model_ref": "scripted", "prompt": "Answer." });
        let looks_up = json!({ "model_ref": "scripted", "prompt": "Look it up.", "tools": ["echo"] });
        let objects = [
            ("ModelEndpoint", "scripted", endpoint),
            ("Tool", "echo", tool),
            ("Agent", Agent::Answers.name(), answers),
            ("Agent", Agent::LooksUp.name(), looks_up),
        ];
        for (kind, name, spec) in objects {
            let manifest = manifest(kind, &json!({ "name": name }), &spec);
            client.apply(&manifest).await.with_context(|| format!("{kind} {name} was refused"))?;
        }
        Ok(())
    }

    /// Sends a task and follows its events until it has succeeded.
    pub async fn run_task(&self, connection: &mut Connection, agent: Agent) -> anyhow::Result<Times> {
        let marker = format!("question {}", self.n_tasks.fetch_add(1, Ordering::Relaxed));
        let spec = json!({ "agent": agent.name(), "input": { "message": marker } });
        let body = manifest("Task", &json!({}), &spec).to_string();
        let create = Request { method: "POST", path: "/v1/tasks", accept: "*/*", body: &body };
        let began = Instant::now();
        let created = connection.call(&create).await?;
        let accepted = began.elapsed();
        let text = || String::from_utf8_lossy(&created.body);
        ensure!(created.status == 201, "a task was refused: {} {}", created.status, text());
        let task: Value = serde_json::from_slice(&created.body)?;
        let uid = task.pointer("/metadata/uid").and_then(Value::as_str).context("a task without a uid")?;
        let path = format!("/v1/tasks/{uid}/events");
        let follow = Request { method: "GET", path: &path, accept: "text/event-stream", body: "" };
        let followed = connection.call(&follow).await?;
        let done = began.elapsed();
        check_succeeded(&followed.body)?;
        let arrived = self.arrivals.take(&marker).context("the model was not asked")?;
        Ok(Times { accepted, first_call: arrived.saturating_duration_since(began), done })
    }
}

impl Agent {
    pub fn name(self) -> &'static str {
        match self {
            Agent::Answers => "answers",
            Agent::LooksUp => "looks-up",
        }
    }

    pub fn n_steps(self) -> u32 {
        match self {
            Agent::Answers => 1,
            Agent::LooksUp => 3,
        }
    }
}

pub fn manifest(kind: &str, metadata: &Value, spec: &Value) -> Value {
    json!({ "apiVersion": "ostler.dev/v1", "kind": kind, "metadata": metadata, "spec": spec })
}

impl Arrivals {
    fn note(&self, marker: &str) {
        let now = Instant::now();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(marker.to_owned(), now);
    }

    fn take(&self, marker: &str) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(marker)
    }
}

/// Calls the tool once, if there is one, and then answers.
fn answer(arrivals: &Arrivals, request: &Conversation<'_>) -> Turn {
    if request.n_assistant_messages() > 0 {
        return Turn::text("The answer is forty-two.");
    }
    arrivals.note(request.last_user_text());
    match request.tool_names().next() {
        Some(_) => Turn::call_first_offered(&json!({ "q": "what is it?" })),
        None => Turn::text("The answer is forty-two."),
    }
}

fn check_succeeded(events: &[u8]) -> anyhow::Result<()> {
    let events = String::from_utf8_lossy(events);
    let last = events.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or("nothing");
    let last_event: Value = serde_json::from_str(last).unwrap_or_default();
    let state = last_event.pointer("/body/state/state").and_then(Value::as_str);
    ensure!(state == Some("succeeded"), "a task did not succeed: {last}");
    Ok(())
}
