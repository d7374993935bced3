//! What a row of each kind shows.

use ostler_spec::Kind;
use serde_json::Value;

use crate::{
    clock,
    paint::Tone,
    table::{Cell, Table},
};

#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub wide: bool,
    pub with_namespace: bool,
    /// `agent/hello` in place of `hello`, where several kinds stand together.
    pub with_kind: bool,
    /// Wide columns that hold nothing are shown all the same.
    pub keeps_empty: bool,
    pub now_ms: i64,
}

/// A column: its title, and where its text is found.
type Column = (&'static str, fn(&Value) -> String);

pub fn table(kind: Kind, objects: &[Value], look: Look) -> Table {
    let mut columns: Vec<Column> = vec![("NAME", |object| at(object, "/metadata/name"))];
    if look.with_namespace {
        columns.insert(0, ("NAMESPACE", |object| at(object, "/metadata/namespace")));
    }
    columns.extend(narrow(kind));
    if look.wide {
        let holds_something = |(_, find): &Column| objects.iter().any(|object| !find(object).is_empty());
        let more = wide(kind).into_iter().chain(common());
        columns.extend(more.filter(|column| look.keeps_empty || holds_something(column)));
    }
    let mut table = Table::new(columns.iter().map(|column| column.0).chain(["AGE"]));
    for object in objects {
        let cell = |(title, find): &Column| {
            let text = find(object);
            let tone = tone(title, &text);
            match (*title, look.with_kind) {
                ("NAME", true) => Cell::new(format!("{}/{text}", kind.singular())),
                _ => Cell::toned(text, tone),
            }
        };
        let created = clock::parse(&at(object, "/metadata/createdAt"));
        let age = created.map_or_else(String::new, |created| clock::age(created, look.now_ms));
        table.row(columns.iter().map(cell).chain([age.into()]));
    }
    table
}

fn tone(title: &str, text: &str) -> Tone {
    match title {
        "STATE" => Tone::of_state(text),
        "PHASE" | "STATUS" => phase_tone(text),
        _ => Tone::Plain,
    }
}

/// Of a resource's phase, with what was decided about it behind a comma.
pub fn phase_tone(phase: &str) -> Tone {
    match phase.split(',').next().unwrap_or_default() {
        "Ready" | "Succeeded" | "Approved" | "Active" => Tone::Good,
        "Error" | "Failed" | "NotReady" | "DeadLetter" | "Denied" | "Expired" => Tone::Bad,
        "Pending" | "Waiting" | "WaitingApproval" => Tone::Pending,
        _ => Tone::Plain,
    }
}

/// Those always shown.
fn narrow(kind: Kind) -> Vec<Column> {
    match kind {
        Kind::Agent => {
            vec![("MODEL", |it| at(it, "/spec/model_ref")), ("TOOLS", |it| listed(it, "/spec/tools"))]
        }
        Kind::AgentSystem => {
            vec![("AGENTS", |it| listed(it, "/spec/agents")), ("PHASE", phase)]
        }
        Kind::ModelEndpoint => {
            vec![("PROVIDER", |it| at(it, "/spec/provider")), ("MODEL", |it| at(it, "/spec/default_model"))]
        }
        Kind::Tool => vec![("TYPE", |it| at(it, "/spec/type")), ("ENDPOINT", reached_at)],
        Kind::Secret => vec![("KEYS", |it| keys(it, "/spec/data"))],
        Kind::SealedSecret => vec![("KEYS", |it| keys(it, "/spec/encryptedData"))],
        Kind::Memory => {
            vec![("PROVIDER", |it| at(it, "/spec/provider")), ("TYPE", |it| at(it, "/spec/type"))]
        }
        Kind::AgentRole => vec![("PERMISSIONS", |it| listed(it, "/spec/permissions"))],
        Kind::ToolPermission => {
            vec![("TOOL", |it| at(it, "/spec/tool_ref")), ("ACTION", |it| at(it, "/spec/action"))]
        }
        Kind::AgentPolicy => {
            vec![("APPLIES TO", policy_scope), ("MAX TOKENS", |it| at(it, "/spec/max_tokens_per_run"))]
        }
        Kind::ContextAdapter => vec![("TOOL", |it| at(it, "/spec/tool_ref"))],
        Kind::McpServer => vec![
            ("TRANSPORT", |it| at(it, "/spec/transport")),
            ("AT", |it| first_of(it, &["/spec/endpoint", "/spec/command", "/spec/image"])),
            ("PHASE", phase),
        ],
        Kind::Worker => vec![
            ("STATUS", worker_status),
            ("RUNS", |it| {
                format!("{}/{}", at(it, "/status/currentTasks"), at(it, "/spec/max_concurrent_tasks"))
            }),
            ("REGION", |it| at(it, "/spec/region")),
        ],
        Kind::Session => vec![("SYSTEM", |it| at(it, "/spec/system")), ("PHASE", phase)],
        Kind::Task => vec![
            ("SUBJECT", subject),
            ("STATE", |it| first_of(it, &["/status/state", "/spec/mode"])),
            ("TOKENS", tokens),
        ],
        Kind::TaskSchedule => vec![
            ("SCHEDULE", |it| at(it, "/spec/schedule")),
            ("ZONE", |it| at(it, "/spec/time_zone")),
            ("TASK", |it| at(it, "/spec/task_ref")),
            ("SUSPENDED", |it| yes(it, "/spec/suspend")),
        ],
        Kind::TaskWebhook => vec![
            ("TASK", |it| at(it, "/spec/task_ref")),
            ("AUTH", |it| at(it, "/spec/auth/profile")),
            ("SUSPENDED", |it| yes(it, "/spec/suspend")),
        ],
        Kind::ToolApproval => vec![
            ("TASK", |it| at(it, "/spec/task_ref")),
            ("TOOL", |it| at(it, "/spec/tool")),
            ("PHASE", phase),
        ],
        Kind::TaskApproval => vec![
            ("TASK", |it| at(it, "/spec/task_ref")),
            ("CHECKPOINT", |it| at(it, "/spec/checkpoint_id")),
            ("PHASE", phase),
        ],
        Kind::EvalDataset => vec![("SAMPLES", |it| count(it, "/spec/samples"))],
        Kind::EvalRun => vec![
            ("DATASET", |it| at(it, "/spec/dataset_ref")),
            ("SYSTEM", |it| at(it, "/spec/system")),
            ("PHASE", phase),
        ],
        Kind::Quota => vec![
            ("AGENT", |it| at(it, "/spec/agent")),
            ("WEIGHT", |it| at(it, "/spec/weight")),
            ("CONCURRENT", |it| at(it, "/spec/max_concurrent")),
            ("PER MINUTE", |it| at(it, "/spec/tasks_per_minute")),
            ("QUEUED", |it| at(it, "/spec/max_queued")),
        ],
    }
}

/// Those shown with `-o wide`.
fn wide(kind: Kind) -> Vec<Column> {
    match kind {
        Kind::Agent => vec![
            ("RUNNER", |it| at(it, "/spec/runner")),
            ("MAX STEPS", |it| at(it, "/spec/limits/max_steps")),
            ("TIMEOUT", |it| at(it, "/spec/limits/timeout")),
        ],
        Kind::ModelEndpoint => {
            vec![("ADDRESS", |it| at(it, "/spec/base_url")), ("SECRET", |it| at(it, "/spec/auth/secretRef"))]
        }
        Kind::Tool => {
            vec![("RISK", |it| at(it, "/spec/risk_level")), ("DESCRIPTION", |it| at(it, "/spec/description"))]
        }
        Kind::Memory => vec![("ENDPOINT", |it| at(it, "/spec/endpoint"))],
        Kind::AgentRole => vec![("DESCRIPTION", |it| at(it, "/spec/description"))],
        Kind::ToolPermission => vec![("REQUIRED", |it| listed(it, "/spec/required_permissions"))],
        Kind::AgentPolicy => vec![
            ("MODELS", |it| listed(it, "/spec/allowed_models")),
            ("BLOCKED TOOLS", |it| listed(it, "/spec/blocked_tools")),
        ],
        Kind::Worker => {
            vec![("SEEN", |it| at(it, "/status/lastHeartbeat")), ("VERSION", |it| at(it, "/status/version"))]
        }
        Kind::Task => vec![
            ("PRIORITY", |it| at(it, "/spec/priority")),
            ("SESSION", |it| at(it, "/spec/session")),
            ("UID", |it| at(it, "/metadata/uid")),
            ("ERROR", |it| at(it, "/status/error/code")),
        ],
        Kind::TaskSchedule => vec![
            ("LAST", |it| at(it, "/status/lastScheduleTime")),
            ("NEXT", |it| at(it, "/status/nextScheduleTime")),
        ],
        Kind::TaskWebhook => vec![
            ("EVENT ID", |it| at(it, "/spec/idempotency/event_id_header")),
            ("PATH", |it| at(it, "/status/endpointPath")),
        ],
        Kind::ToolApproval | Kind::TaskApproval => {
            vec![("AGENT", |it| at(it, "/spec/agent")), ("REASON", |it| at(it, "/spec/reason"))]
        }
        Kind::EvalDataset => vec![("DESCRIPTION", |it| at(it, "/spec/description"))],
        Kind::EvalRun => vec![("CONCURRENCY", |it| at(it, "/spec/concurrency"))],
        Kind::AgentSystem
        | Kind::Secret
        | Kind::SealedSecret
        | Kind::ContextAdapter
        | Kind::McpServer
        | Kind::Session
        | Kind::Quota => Vec::new(),
    }
}

/// What stands behind everything that is wide.
fn common() -> Vec<Column> {
    vec![
        ("LABELS", labels),
        ("GENERATION", |it| at(it, "/metadata/generation")),
        ("PROBLEM", |it| at(it, "/status/lastError")),
    ]
}

/// The text at a place; a number as its digits.
pub fn at(object: &Value, path: &str) -> String {
    match object.pointer(path) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn first_of(object: &Value, paths: &[&str]) -> String {
    paths.iter().map(|path| at(object, path)).find(|text| !text.is_empty()).unwrap_or_default()
}

fn listed(object: &Value, path: &str) -> String {
    let items = object.pointer(path).and_then(Value::as_array);
    let words = items.into_iter().flatten().map(|item| item.as_str().unwrap_or_default());
    words.collect::<Vec<_>>().join(",")
}

fn keys(object: &Value, path: &str) -> String {
    let map = object.pointer(path).and_then(Value::as_object);
    map.into_iter().flat_map(|map| map.keys().cloned()).collect::<Vec<_>>().join(",")
}

fn count(object: &Value, path: &str) -> String {
    object.pointer(path).and_then(Value::as_array).map_or_else(String::new, |items| items.len().to_string())
}

fn yes(object: &Value, path: &str) -> String {
    if at(object, path) == "true" { "yes".to_owned() } else { "no".to_owned() }
}

fn phase(object: &Value) -> String {
    at(object, "/status/phase")
}

fn labels(object: &Value) -> String {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let pair = |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or_default());
    labels.into_iter().flatten().map(pair).collect::<Vec<_>>().join(",")
}

/// An address, a program, a module or another agent.
fn reached_at(tool: &Value) -> String {
    let paths = ["/spec/endpoint", "/spec/cli/command", "/spec/wasm/module", "/spec/mcp_server_ref"];
    first_of(tool, &paths)
}

fn policy_scope(policy: &Value) -> String {
    let named: Vec<String> = ["/spec/target_systems", "/spec/target_tasks", "/spec/target_agents"]
        .iter()
        .map(|path| listed(policy, path))
        .filter(|names| !names.is_empty())
        .collect();
    if named.is_empty() { at(policy, "/spec/apply_mode") } else { named.join(",") }
}

fn worker_status(worker: &Value) -> String {
    let (phase, standing) = (at(worker, "/status/phase"), at(worker, "/status/standing"));
    if standing.is_empty() || standing == "open" { phase } else { format!("{phase},{standing}") }
}

fn subject(task: &Value) -> String {
    match at(task, "/spec/system") {
        system if system.is_empty() => at(task, "/spec/agent"),
        system => format!("system/{system}"),
    }
}

fn tokens(task: &Value) -> String {
    let count = |path| task.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    count("/status/usage/input_tokens").saturating_add(count("/status/usage/output_tokens")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::Paint;
    use serde_json::json;

    #[test]
    fn every_kind_has_columns_that_stand_for_something() {
        let look = Look { wide: true, with_namespace: true, with_kind: false, keeps_empty: true, now_ms: 0 };
        for kind in Kind::ALL {
            let object = json!({ "metadata": { "name": "n", "namespace": "d" }, "spec": {}, "status": {} });
            let lines = table(*kind, &[object], look).lines(Paint::new(false), None);
            assert!(
                lines[0].starts_with("NAMESPACE   NAME   ") && lines[1].starts_with("d           n "),
                "{lines:?}"
            );
            assert!(!narrow(*kind).is_empty(), "{kind}");
        }
    }

    #[test]
    fn a_task_of_a_system_says_so() {
        let task = json!({ "metadata": { "name": "t" }, "spec": { "system": "report" }, "status": { "state": "running" } });
        let look =
            Look { wide: false, with_namespace: false, with_kind: false, keeps_empty: false, now_ms: 0 };
        let lines = table(Kind::Task, &[task], look).lines(Paint::new(false), None);
        assert_eq!(
            lines,
            ["NAME   SUBJECT         STATE     TOKENS   AGE", "t      system/report   running   0        -"]
        );
    }
}
