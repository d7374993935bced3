//! Manifests as people have them from elsewhere: forms and omissions that are taken, and what they come to mean.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

use ostler_spec::{AgentSystemSpec, OperationClass, Resource, Spec, ToolPermissionSpec, from_json, parse};
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
fn a_number_that_is_compared_may_stand_in_quotes() {
    for (written, expected) in [("\"0.9\"", "0.9"), ("' 3 '", "3"), ("\".5\"", "0.5"), ("7", "7")] {
        let spec = format!(
            "agents: [a, b]\ngraph: {{a: {{edges: [{{to: b, condition: {{output_json_path: $.x, greater_than: {written}}}}}]}}}}"
        );
        let system = system(&spec);
        let condition = system.graph["a"].edges[0].condition.as_ref().unwrap();
        assert_eq!(condition.greater_than.as_ref().unwrap().to_string(), expected, "{written}");
    }
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
    assert_eq!((permission.action.as_str(), permission.required_permissions.len()), ("Approve", 1));
    for (class, expected) in
        [(OperationClass::Write, "deny"), (OperationClass::Read, "allow"), (OperationClass::Admin, "deny")]
    {
        assert_eq!(permission.verdict(class).as_str(), expected, "{class}");
    }
    assert_eq!(self::permission("{}").verdict(OperationClass::Admin).as_str(), "allow");
    assert_eq!(self::permission("{}").action, "invoke");
}
