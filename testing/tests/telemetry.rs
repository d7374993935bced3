//! A collector is told of a task as one tree: from the request of its caller, over each attempt, to each step, under the
//! names of the conventions, over a kill of the server too. Real processes, a real collector's protocol on both wires.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use ostler_client::Client;
use ostler_testing::{
    collector::{Collector, Mood, SeenSpan, SpanKind},
    loopback::pause,
    model_server::{ModelServer, Script},
    program::{Program, find_binary, free_address},
    tool_server::ToolServer,
};
use serde_json::{Value, json};
use tempfile::TempDir;

const TOKEN: &str = "telemetry-api-token-0123456789abcdef";
const PATIENCE: Duration = Duration::from_secs(90);

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
/// Long enough for the server to be killed meanwhile.
const TOOL_MS: u32 = 1500;

struct World {
    folder: TempDir,
    address: SocketAddr,
    client: Client,
    model: ModelServer,
    tools: ToolServer,
    collector: Collector,
    server: Program,
}

impl World {
    async fn start(variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::start_as("up", Collector::start().await.unwrap(), folder, variables).await
    }

    /// With a worker in the same process (`up`), or without (`server`).
    async fn start_as(
        command: &str,
        collector: Collector,
        folder: TempDir,
        variables: &[(&str, &str)],
    ) -> Self {
        std::fs::write(folder.path().join("token"), TOKEN).unwrap();
        let model = ModelServer::start(Script::Plan).await.unwrap();
        let tools = ToolServer::start().await.unwrap();
        let address = free_address().await.unwrap();
        let mut server = program(&folder, "server", &collector)
            .args([command, "--listen", &address.to_string()])
            .args(["--data".into(), folder.path().join("data")])
            .args(["--token-file".into(), folder.path().join("token")]);
        if command == "server" {
            server = server.args(["--worker-token-file".into(), folder.path().join("worker-token")]);
        }
        for (name, value) in variables {
            server = server.env(name, value);
        }
        server.start().unwrap();
        server.wait_until_ready(address).await.unwrap();
        let client = Client::new(&format!("http://{address}"), TOKEN).unwrap();
        let world = Self { folder, address, client, model, tools, collector, server };
        world.declare().await;
        world
    }

    async fn declare(&self) {
        let endpoint = json!({
            "provider": "openai", "base_url": self.model.base_url(), "default_model": "scripted", "allowPrivate": true,
            "options": { "temperature": "0.5", "max_tokens": "99", "stop": "[\"END\",\"STOP\"]" },
        });
        let tool = json!({
            "type": "http", "endpoint": self.tools.tool_url(&format!("slow-lookup?ms={TOOL_MS}")), "allowPrivate": true,
            "idempotent": true, "description": "Answers a question.",
            "input_schema": { "type": "object", "properties": { "q": { "type": "string" } } },
        });
        let agent = |name: &str| json!({ "model_ref": "scripted", "prompt": format!("You are {name}."), "tools": ["lookup"] });
        let system = json!({
            "agents": ["first", "second"],
            "graph": { "first": { "next": "second" } },
        });
        for (kind, name, spec) in [
            ("ModelEndpoint", "scripted", endpoint),
            ("Tool", "lookup", tool),
            ("Agent", "helper", agent("helper")),
            ("Agent", "first", agent("first")),
            ("Agent", "second", agent("second")),
            ("AgentSystem", "pair", system),
        ] {
            self.client.apply(&manifest(kind, name, spec)).await.unwrap();
        }
    }

    /// As a program that is traced sends it.
    async fn create(&self, name: &str, spec: Value, headers: &[(&str, String)]) {
        let manifest = manifest("Task", name, spec);
        let mut request = plain_client().post(format!("http://{}/v1/tasks", self.address)).bearer_auth(TOKEN);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let answer = request.json(&manifest).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 201, "{}", answer.text().await.unwrap_or_default());
    }

    async fn ended(&self, task: &str) {
        until("the task ends", async || self.client.task(task).await.is_ok_and(|task| task.is_ended())).await;
    }

    /// The spans of a trace, once there are so many.
    async fn trace(&self, trace: &str, count: usize) -> Vec<SeenSpan> {
        let of_trace = || -> Vec<SeenSpan> {
            self.collector.spans().into_iter().filter(|span| span.trace == trace).collect()
        };
        until("all spans of the trace", async || of_trace().len() >= count).await;
        of_trace()
    }
}

/// A process that tells the collector.
fn program(folder: &TempDir, name: &str, collector: &Collector) -> Program {
    Program::new(&find_binary().unwrap(), folder.path().join(format!("{name}.log")))
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        .env("OTEL_SERVICE_NAME", "stable")
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .env("OTEL_METRIC_EXPORT_INTERVAL", "200")
}

#[expect(clippy::disallowed_methods, reason = "a caller of the API, as any program is")]
fn plain_client() -> reqwest::Client {
    let _already_there = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

fn manifest(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "ostler.dev/v1", "kind": kind, "metadata": { "name": name }, "spec": spec })
}

fn plan(agent: &str) -> Value {
    json!({ "agent": agent, "input": { "message": "plan: tool lookup {\"q\":\"a\"} usage=11/7, text=\"done\"" } })
}

/// `name < parent`, for each span.
fn tree(spans: &[SeenSpan]) -> Vec<String> {
    let names: BTreeMap<&str, &str> =
        spans.iter().map(|span| (span.id.as_str(), span.name.as_str())).collect();
    let shown = |span: &SeenSpan| {
        let parent = names.get(span.parent.as_str()).copied().unwrap_or(span.parent.as_str());
        format!("{} < {parent}", span.name)
    };
    let mut tree: Vec<String> = spans.iter().map(shown).collect();
    tree.sort();
    tree
}

async fn killed_in_its_tool(variables: &[(&str, &str)]) -> (World, Vec<SeenSpan>) {
    let mut world = World::start(variables).await;
    let sent = [("traceparent", format!("00-{TRACE}-{CALLER}-01")), ("tracestate", "vendor=1".to_owned())];
    world.create("one", plan("helper"), &sent).await;
    until("the tool is called", async || world.tools.desk().all().inflight == 1).await;
    // What was finished is told before the end comes.
    until("the first answer is told", async || world.collector.spans().len() == 1).await;
    world.server.kill().await.unwrap();
    world.server.start().unwrap();
    world.server.wait_until_ready(world.address).await.unwrap();
    world.ended("one").await;
    let spans = world.trace(TRACE, 6).await;
    (world, spans)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_tree_from_the_request_to_the_steps_over_a_kill() {
    let (world, spans) = killed_in_its_tool(&[]).await;
    assert_eq!(
        tree(&spans),
        [
            "chat scripted < invoke_agent helper",
            "chat scripted < invoke_agent helper",
            "execute_tool lookup < invoke_agent helper",
            "invoke_agent helper < task helper",
            "invoke_agent helper < task helper",
            &format!("task helper < {CALLER}"),
        ]
    );
    let ids: std::collections::BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "no span is told twice");
    assert!(spans.iter().all(|span| span.service == "stable" && span.state == "vendor=1"), "{spans:#?}");
    attempts_hold_their_steps(&spans);
    the_conventions_are_kept(&spans);
    calls_carry_their_step(&world, &spans);
    let exports = world.collector.exports();
    assert!(exports.iter().any(|export| export.path == "/v1/traces" && !export.is_grpc));
    figures_are_told(&world).await;
    assert_eq!(
        world.client.task("one").await.unwrap().metadata.annotations["ostler.dev/traceparent"],
        format!("00-{TRACE}-{CALLER}-01")
    );
}

/// The attempt that was killed made the first call; the second made the others.
fn attempts_hold_their_steps(spans: &[SeenSpan]) {
    let attempt = |number: u64| {
        let is_it = |span: &&SeenSpan| {
            span.name == "invoke_agent helper" && span.attributes["ostler.attempt.number"] == number
        };
        spans.iter().find(is_it).unwrap_or_else(|| panic!("no attempt {number}"))
    };
    let below = |parent: &SeenSpan| {
        let mut names: Vec<&str> =
            spans.iter().filter(|span| span.parent == parent.id).map(|span| span.name.as_str()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(below(attempt(1)), ["chat scripted"]);
    assert_eq!(below(attempt(2)), ["chat scripted", "execute_tool lookup"]);
    assert_eq!(attempt(1).text("ostler.attempt.end"), "yielded", "a restart is no failure of the run");
    assert_eq!(attempt(2).text("ostler.attempt.end"), "ok");
    let task = spans.iter().find(|span| span.name == "task helper").unwrap();
    for span in spans {
        assert!(span.start_ns >= task.start_ns && span.end_ns >= span.start_ns, "{span:#?}");
    }
}

fn the_conventions_are_kept(spans: &[SeenSpan]) {
    let chat = spans.iter().find(|span| span.name == "chat scripted").unwrap();
    assert_eq!(chat.kind, SpanKind::Client);
    for (key, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("openai")),
        ("gen_ai.request.model", json!("scripted")),
        ("gen_ai.request.temperature", json!(0.5)),
        ("gen_ai.request.max_tokens", json!(99)),
        ("gen_ai.request.stop_sequences", json!(["END", "STOP"])),
        ("gen_ai.response.model", json!("scripted")),
        ("gen_ai.agent.id", json!("default/helper")),
        ("gen_ai.response.finish_reasons", json!(["tool_call"])),
        ("gen_ai.usage.input_tokens", json!(11)),
        ("gen_ai.usage.output_tokens", json!(7)),
        ("gen_ai.agent.name", json!("helper")),
        ("server.address", json!("127.0.0.1")),
    ] {
        assert_eq!(chat.attributes.get(key), Some(&value), "{key} of {chat:#?}");
    }
    assert!(chat.attributes["gen_ai.response.time_to_first_chunk"].as_f64().unwrap() > 0.0);
    assert!(!chat.text("gen_ai.response.id").is_empty());
    let tool = spans.iter().find(|span| span.name == "execute_tool lookup").unwrap();
    for (key, value) in [
        ("gen_ai.operation.name", json!("execute_tool")),
        ("gen_ai.tool.name", json!("lookup")),
        ("gen_ai.tool.type", json!("function")),
        ("gen_ai.tool.description", json!("Answers a question.")),
    ] {
        assert_eq!(tool.attributes.get(key), Some(&value), "{key} of {tool:#?}");
    }
    assert!(!tool.text("gen_ai.tool.call.id").is_empty());
    let agent = spans.iter().find(|span| span.name == "invoke_agent helper").unwrap();
    assert_eq!(agent.text("gen_ai.operation.name"), "invoke_agent");
    assert_eq!(
        (agent.text("gen_ai.provider.name"), agent.text("gen_ai.agent.id")),
        ("openai", "default/helper")
    );
    assert!(agent.text("gen_ai.conversation.id").starts_with("session_"));
    let said = |span: &SeenSpan| {
        span.attributes.keys().any(|key| key.contains("messages") || key.contains("arguments"))
    };
    assert!(!spans.iter().any(said), "what was said is told to nobody who did not ask for it");
}

fn calls_carry_their_step(world: &World, spans: &[SeenSpan]) {
    let ids: Vec<&str> =
        spans.iter().filter(|span| span.name == "chat scripted").map(|span| span.id.as_str()).collect();
    let requests = world.model.requests();
    assert_eq!(requests.len(), ids.len());
    for request in requests {
        let sent = request.headers["traceparent"].to_str().unwrap().to_owned();
        let parent = sent.strip_prefix(&format!("00-{TRACE}-")).and_then(|rest| rest.strip_suffix("-01"));
        assert!(parent.is_some_and(|parent| ids.contains(&parent)), "{sent} is none of {ids:?}");
        assert_eq!(request.headers["tracestate"], "vendor=1");
    }
    // The call that was cut off by the kill, and the one that was made again: both are the same step.
    let tool = spans.iter().find(|span| span.name == "execute_tool lookup").unwrap();
    let calls: Vec<String> =
        world.tools.calls().into_values().flat_map(|record| record.traceparents).collect();
    assert_eq!(calls, vec![format!("00-{TRACE}-{}-01", tool.id); 2]);
}

async fn figures_are_told(world: &World) {
    let has = |name: &str| {
        world.collector.metrics().iter().any(|metric| metric.name == name && !metric.points.is_empty())
    };
    for name in [
        "gen_ai.client.operation.duration",
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.time_to_first_chunk",
        "ostler_tool_call_seconds",
        "ostler_gateway_overhead_seconds",
        "ostler_task_duration_seconds",
        "ostler_store_commit_seconds",
        "ostler_queue_ready",
    ] {
        until(name, async || has(name)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_system_is_one_tree_over_grpc_and_says_what_was_asked_for() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=collector-key-1"),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
    ];
    let mut world = World::start(&variables).await;
    let spec = json!({ "system": "pair", "input": { "message": "plan: text=\"half\"" } });
    let annotated = json!({
        "apiVersion": "orloj.dev/v1", "kind": "Task", "spec": spec,
        "metadata": { "name": "both", "annotations": { "orloj.io/traceparent": format!("00-{TRACE}-{CALLER}-01") } },
    });
    world.client.create_task(&annotated).await.unwrap();
    world.ended("both").await;
    let spans = world.trace(TRACE, 5).await;
    assert_eq!(
        tree(&spans),
        [
            "chat scripted < invoke_agent first",
            "chat scripted < invoke_agent second",
            "invoke_agent first < invoke_workflow pair",
            "invoke_agent second < invoke_workflow pair",
            &format!("invoke_workflow pair < {CALLER}"),
        ]
    );
    let chat = spans.iter().find(|span| span.name == "chat scripted").unwrap();
    let input: Value = serde_json::from_str(chat.text("gen_ai.input.messages")).unwrap();
    assert_eq!((&input[0]["role"], &input[0]["parts"][0]["type"]), (&json!("user"), &json!("text")));
    assert!(chat.text("gen_ai.output.messages").contains("half"));
    assert!(chat.text("gen_ai.system_instructions").contains("You are"));
    let exports = world.collector.exports();
    assert!(
        exports.iter().all(|export| export.is_grpc && export.headers["api-key"] == "collector-key-1"),
        "{exports:?}"
    );
    // What is still in the buffer is told before it ends.
    let told = world.collector.spans().len();
    world.create("last", json!({ "agent": "helper", "input": { "message": "plan: text=\"x\"" } }), &[]).await;
    world.ended("last").await;
    assert_eq!(world.server.stop().await.unwrap().code(), Some(0));
    assert_eq!(world.collector.spans().len(), told + 3, "task, attempt and answer");
    let log = std::fs::read_to_string(world.folder.path().join("server.log")).unwrap();
    assert!(!log.contains("collector-key-1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_is_told_by_its_code() {
    let world = World::start(&[]).await;
    let sent = [("traceparent", format!("00-{TRACE}-{CALLER}-01"))];
    let spec = json!({
        "agent": "helper", "retry": { "max_attempts": 1 }, "message_retry": { "max_attempts": 1 },
        "input": { "message": "plan: text=\"x\" finish=length" },
    });
    world.create("short", spec, &sent).await;
    world.ended("short").await;
    let spans = world.trace(TRACE, 3).await;
    for name in ["task helper", "invoke_agent helper"] {
        let span = spans.iter().find(|span| span.name == name).unwrap();
        assert_eq!((span.is_error, span.text("error.type")), (true, "model_answer_cut"), "{span:#?}");
    }
}

/// A run that nobody works on when it is stopped: what was to come next hangs below the task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stopped_between_two_attempts_hangs_below_its_task() {
    let world = World::start(&[]).await;
    let sent = [("traceparent", format!("00-{TRACE}-{CALLER}-01"))];
    let spec = json!({
        "agent": "helper", "retry": { "max_attempts": 2, "backoff": "1h" },
        "input": { "message": "plan: text=\"x\" fault=cut-text" },
    });
    world.create("stopped", spec, &sent).await;
    let is_told = async || world.collector.spans().iter().any(|span| span.name == "invoke_agent helper");
    until("the first attempt is over", is_told).await;
    world.client.cancel("stopped", None).await.unwrap();
    let spans = world.trace(TRACE, 4).await;
    assert_eq!(
        tree(&spans),
        [
            "chat scripted < invoke_agent helper",
            "chat scripted < task helper",
            "invoke_agent helper < task helper",
            &format!("task helper < {CALLER}"),
        ]
    );
    let next = spans.iter().find(|span| span.text("error.type") == "interrupted").unwrap();
    assert_eq!((next.text("gen_ai.provider.name"), next.kind), ("openai", SpanKind::Client), "{next:#?}");
}

/// The worker is a process of its own, and is killed and started again while its tool runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_its_own_adds_to_the_same_tree_over_its_restart() {
    let collector = Collector::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let worker_token = folder.path().join("worker-token");
    std::fs::write(&worker_token, "telemetry-worker-token-0123456789abcdef").unwrap();
    let world = World::start_as("server", collector, folder, &[]).await;
    let mut worker = program(&world.folder, "worker", &world.collector)
        .args(["worker", "--servers", &format!("http://{}", world.address), "--worker-name", "apart"])
        .args(["--data".into(), world.folder.path().join("worker")])
        .args(["--worker-token-file".into(), worker_token]);
    worker.start().unwrap();
    let sent = [("traceparent", format!("00-{TRACE}-{CALLER}-01")), ("tracestate", "vendor=1".to_owned())];
    world.create("one", plan("helper"), &sent).await;
    until("the tool is called", async || world.tools.desk().all().inflight == 1).await;
    until("the first answer is told", async || world.collector.spans().len() == 1).await;
    worker.kill().await.unwrap();
    worker.start().unwrap();
    world.ended("one").await;
    let spans = world.trace(TRACE, 6).await;
    assert_eq!(
        tree(&spans),
        [
            "chat scripted < invoke_agent helper",
            "chat scripted < invoke_agent helper",
            "execute_tool lookup < invoke_agent helper",
            "invoke_agent helper < task helper",
            "invoke_agent helper < task helper",
            &format!("task helper < {CALLER}"),
        ]
    );
    attempts_hold_their_steps(&spans);
    the_conventions_are_kept(&spans);
    calls_carry_their_step(&world, &spans);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_slow_or_refusing_costs_nothing_but_spans() {
    for mood in [Mood::Refuses, Mood::Stalls] {
        let variables = [("OTEL_BSP_MAX_QUEUE_SIZE", "10"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")];
        let mut world = World::start(&variables).await;
        world.collector.be(mood);
        for number in 0..20 {
            let name = format!("task-{number}");
            world
                .create(&name, json!({ "agent": "helper", "input": { "message": "plan: text=\"x\"" } }), &[])
                .await;
            world.ended(&name).await;
        }
        let page = plain_client().get(format!("http://{}/metrics", world.address)).bearer_auth(TOKEN);
        let page = page.send().await.unwrap().text().await.unwrap();
        let dropped = page.lines().find_map(|line| line.strip_prefix("ostler_spans_dropped_total ")).unwrap();
        assert!(dropped.parse::<u64>().unwrap() > 0, "60 spans, room for ten: {dropped} dropped, {mood:?}");
        assert!(!world.collector.spans().iter().any(|span| span.name.starts_with("task")));
        let stopping = tokio::time::timeout(Duration::from_secs(20), world.server.stop());
        assert_eq!(
            stopping.await.expect("it does not wait for a collector").unwrap().code(),
            Some(0),
            "{mood:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_caller_does_not_want_kept_is_passed_on_and_not_told() {
    let world = World::start(&[]).await;
    let sent = [("traceparent", format!("00-{TRACE}-{CALLER}-00"))];
    world
        .create("quiet", json!({ "agent": "helper", "input": { "message": "plan: text=\"x\"" } }), &sent)
        .await;
    world.ended("quiet").await;
    world.create("loud", json!({ "agent": "helper", "input": { "message": "plan: text=\"x\"" } }), &[]).await;
    world.ended("loud").await;
    until("the other one is told", async || world.collector.spans().len() >= 3).await;
    assert!(world.collector.spans().iter().all(|span| span.trace != TRACE));
    let first = &world.model.requests()[0].headers["traceparent"];
    let first = first.to_str().unwrap();
    assert!(first.starts_with(&format!("00-{TRACE}-")) && first.ends_with("-00"), "{first}");
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            pause(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "in vain: {what}");
}
