//! What the server is given to do: an agent with two tools, another behind it, and tasks of five steps for each of them.

use anyhow::Context as _;
use ostler_client::Client;
use serde_json::{Value, json};

use super::Ground;

/// Steps of an agent: model, tool, model, tool, model.
pub const N_STEPS: u32 = 5;

/// One task in so many uses the tool that is not idempotent.
const ONCE_EVERY: u64 = 10;

/// One task in so many is part of a conversation of four.
const IN_SESSION_EVERY: u64 = 4;
const IN_SESSION: u64 = 4;

/// One task in so many is done by two agents, one behind the other.
const SYSTEM_EVERY: u64 = 6;

/// The tool that may be called again when nobody knows the outcome.
const AGAIN: &str = "lookup";

/// The tool that must not.
pub const ONCE: &str = "order";

/// Declares the model, the tools, the agents and their system.
pub async fn apply(client: &Client, ground: &Ground) -> anyhow::Result<()> {
    let endpoint = json!({
        "provider": "openai", "base_url": ground.model.base_url(), "default_model": "scripted",
        "allowPrivate": true,
    });
    let tool = |address: String, idempotent: bool| {
        json!({
            "type": "http", "endpoint": address, "allowPrivate": true, "idempotent": idempotent,
            "description": "Answers a question.",
            "input_schema": { "type": "object", "properties": { "q": { "type": "string" } } },
        })
    };
    let ms = ground.pace.tool.as_millis();
    let again = tool(ground.tools.tool_url(&format!("slow-lookup?ms={ms}")), true);
    let once = tool(ground.tools.tool_url(&format!("slow-order?ms={ms}")), false);
    let agent = json!({ "model_ref": "scripted", "prompt": "Do as planned.", "tools": [AGAIN, ONCE] });
    let objects = [
        ("ModelEndpoint", "scripted", endpoint),
        ("Tool", AGAIN, again),
        ("Tool", ONCE, once),
        ("Agent", "worker", agent.clone()),
        ("Agent", "checker", agent),
        ("AgentSystem", "pair", json!({ "agents": ["worker", "checker"] })),
    ];
    for (kind, name, spec) in objects {
        client
            .apply(&manifest(kind, name, spec))
            .await
            .with_context(|| format!("{kind} {name} was refused"))?;
    }
    Ok(())
}

/// The key of the n-th task; its name too.
pub fn key(n: u64) -> String {
    format!("task-{n}")
}

/// The n-th task, with words of its own.
pub fn task(n: u64) -> Value {
    let key = key(n);
    let first = if n.is_multiple_of(ONCE_EVERY) { ONCE } else { AGAIN };
    let message = format!(
        "plan: tool {first} {{\"q\":\"{key}\"}}, tool {AGAIN} {{\"q\":\"{key} again\"}}, text=\"{}\"",
        output(&key)
    );
    let (kind, name) = if n_agents(n) > 1 { ("system", "pair") } else { ("agent", "worker") };
    let mut spec = json!({ kind: name, "idempotency_key": key, "input": { "message": message } });
    if n.is_multiple_of(IN_SESSION_EVERY) {
        spec["session"] = json!(format!("talk-{}", n / (IN_SESSION_EVERY * IN_SESSION)));
    }
    manifest("Task", &key, spec)
}

/// What is sent to the n-th task while it is worked on: from there on the model does this and nothing else.
pub fn input(n: u64) -> String {
    format!("Never mind the rest. plan: text=\"{}\"", output(&key(n)))
}

/// How many agents do the n-th task.
fn n_agents(n: u64) -> usize {
    if n.is_multiple_of(SYSTEM_EVERY) { 2 } else { 1 }
}

/// How many agents do the task with this key.
pub fn n_agents_of(key: &str) -> usize {
    key.strip_prefix("task-").and_then(|n| n.parse().ok()).map_or(1, n_agents)
}

/// What the task with this key ends with.
pub fn output(key: &str) -> String {
    format!("{key} is done")
}

fn manifest(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "ostler.dev/v1", "kind": kind, "metadata": { "name": name }, "spec": spec })
}
