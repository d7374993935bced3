//! Manifests as people have them from elsewhere: forms and omissions that are taken, and what they come to mean.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

use ostler_spec::{
    AgentSystemSpec, Kind, OperationClass, Resource, Spec, ToolPermissionSpec, from_json, parse, schema,
};
use serde_json::{Value, json};

fn declared(kind: &str, spec: &str) -> Resource {
    let indented: String = spec.trim().lines().map(|line| format!("  {line}\n")).collect();
    let text = format!("apiVersion: orloj.dev/v1\nkind: {kind}\nmetadata:\n  name: it\nspec:\n{indented}");
    let mut resources = parse("it.yaml", &text).unwrap_or_else(|problems| panic!("{text}{problems:#?}"));
    resources.remove(0)
}

fn wire(kind: &str, spec: &str) -> Value {
    let resource = declared(kind, spec);
    let value = serde_json::to_value(&resource).unwrap();
    assert_eq!(from_json(&value).unwrap(), resource);
    assert_eq!(serde_json::from_value::<Resource>(value.clone()).unwrap(), resource);
    value["spec"].clone()
}

fn system(spec: &str) -> AgentSystemSpec {
    match declared("AgentSystem", spec).spec {
        Spec::AgentSystem(system) => system,
        other => panic!("{other:?}"),
    }
}

fn permission(spec: &str) -> ToolPermissionSpec {
    match declared("ToolPermission", spec).spec {
        Spec::ToolPermission(permission) => permission,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_policy_may_name_nothing_or_more_than_it_needs() {
    let alone = wire("AgentPolicy", "allowed_models: [small-1]\nmax_tokens_per_run: 50000");
    assert_eq!((&alone["apply_mode"], &alone["max_tokens_per_run"]), (&json!("scoped"), &json!(50_000)));
    let global = wire("AgentPolicy", "apply_mode: global\ntarget_systems: [newsroom]");
    assert_eq!((&global["apply_mode"], &global["target_systems"]), (&json!("global"), &json!(["newsroom"])));
}

const DELEGATES: &str = "
agents: [lead, backend, frontend]
graph:
  lead:
    delegates:
      - to: backend
        condition: {output_contains: api}
      - frontend
";

#[test]
fn a_delegate_is_an_edge_or_a_name() {
    let delegates = &system(DELEGATES).graph["lead"].delegates;
    let named: Vec<String> = delegates.iter().map(|edge| edge.to.to_string()).collect();
    assert_eq!(named, ["backend", "frontend"]);
    let condition = delegates[0].condition.as_ref().unwrap();
    assert_eq!(condition.output_contains.as_deref(), Some("api"));
    let expected = json!([{"to": "backend", "condition": {"output_contains": "api"}}, {"to": "frontend"}]);
    assert_eq!(wire("AgentSystem", DELEGATES)["graph"]["lead"]["delegates"], expected);
}

#[test]
fn what_was_kept_as_names_is_still_read() {
    let mut kept = serde_json::to_value(declared("AgentSystem", DELEGATES)).unwrap();
    kept["spec"]["graph"]["lead"]["delegates"] = json!(["backend", "frontend"]);
    let Spec::AgentSystem(system) = serde_json::from_value::<Resource>(kept).unwrap().spec else { panic!() };
    assert_eq!(system.graph["lead"].delegates[1].to.to_string(), "frontend");
}

#[test]
fn a_number_that_is_compared_is_kept_as_it_was_written() {
    for (written, expected) in
        [("\"0.90\"", "0.90"), ("' 3 '", "3"), ("\".5\"", ".5"), ("7", "7"), ("0.90", "0.90")]
    {
        let spec = format!(
            "agents: [a, b]\ngraph: {{a: {{edges: [{{to: b, condition: {{output_json_path: $.x, greater_than: {written}}}}}]}}}}"
        );
        let system = system(&spec);
        let condition = system.graph["a"].edges[0].condition.as_ref().unwrap();
        assert_eq!(condition.greater_than.as_deref(), Some(expected), "{written}");
    }
    let mut kept = serde_json::to_value(declared(
        "AgentSystem",
        "agents: [a, b]\ngraph: {a: {edges: [{to: b, condition: {output_json_path: $.x, less_than: 3}}]}}",
    ))
    .unwrap();
    let place = "/spec/graph/a/edges/0/condition/less_than";
    assert_eq!(kept.pointer(place), Some(&json!("3")), "clients of Orloj read text");
    *kept.pointer_mut(place).unwrap() = json!(0.5);
    let again = serde_json::to_value(serde_json::from_value::<Resource>(kept).unwrap()).unwrap();
    assert_eq!(again.pointer(place), Some(&json!("0.5")), "as earlier versions kept it");
}

#[test]
fn a_tool_may_lack_its_module_and_name_a_host_with_a_port() {
    let wasm = declared("Tool", "type: wasm\ndescription: Sums up bytes.");
    let refusals: Vec<String> = wasm.unsupported().iter().map(ToString::to_string).collect();
    assert_eq!(refusals, ["/spec/type: tool type wasm is not available in this version"]);
    assert_eq!(wire("Tool", "type: grpc\nendpoint: localhost:50051")["endpoint"], "localhost:50051");
    let named = wire("Tool", "endpoint: http://h/x\ncapabilities: [Web.Read, web.read, web.write]");
    assert_eq!(named["capabilities"], json!(["Web.Read", "web.write"]));
}

/// As another system's program writes out what it keeps: blocks that nobody set stand there too.
fn exported(kind: Kind, spec: &Value) -> Value {
    let document = json!({
        "apiVersion": "orloj.dev/v1", "kind": kind.name(), "spec": spec,
        "metadata": {"name": "it", "namespace": "default", "resourceVersion": "4", "generation": 2, "createdAt": "2026-05-01T10:00:00Z"},
        "status": {"phase": "Ready", "observedGeneration": 2},
    });
    let resource = from_json(&document).unwrap_or_else(|problems| panic!("{document}: {problems:#?}"));
    let validator = jsonschema::validator_for(&schema::of(kind)).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{document}: {errors:#?}");
    assert_eq!(resource.unsupported(), [], "{document}");
    serde_json::to_value(&resource).unwrap()["spec"].clone()
}

#[test]
fn a_tool_is_taken_with_the_blocks_of_other_types() {
    let blocks = [
        json!({"cli": {}}),
        json!({"cli": {"resources": {}}, "wasm": {"enable_wasi": false}}),
        json!({"cli": {"resources": {}}, "wasm": {"enable_wasi": false}, "a2a": {}}),
        json!({"cli": {"command": "", "args": [], "resources": {"pids_limit": 0}}, "wasm": null, "a2a": {"agent_url": " "}}),
    ];
    for block in blocks {
        let mut spec = json!({
            "type": "http", "endpoint": "http://127.0.0.1:8890/x", "operation_classes": ["read"], "risk_level": "low",
            "runtime": {"timeout": "30s", "isolation_mode": "none",
                "retry": {"max_attempts": 1, "backoff": "0s", "max_backoff": "30s", "jitter": "none"}},
            "auth": {},
        });
        spec.as_object_mut().unwrap().extend(block.as_object().unwrap().clone());
        let read = exported(Kind::Tool, &spec);
        assert_eq!([&read["cli"], &read["wasm"], &read["a2a"]], [&Value::Null; 3], "{block}");
    }
}

#[test]
fn what_a_tool_says_for_another_type_is_still_told() {
    let wasm = declared("Tool", "endpoint: http://h/x\nwasm: {module: /m.wasm, enable_wasi: false}");
    let told: Vec<String> = wasm.unsupported().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["/spec/wasm: the field wasm is not available in this version"]);
    let program =
        json!({"kind": "Tool", "metadata": {"name": "t"}, "spec": {"type": "cli", "cli": {"resources": {}}}});
    let problems = from_json(&program).unwrap_err();
    assert_eq!(problems[0].to_string(), "/spec/cli/command: required field is missing");
}

#[test]
fn a_program_is_taken_with_the_blocks_of_other_types() {
    let spec = "type: cli\ncli: {command: ls, image: i, resources: {}}\nwasm: {enable_wasi: false}\na2a: {}\nauth: {}";
    let read = wire("Tool", spec);
    assert_eq!(
        (&read["wasm"], &read["a2a"], &read["cli"]["command"]),
        (&Value::Null, &Value::Null, &json!("ls"))
    );
}

#[test]
fn a_tool_may_be_kept_before_its_endpoint_is_known() {
    for kept in ["{}", "type: http", "endpoint: ''", "endpoint: null"] {
        let told: Vec<String> =
            declared("Tool", kept).unsupported().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            ["/spec/endpoint: a tool of type http is called there, and it is not set"],
            "{kept}"
        );
    }
    let other = declared("Tool", "type: grpc").unsupported();
    assert_eq!(other.len(), 1, "{other:?}");
}

#[test]
fn a_sample_may_expect_nothing() {
    let read = wire(
        "EvalDataset",
        "samples:\n- {name: a, input: {topic: x}, expected: {}}\n- {name: b, expected: {equals: '', default: false}}",
    );
    assert_eq!([&read["samples"][0]["expected"], &read["samples"][1]["expected"]], [&Value::Null; 2]);
}

#[test]
fn a_permission_speaks_of_the_tool_of_its_name() {
    assert_eq!(wire("ToolPermission", "action: Approve")["tool_ref"], "it");
    assert_eq!(wire("ToolPermission", "tool_ref: ''")["tool_ref"], "it");
    assert_eq!(wire("ToolPermission", "tool_ref: shared/other")["tool_ref"], "shared/other");
}

#[test]
fn a_permission_for_everyone_may_name_some() {
    let global = permission("target_agents: [writer]");
    assert!(global.holds_for("writer") && global.holds_for("editor"));
    let scoped = permission("apply_mode: scoped\ntarget_agents: [writer]");
    assert!(scoped.holds_for("writer") && !scoped.holds_for("editor"));
}

#[test]
fn a_join_is_taken_wherever_an_agent_stands() {
    let joins = [
        "mode: wait_for_all, quorum_count: 0, quorum_percent: 0, on_failure: deadletter",
        "on_failure: skip",
        "mode: quorum, quorum_count: 1",
        "mode: quorum, quorum_count: 7, on_failure: continue_partial",
        "mode: quorum, quorum_percent: 50",
    ];
    for join in joins {
        let spec = format!(
            "agents: [a, b]\ngraph: {{a: {{next: b, join: {{{join}}}}}, b: {{join: {{{join}}}, delegate_join: {{{join}}}}}}}"
        );
        assert_eq!(declared("AgentSystem", &spec).unsupported(), [], "{join}");
    }
}

/// A kind, a spec with a zero in it, where it stands, and what it comes to mean.
const ZEROS: [(&str, &str, &str, Option<u32>); 14] = [
    ("Task", "agent: a\nretry: {max_attempts: 0}", "/retry/max_attempts", Some(1)),
    ("Task", "agent: a\nmessage_retry: {max_attempts: 0}", "/message_retry/max_attempts", Some(1)),
    (
        "Task",
        "agent: a\nretry: {max_attempts: 4}\nmessage_retry: {max_attempts: 0}",
        "/message_retry/max_attempts",
        Some(4),
    ),
    (
        "Tool",
        "endpoint: http://h/x\nruntime: {retry: {max_attempts: 0}}",
        "/runtime/retry/max_attempts",
        Some(1),
    ),
    ("Tool", "type: wasm\nwasm: {module: /m, fuel: 0}", "/wasm/fuel", Some(1_000_000)),
    (
        "Tool",
        "type: wasm\nwasm: {module: /m, max_memory_bytes: 0}",
        "/wasm/max_memory_bytes",
        Some(67_108_864),
    ),
    ("TaskSchedule", "starting_deadline_seconds: 0", "/starting_deadline_seconds", Some(300)),
    ("TaskSchedule", "successful_history_limit: 0", "/successful_history_limit", Some(10)),
    ("TaskSchedule", "failed_history_limit: 0", "/failed_history_limit", Some(3)),
    (
        "McpServer",
        "transport: stdio\ncommand: c\nreconnect: {max_attempts: 0}",
        "/reconnect/max_attempts",
        Some(3),
    ),
    ("EvalRun", "dataset_ref: d\nsystem: s\nconcurrency: 0", "/concurrency", Some(5)),
    ("TaskApproval", "task_ref: t\ncheckpoint_id: c\nmax_review_cycles: 0", "/max_review_cycles", Some(3)),
    ("TaskApproval", "task_ref: t\ncheckpoint_id: c\nreview_cycle: 0", "/review_cycle", Some(1)),
    ("AgentPolicy", "max_tokens_per_run: 0", "/max_tokens_per_run", None),
];

#[test]
fn a_zero_is_the_default() {
    for (kind, spec, place, expected) in ZEROS {
        let spec = match kind {
            "TaskSchedule" => format!("task_ref: t\nschedule: 0 9 * * *\n{spec}"),
            _ => spec.to_owned(),
        };
        for zero in [": 0", ": -3"] {
            let read = wire(kind, &spec.replace(": 0", zero).replace(": -3 9", ": 0 9"));
            assert_eq!(read.pointer(place), expected.map(|number| json!(number)).as_ref(), "{spec}");
        }
    }
}

#[test]
fn an_output_is_shown_as_what_it_is() {
    let named = "task_ref: t\ncheckpoint_id: c\n";
    for (output, expected) in
        [("", "text"), ("output: words", "text"), ("output: {title: Spring}", "json"), ("output: 4", "json")]
    {
        assert_eq!(wire("TaskApproval", &format!("{named}{output}"))["output_format"], expected, "{output}");
    }
    assert_eq!(
        wire("TaskApproval", &format!("{named}output: [1]\noutput_format: text"))["output_format"],
        "text"
    );
}

#[test]
fn what_a_server_leaves_to_its_tools_may_be_empty() {
    let server = wire(
        "McpServer",
        "transport: stdio\ncommand: c\nauth: {}\nresources: {}\ndefault_tool_runtime: {timeout: 5s, retry: {}}",
    );
    assert_eq!((&server["resources"], &server["auth"]), (&json!({}), &Value::Null));
    assert_eq!(server["default_tool_runtime"], json!({"timeout": "5s"}));
}

#[test]
fn a_schema_that_says_nothing_is_none() {
    let agent = wire("Agent", "model_ref: m\nexecution: {output_schema: {}}");
    assert_eq!(agent["execution"]["output_schema"], Value::Null);
    let endpoint = wire("ModelEndpoint", "default_model: m\noptions: {' Temperature ': 0.5}");
    assert_eq!(endpoint["options"], json!({"temperature": "0.5"}));
}

#[test]
fn an_image_starts_what_is_in_it() {
    let server = wire(
        "McpServer",
        "transport: stdio\nimage: files:3\nenv: [{name: CERT, secretRef: cert, mountPath: /run/cert}]",
    );
    assert_eq!((&server["command"], &server["image"]), (&Value::Null, &json!("files:3")));
}

#[test]
fn an_approval_holds_any_output() {
    let named = "task_ref: t\ncheckpoint_id: c\n";
    assert_eq!(wire("TaskApproval", named)["allow_request_changes"], true);
    for (written, expected) in [
        ("{title: Spring, words: 4}", json!({"title": "Spring", "words": 4})),
        ("[1, two]", json!([1, "two"])),
        ("plain words", json!("plain words")),
        ("0.5", json!(0.5)),
    ] {
        assert_eq!(wire("TaskApproval", &format!("{named}output: {written}"))["output"], expected);
    }
    let resumed = wire("TaskApproval", &format!("{named}resume_context: {{run: 17}}"));
    assert_eq!(resumed["resume_context"], json!({"run": 17}));
}

#[test]
fn a_zero_of_a_webhook_is_the_default() {
    let hook = "
task_ref: t
auth: {secret_ref: s, max_skew_seconds: 0}
idempotency: {dedupe_window_seconds: 0}
";
    let hook = wire("TaskWebhook", hook);
    assert_eq!(hook["auth"]["max_skew_seconds"], 300);
    assert_eq!(hook["idempotency"]["dedupe_window_seconds"], 86_400);
}

#[test]
fn a_blank_of_a_webhook_is_the_default() {
    let hook = wire(
        "TaskWebhook",
        "task_ref: t\nauth: {secret_ref: s, signature_prefix: '', payload_separator: ' '}",
    );
    assert_eq!(
        (&hook["auth"]["signature_prefix"], &hook["auth"]["payload_separator"]),
        (&json!("sha256="), &json!("."))
    );
    let token = wire(
        "TaskWebhook",
        "task_ref: t\nauth: {profile: shared_token, secret_ref: s, signature_header: X-Token, signature_prefix: 'Bearer '}",
    );
    assert_eq!(token["auth"]["signature_prefix"], "Bearer ");
}

/// A signature over a time is worth nothing to whoever takes it at any time.
#[test]
fn a_signed_time_may_not_lie_far_off() {
    let hook = wire(
        "TaskWebhook",
        "task_ref: t\nauth: {profile: hmac, secret_ref: s, signature_header: X-S, timestamp_header: X-T, payload_format: timestamp_dot_body}",
    );
    assert_eq!(hook["auth"]["max_skew_seconds"], 300);
}

#[test]
fn the_strictest_of_several_rules_holds() {
    let rules = "
action: Approve
required_permissions: [Tool:Shell, tool:shell]
operation_rules:
  - {operation_class: write, verdict: approval_required}
  - {operation_class: write, verdict: deny}
  - {operation_class: write, verdict: allow}
  - {operation_class: read}
  - {verdict: deny}
  - {verdict: approval_required}
";
    let permission = permission(rules);
    assert_eq!((permission.action.as_str(), permission.required_permissions.len()), ("approve", 1));
    for (class, expected) in
        [(OperationClass::Write, "deny"), (OperationClass::Read, "allow"), (OperationClass::Admin, "deny")]
    {
        assert_eq!(permission.verdict(class).as_str(), expected, "{class}");
    }
    assert_eq!(self::permission("{}").verdict(OperationClass::Admin).as_str(), "allow");
    assert_eq!(self::permission("{}").action, "invoke");
}
