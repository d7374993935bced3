//! Shapes of bodies and answers that are no kind.

mod access;
pub mod tasks;

use serde_json::{Map, Value, json};

/// A page of a list.
pub fn list(item: &Value) -> Value {
    let next = json!({"description": "Where the next page begins, if there is one.", "type": "string"});
    json!({
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": item},
            "continue": next,
            "metadata": {"type": "object", "properties": {"continue": next}},
        },
        "required": ["items"],
    })
}

pub fn all() -> Map<String, Value> {
    let worker = json!({ "$ref": "#/components/schemas/WorkerView" });
    let shapes = [
        ("Problem", problem()),
        ("Anything", json!({"type": "object"})),
        ("Health", object(&[("status", text())])),
        ("Version", object(&[("name", text()), ("version", text())])),
        ("Namespaces", object(&[("namespaces", list_of(text()))])),
        ("Capabilities", capabilities()),
        ("Checked", object(&[("items", list_of(checked()))])),
        ("Deleted", object(&[("deleted", text())])),
        ("Status", object(&[("metadata", anything()), ("status", anything())])),
        ("StatusReport", status_report()),
        ("Logs", object(&[("name", text()), ("logs", list_of(log_line()))])),
        ("TaskMetrics", metrics()),
        ("CancelRequest", optional("reason", json!({"type": ["string", "null"]}))),
        ("RetryRequest", optional("overrides", json!({"type": ["object", "null"]}))),
        ("Decision", json!({"type": "object"})),
        ("Delivery", json!({"type": "object"})),
        ("SecretKeys", object(&[("source", text()), ("keys", list_of(anything())), ("left", number())])),
        ("WorkerView", worker_view()),
        ("WorkerList", list(&worker)),
        ("SessionList", list(&session_view())),
    ];
    shapes
        .into_iter()
        .chain(access::all())
        .chain(tasks::all())
        .map(|(name, shape)| (name.to_owned(), shape))
        .collect()
}

/// Text; to clients that say they are the Python SDK of Orloj an object.
fn log_line() -> Value {
    json!({"anyOf": [text(), object(&[("timestamp", text()), ("message", text())])]})
}

fn checked() -> Value {
    let mut checked =
        object(&[("kind", text()), ("namespace", text()), ("name", text()), ("outcome", text())]);
    checked["properties"]["outcome"]["enum"] = json!(["created", "configured", "unchanged"]);
    checked
}

fn text() -> Value {
    json!({"type": "string"})
}

fn number() -> Value {
    json!({"type": "integer"})
}

fn anything() -> Value {
    json!({"type": "object"})
}

fn list_of(item: Value) -> Value {
    json!({"type": "array", "items": item})
}

/// All of these, and maybe others.
fn object(members: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        members.iter().map(|(name, shape)| ((*name).to_owned(), shape.clone())).collect();
    json!({"type": "object", "properties": properties, "required": names})
}

/// This, or nothing.
fn optional(name: &str, shape: Value) -> Value {
    json!({"type": "object", "properties": {name: shape}, "additionalProperties": false})
}

fn problem() -> Value {
    let mistake = json!({
        "type": "object",
        "properties": {
            "path": text(), "message": text(), "suggestion": text(), "line": number(), "column": number(),
        },
        "required": ["path", "message"],
    });
    json!({
        "type": "object",
        "description": "What a caller is told when something is refused (RFC 9457).",
        "properties": {
            "type": text(),
            "title": text(),
            "status": number(),
            "code": {"type": "string", "description": "Stable."},
            "detail": text(),
            "problems": list_of(mistake),
            "remedy": text(),
            "request_id": text(),
        },
        "required": ["type", "title", "status", "code", "detail", "request_id"],
    })
}

fn status_report() -> Value {
    let version = json!({"type": ["string", "integer", "null"]});
    json!({
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "properties": {"resourceVersion": version}},
            "status": anything(),
        },
        "required": ["status"],
    })
}

fn capabilities() -> Value {
    let one = object(&[
        ("id", text()),
        ("enabled", json!({"type": "boolean"})),
        ("description", text()),
        ("source", text()),
    ]);
    object(&[("generated_at", text()), ("capabilities", list_of(one))])
}

/// Of messages. Of those that wait for an approval it is told only where there is one.
const METRICS: [&str; 12] = [
    "messages",
    "queued",
    "running",
    "retrypending",
    "succeeded",
    "deadletter",
    "in_flight",
    "retry_count",
    "deadletters",
    "latency_ms_avg",
    "latency_ms_p95",
    "latency_sample_size",
];

fn metrics() -> Value {
    let totals = |names: &[&str]| {
        let names = names.iter().map(|name| (*name, text()));
        let counts = METRICS.iter().map(|name| (*name, number()));
        let mut totals = object(&names.chain(counts).collect::<Vec<_>>());
        totals["properties"]["waitingapproval"] = number();
        totals
    };
    object(&[
        ("name", text()),
        ("namespace", text()),
        ("generated_at", text()),
        ("totals", totals(&[])),
        ("per_agent", list_of(totals(&["agent"]))),
        ("per_edge", list_of(totals(&["from_agent", "to_agent"]))),
    ])
}

fn session_view() -> Value {
    object(&[
        ("apiVersion", text()),
        ("kind", json!({"type": "string", "const": "Session"})),
        ("metadata", object(&[("name", text()), ("namespace", text())])),
    ])
}

fn worker_view() -> Value {
    let held = object(&[("namespace", text()), ("name", text())]);
    let mut status = object(&[("phase", text()), ("standing", text())]);
    status["properties"]["tasks"] = list_of(held);
    object(&[
        ("apiVersion", text()),
        ("kind", json!({"type": "string", "const": "Worker"})),
        ("metadata", object(&[("name", text())])),
        ("spec", anything()),
        ("status", status),
    ])
}
