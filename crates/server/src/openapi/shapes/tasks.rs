//! What a task tells: its status, trace, messages, steps and events. A manifest may carry the status that was read with it, so
//! nothing in that is required; whatever is sent is of the type that stands here.

use serde_json::{Map, Value, json};

use super::{list_of, number, object, text};
use crate::wire::task::{PHASES, STATES};

pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("TaskStatus", status()),
        (
            "TaskStatusAlone",
            object(&[("metadata", json!({"type": "object"})), ("status", reference("TaskStatus"))]),
        ),
        ("TraceEntry", trace_entry()),
        (
            "HistoryEntry",
            with(&[("timestamp", text()), ("type", text()), ("message", text())], &[("worker", text())]),
        ),
        ("TaskMessage", message()),
        ("Usage", usage()),
        ("Failure", failure()),
        ("Steps", object(&[("items", list_of(step()))])),
        ("TaskEvents", object(&[("items", list_of(event())), ("last", number())])),
        ("Messages", messages()),
        (
            "Trace",
            object(&[("name", text()), ("namespace", text()), ("trace", list_of(reference("TraceEntry")))]),
        ),
    ]
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// All of the first, and maybe some of the others.
fn with(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let mut shape = object(required);
    if let Some(properties) = shape["properties"].as_object_mut() {
        properties.extend(optional.iter().map(|(name, shape)| ((*name).to_owned(), shape.clone())));
    }
    shape
}

fn texts(names: &[&'static str]) -> Vec<(&'static str, Value)> {
    names.iter().map(|name| (*name, text())).collect()
}

fn numbers(names: &[&'static str]) -> Vec<(&'static str, Value)> {
    names.iter().map(|name| (*name, number())).collect()
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn one_of(names: &[&str]) -> Value {
    json!({"type": "string", "enum": names})
}

fn texts_by_name() -> Value {
    json!({"type": "object", "additionalProperties": text()})
}

fn status() -> Value {
    let mut members = texts(&[
        "run",
        "session",
        "startedAt",
        "completedAt",
        "lastError",
        "archivedAt",
        "assignedWorker",
        "claimedBy",
        "nextAttemptAt",
        "lastHeartbeat",
        "leaseUntil",
    ]);
    members.extend(numbers(&["lastEvent", "observedGeneration", "attempts"]));
    members.extend([
        ("phase", one_of(&PHASES.map(|(phase, _)| phase))),
        ("state", one_of(&STATES)),
        ("output", texts_by_name()),
        ("error", reference("Failure")),
        (
            "waitingFor",
            object(&[("kind", one_of(&["input", "approval", "quarantine"])), ("summary", text())]),
        ),
        ("usage", reference("Usage")),
        ("shortened", list_of(text())),
        ("history", list_of(reference("HistoryEntry"))),
        ("trace", list_of(reference("TraceEntry"))),
        ("messages", list_of(reference("TaskMessage"))),
        ("message_idempotency", list_of(idempotency())),
        ("join_states", list_of(json!({"type": "object"}))),
    ]);
    let mut shape = with(&[], &members);
    shape["type"] = json!(["object", "null"]);
    shape["description"] = json!("What was found out about a task; not read from manifests.");
    shape["properties"]["shortened"]["description"] =
        json!("In lists: the fields of which only the beginning is shown.");
    shape
}

fn idempotency() -> Value {
    with(&texts(&["key", "message_id", "state", "updated_at", "expires_at"]), &texts(&["worker"]))
}

fn trace_entry() -> Value {
    let required =
        [texts(&["timestamp", "step_id", "branch_id", "type", "agent"]), numbers(&["attempt"])].concat();
    let mut optional = texts(&[
        "tool",
        "tool_request_id",
        "error_code",
        "error_reason",
        "message",
        "token_usage_source",
        "tool_auth_profile",
        "tool_auth_secret_ref",
    ]);
    optional.extend(numbers(&[
        "step",
        "latency_ms",
        "tokens",
        "input_tokens",
        "output_tokens",
        "cost_micro_usd",
        "tool_calls",
    ]));
    optional.push(("retryable", flag()));
    let mut shape = with(&required, &optional);
    shape["properties"]["step_id"]["pattern"] = json!(r"^a\d{3,}\.s\d{4,}(\.[a-z]+)?$");
    shape
}

fn message() -> Value {
    let mut required = texts(&[
        "timestamp",
        "message_id",
        "idempotency_key",
        "task_id",
        "from_agent",
        "to_agent",
        "branch_id",
        "type",
        "content",
        "trace_id",
    ]);
    required.extend(numbers(&["attempt", "attempts", "max_attempts"]));
    let phases = ["Queued", "Running", "RetryPending", "WaitingApproval", "Succeeded", "DeadLetter"];
    required.push(("phase", one_of(&phases)));
    let optional = texts(&[
        "system",
        "parent_branch_id",
        "parent_id",
        "last_error",
        "worker",
        "processed_at",
        "next_attempt_at",
    ]);
    with(&required, &optional)
}

fn messages() -> Value {
    object(&[
        ("name", text()),
        ("namespace", text()),
        ("total", number()),
        ("filtered_from", number()),
        ("lifecycle_counts", lifecycle()),
        ("messages", list_of(reference("TaskMessage"))),
    ])
}

/// How many messages are in each phase.
fn lifecycle() -> Value {
    let counts = ["queued", "running", "retrypending", "succeeded", "deadletter"];
    with(&numbers(&counts), &numbers(&["waitingapproval"]))
}

fn usage() -> Value {
    let mut optional =
        numbers(&["cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cost_micro_usd"]);
    optional.extend([("estimated", flag()), ("cost_incomplete", flag())]);
    with(&numbers(&["input_tokens", "output_tokens"]), &optional)
}

fn failure() -> Value {
    let classes = ["transient", "permanent", "limit", "timeout", "outcome_unknown", "cancelled"];
    let required = [("code", text()), ("class", one_of(&classes)), ("message", text())];
    with(&required, &numbers(&["retry_after_ms"]))
}

/// A model call, a tool call, or a wait.
fn step_kind() -> Value {
    let call = object(&texts(&["id", "name"]));
    with(
        &[("type", one_of(&["model", "tool", "wait"]))],
        &[
            ("model", text()),
            ("fallback", json!({"type": "object"})),
            ("call", call),
            ("arguments", text()),
            ("idempotent", flag()),
            ("instead", json!({"type": "object"})),
        ],
    )
}

fn step() -> Value {
    let outcome = with(&[("outcome", outcomes())], &[("failure", reference("Failure"))]);
    let state = with(
        &[("state", one_of(&["open", "done"]))],
        &[("outcome", outcome), ("at", number()), ("took_ms", number()), ("usage", reference("Usage"))],
    );
    let required = [
        ("id", object(&[("run", text()), ("index", number())])),
        ("kind", step_kind()),
        ("state", state),
        ("attempt", number()),
        ("opened_at", number()),
    ];
    with(&required, &texts(&["agent"]))
}

fn outcomes() -> Value {
    one_of(&["ok", "failed", "interrupted"])
}

/// Every event that a task's log can hold.
pub const EVENTS: [&str; 12] = [
    "task_accepted",
    "attempt_started",
    "step_finished",
    "attempt_ended",
    "run_retrying",
    "run_waiting",
    "run_sleeping",
    "run_ready",
    "input_accepted",
    "message_sent",
    "run_ended",
    "task_ended",
];

fn event() -> Value {
    object(&[
        ("seq", number()),
        ("position", number()),
        ("task", text()),
        ("at", number()),
        ("body", event_body()),
    ])
}

/// Which of these are there depends on the type.
fn event_body() -> Value {
    let end = with(&[("end", one_of(&["yielded", "error", "lost"]))], &[("failure", reference("Failure"))]);
    let state = with(&[("state", one_of(&STATES))], &[("reason", text())]);
    let sent = with(
        &[texts(&["from", "to", "branch", "type", "content"]), numbers(&["hop"])].concat(),
        &texts(&["parent_branch", "parent"]),
    );
    let mut members = texts(&[
        "run",
        "system",
        "agent",
        "worker",
        "blocker",
        "summary",
        "reason",
        "output",
        "preview",
        "contract_violation",
    ]);
    members.extend(numbers(&[
        "attempt",
        "step",
        "failures",
        "not_before",
        "until",
        "input",
        "started_at",
        "took_ms",
    ]));
    members.extend([
        ("kind", step_kind()),
        ("outcome", outcomes()),
        ("opened", list_of(object(&[("step", number()), ("kind", step_kind())]))),
        ("usage", reference("Usage")),
        ("failure", reference("Failure")),
        ("end", end),
        ("message", sent),
        ("state", state),
    ]);
    with(&[("type", one_of(&EVENTS))], &members)
}

/// What a Task is described with: its status in full.
pub fn describe_status(schemas: &mut Map<String, Value>) {
    if let Some(properties) = schemas.get_mut("Task").and_then(|task| task["properties"].as_object_mut()) {
        properties.insert("status".to_owned(), reference("TaskStatus"));
    }
}
