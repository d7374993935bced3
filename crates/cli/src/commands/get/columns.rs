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

struct Column {
    title: &'static str,
    find: Find,
}

/// Where the text of a column is found.
enum Find {
    At(&'static str),
    /// Several, with commas between them.
    List(&'static str),
    /// How long ago a moment was.
    Age(&'static str),
    By(fn(&Value) -> String),
}

impl Column {
    fn of(&self, object: &Value, now_ms: i64) -> String {
        match self.find {
            Find::At(path) => text_at(object, path),
            Find::List(path) => listed(object, path),
            Find::Age(path) => {
                clock::parse(&text_at(object, path)).map_or_else(String::new, |at| clock::age(at, now_ms))
            }
            Find::By(find) => find(object),
        }
    }
}

const PHASE: Column = at("PHASE", "/status/phase");
const SUSPENDED: Column = by("SUSPENDED", |it| yes(it, "/spec/suspend"));

const fn at(title: &'static str, path: &'static str) -> Column {
    Column { title, find: Find::At(path) }
}

const fn age(title: &'static str, path: &'static str) -> Column {
    Column { title, find: Find::Age(path) }
}

const fn list(title: &'static str, path: &'static str) -> Column {
    Column { title, find: Find::List(path) }
}

const fn by(title: &'static str, find: fn(&Value) -> String) -> Column {
    Column { title, find: Find::By(find) }
}

pub fn table(kind: Kind, objects: &[Value], look: Look) -> Table {
    let mut columns = vec![at("NAME", "/metadata/name")];
    if look.with_namespace {
        columns.insert(0, at("NAMESPACE", "/metadata/namespace"));
    }
    columns.extend(narrow(kind));
    columns.push(age("AGE", "/metadata/createdAt"));
    if look.wide {
        let holds_something =
            |column: &Column| objects.iter().any(|object| !column.of(object, look.now_ms).is_empty());
        let more = wide(kind).into_iter().chain(common());
        columns.extend(more.filter(|column| look.keeps_empty || holds_something(column)));
    }
    let mut table = Table::new(columns.iter().map(|column| column.title));
    for object in objects {
        let cell = |column: &Column| {
            let text = column.of(object, look.now_ms);
            let tone = tone(column.title, &text);
            match (column.title, look.with_kind) {
                ("NAME", true) => Cell::new(format!("{}/{text}", kind.singular())),
                _ => Cell::toned(text, tone),
            }
        };
        table.row(columns.iter().map(cell));
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
        Kind::Agent => vec![at("MODEL", "/spec/model_ref"), list("TOOLS", "/spec/tools")],
        Kind::AgentSystem => vec![list("AGENTS", "/spec/agents"), PHASE],
        Kind::ModelEndpoint => vec![at("PROVIDER", "/spec/provider"), at("MODEL", "/spec/default_model")],
        Kind::Tool => vec![at("TYPE", "/spec/type"), by("ENDPOINT", reached_at)],
        Kind::Secret => vec![by("KEYS", |it| keys(it, "/spec/data"))],
        Kind::SealedSecret => vec![by("KEYS", |it| keys(it, "/spec/encryptedData"))],
        Kind::Memory => vec![at("PROVIDER", "/spec/provider"), at("TYPE", "/spec/type")],
        Kind::AgentRole => vec![list("PERMISSIONS", "/spec/permissions")],
        Kind::ToolPermission => vec![at("TOOL", "/spec/tool_ref"), at("ACTION", "/spec/action")],
        Kind::AgentPolicy => {
            vec![by("APPLIES TO", policy_scope), at("MAX TOKENS", "/spec/max_tokens_per_run")]
        }
        Kind::ContextAdapter => vec![at("TOOL", "/spec/tool_ref")],
        Kind::McpServer => vec![at("TRANSPORT", "/spec/transport"), by("AT", mcp_place), PHASE],
        Kind::Worker => vec![by("STATUS", worker_status), by("RUNS", runs), at("REGION", "/spec/region")],
        Kind::Session => vec![
            by("SUBJECT", |it| first_of(it, &["/status/subject", "/spec/system"])),
            PHASE,
            at("RUNS", "/status/runs"),
            age("USED", "/status/lastUsedAt"),
        ],
        Kind::Task => vec![by("SUBJECT", subject), by("STATE", task_state), by("TOKENS", tokens)],
        Kind::TaskSchedule => vec![
            at("SCHEDULE", "/spec/schedule"),
            at("ZONE", "/spec/time_zone"),
            at("TASK", "/spec/task_ref"),
            SUSPENDED,
        ],
        Kind::TaskWebhook => vec![at("TASK", "/spec/task_ref"), at("AUTH", "/spec/auth/profile"), SUSPENDED],
        Kind::ToolApproval => vec![at("TASK", "/spec/task_ref"), at("TOOL", "/spec/tool"), PHASE],
        Kind::TaskApproval => {
            vec![at("TASK", "/spec/task_ref"), at("CHECKPOINT", "/spec/checkpoint_id"), PHASE]
        }
        Kind::EvalDataset => vec![by("SAMPLES", |it| count(it, "/spec/samples"))],
        Kind::EvalRun => vec![at("DATASET", "/spec/dataset_ref"), at("SYSTEM", "/spec/system"), PHASE],
        Kind::Quota => vec![
            at("AGENT", "/spec/agent"),
            at("WEIGHT", "/spec/weight"),
            at("CONCURRENT", "/spec/max_concurrent"),
            at("PER MINUTE", "/spec/tasks_per_minute"),
            at("QUEUED", "/spec/max_queued"),
        ],
    }
}

/// Those shown with `-o wide`.
fn wide(kind: Kind) -> Vec<Column> {
    match kind {
        Kind::Agent => vec![
            at("RUNNER", "/spec/runner"),
            at("MAX STEPS", "/spec/limits/max_steps"),
            at("TIMEOUT", "/spec/limits/timeout"),
        ],
        Kind::ModelEndpoint => vec![at("ADDRESS", "/spec/base_url"), at("SECRET", "/spec/auth/secretRef")],
        Kind::Tool => vec![at("RISK", "/spec/risk_level"), at("DESCRIPTION", "/spec/description")],
        Kind::Memory => vec![at("ENDPOINT", "/spec/endpoint")],
        Kind::AgentRole | Kind::EvalDataset => vec![at("DESCRIPTION", "/spec/description")],
        Kind::ToolPermission => vec![list("REQUIRED", "/spec/required_permissions")],
        Kind::AgentPolicy => {
            vec![list("MODELS", "/spec/allowed_models"), list("BLOCKED TOOLS", "/spec/blocked_tools")]
        }
        Kind::Worker => vec![age("SEEN", "/status/lastHeartbeat"), at("VERSION", "/status/version")],
        Kind::Task => vec![
            at("ERROR", "/status/error/code"),
            at("SESSION", "/spec/session"),
            at("PRIORITY", "/spec/priority"),
            at("UID", "/metadata/uid"),
        ],
        Kind::TaskSchedule => {
            vec![at("LAST", "/status/lastScheduleTime"), at("NEXT", "/status/nextScheduleTime")]
        }
        Kind::TaskWebhook => {
            vec![at("EVENT ID", "/spec/idempotency/event_id_header"), at("PATH", "/status/endpointPath")]
        }
        Kind::ToolApproval | Kind::TaskApproval => {
            vec![at("AGENT", "/spec/agent"), at("REASON", "/spec/reason")]
        }
        Kind::EvalRun => vec![at("CONCURRENCY", "/spec/concurrency")],
        Kind::AgentSystem
        | Kind::Secret
        | Kind::SealedSecret
        | Kind::ContextAdapter
        | Kind::McpServer
        | Kind::Session
        | Kind::Quota => Vec::new(),
    }
}

/// What stands behind everything that is wide. The last go first where there is no room.
fn common() -> Vec<Column> {
    vec![at("PROBLEM", "/status/lastError"), by("LABELS", labels), at("GENERATION", "/metadata/generation")]
}

/// The text at a place; a number as its digits.
pub fn text_at(object: &Value, path: &str) -> String {
    match object.pointer(path) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn first_of(object: &Value, paths: &[&str]) -> String {
    paths.iter().map(|path| text_at(object, path)).find(|text| !text.is_empty()).unwrap_or_default()
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
    if text_at(object, path) == "true" { "yes".to_owned() } else { "no".to_owned() }
}

fn mcp_place(server: &Value) -> String {
    first_of(server, &["/spec/endpoint", "/spec/command", "/spec/image"])
}

fn runs(worker: &Value) -> String {
    format!("{}/{}", text_at(worker, "/status/currentTasks"), text_at(worker, "/spec/max_concurrent_tasks"))
}

/// A template has no state.
fn task_state(task: &Value) -> String {
    first_of(task, &["/status/state", "/spec/mode"])
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
    if named.is_empty() { text_at(policy, "/spec/apply_mode") } else { named.join(",") }
}

fn worker_status(worker: &Value) -> String {
    let (phase, standing) = (text_at(worker, "/status/phase"), text_at(worker, "/status/standing"));
    if standing.is_empty() || standing == "open" { phase } else { format!("{phase},{standing}") }
}

fn subject(task: &Value) -> String {
    match text_at(task, "/spec/system") {
        system if system.is_empty() => text_at(task, "/spec/agent"),
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
    #[test]
    fn a_conversation_tells_with_whom_and_how_lately() {
        let session = json!({
            "metadata": { "name": "room-12", "createdAt": "1970-01-01T00:00:00Z" },
            "status": { "phase": "Idle", "subject": "porter", "runs": 2, "lastUsedAt": "1970-01-01T00:01:30Z" },
        });
        let look = Look {
            wide: false,
            with_namespace: false,
            with_kind: false,
            keeps_empty: false,
            now_ms: 120_000,
        };
        let lines = table(Kind::Session, &[session], look).lines(Paint::new(false), None);
        assert_eq!(
            lines,
            ["NAME      SUBJECT   PHASE   RUNS   USED   AGE", "room-12   porter    Idle    2      30s    2m"]
        );
    }
}
