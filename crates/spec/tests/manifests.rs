//! Manifests that are right: what they mean, which defaults they take, and how they look on the wire.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at once")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use ostler_spec::{
    AgentSpec, ApiVersion, Kind, ModelEndpointSpec, Resource, Runner, Spec, TaskSpec, ToolSpec, from_json,
    parse,
};
use serde_json::json;

fn one(text: &str) -> Resource {
    let mut resources = parse("test.yaml", text).unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert_eq!(resources.len(), 1);
    resources.remove(0)
}

fn declared(kind: &str, spec: &str) -> Resource {
    let indented: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    one(&format!("kind: {kind}\nmetadata:\n  name: it\nspec:\n{indented}"))
}

fn agent(spec: &str) -> AgentSpec {
    match declared("Agent", spec).spec {
        Spec::Agent(agent) => agent,
        other => panic!("{other:?}"),
    }
}

fn endpoint(spec: &str) -> ModelEndpointSpec {
    match declared("ModelEndpoint", spec).spec {
        Spec::ModelEndpoint(endpoint) => endpoint,
        other => panic!("{other:?}"),
    }
}

fn tool(spec: &str) -> ToolSpec {
    match declared("Tool", &format!("endpoint: http://127.0.0.1:1/x\n{spec}")).spec {
        Spec::Tool(tool) => tool,
        other => panic!("{other:?}"),
    }
}

fn task(spec: &str) -> TaskSpec {
    match declared("Task", &format!("agent: helper\n{spec}")).spec {
        Spec::Task(task) => task,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_envelope_takes_its_defaults() {
    let resource = one("kind: agent\nmetadata: {name: helper}\nspec: {model_ref: mock}\n");
    assert_eq!((resource.api_version, resource.kind()), (ApiVersion::Ostler, Kind::Agent));
    assert_eq!(resource.key(), "default/helper");
    let theirs = one("apiVersion: orloj.dev/v1\nkind: AGENT\nmetadata: {name: a}\nspec: {model_ref: mock}\n");
    assert_eq!(serde_json::to_value(&theirs).unwrap()["apiVersion"], "orloj.dev/v1");
    assert_eq!(serde_json::to_value(&theirs).unwrap()["kind"], "Agent");
}

#[test]
fn an_agent_with_only_a_model_looks_like_this() {
    let resource = one("kind: Agent\nmetadata: {name: helper}\nspec: {model_ref: mock}\n");
    let expected = json!({
        "apiVersion": "ostler.dev/v1",
        "kind": "Agent",
        "metadata": {"name": "helper", "namespace": "default"},
        "spec": {
            "model_ref": "mock",
            "execution": {
                "profile": "dynamic",
                "duplicate_tool_call_policy": "short_circuit",
                "on_contract_violation": "non_retryable_error",
                "tool_use_behavior": "run_llm_again"
            },
            "limits": {"max_steps": 10, "max_tool_output": 65536},
            "runner": "react",
            "policy": {
                "host": "sandbox", "security": "allowlist", "ask": "off", "runtime": "gvisor",
                "workspace_access": "rw", "network": true, "interactive": false,
                "retry": {"max_attempts": 2, "delay_ms": 0}
            }
        }
    });
    assert_eq!(serde_json::to_value(&resource).unwrap(), expected);
    let Spec::Agent(spec) = &resource.spec else { panic!("{resource:?}") };
    assert_eq!(*spec, AgentSpec::new("mock".parse().unwrap()));
}

#[test]
fn a_tool_with_only_an_endpoint_looks_like_this() {
    let resource = one("kind: Tool\nmetadata: {name: t}\nspec: {endpoint: 'http://h/x'}\n");
    let expected = json!({
        "type": "http",
        "endpoint": "http://h/x",
        "operation_classes": ["read"],
        "risk_level": "low",
        "runtime": {
            "timeout": "30s",
            "isolation_mode": "none",
            "retry": {"max_attempts": 1, "backoff": "0s", "max_backoff": "30s", "jitter": "none"}
        },
        "allowPrivate": false
    });
    assert_eq!(serde_json::to_value(&resource).unwrap()["spec"], expected);
}

#[test]
fn a_task_with_only_an_agent_looks_like_this() {
    let resource = one("kind: Task\nmetadata: {name: t}\nspec: {agent: team/helper}\n");
    let expected = json!({
        "agent": "team/helper",
        "mode": "run",
        "priority": "normal",
        "max_turns": 0,
        "retry": {"max_attempts": 1, "backoff": "0s"},
        "message_retry": {"max_attempts": 1, "backoff": "0s", "max_backoff": "24h", "jitter": "full"}
    });
    assert_eq!(serde_json::to_value(&resource).unwrap()["spec"], expected);
    let Spec::Task(spec) = &resource.spec else { panic!("{resource:?}") };
    assert_eq!(*spec, TaskSpec::for_agent("team/helper".parse().unwrap(), Default::default()));
}

#[test]
fn an_endpoint_knows_its_vendors_address() {
    assert_eq!(endpoint("default_model: m").provider, "openai");
    assert_eq!(endpoint("default_model: m").base_url, "https://api.openai.com/v1");
    assert_eq!(endpoint("{provider: ANTHROPIC, default_model: m}").base_url, "https://api.anthropic.com/v1");
    assert_eq!(endpoint("{provider: ollama, default_model: m}").base_url, "http://127.0.0.1:11434");
    assert_eq!(endpoint("{provider: mock, default_model: m}").base_url, "");
    let full = endpoint(
        "default_model: m\nbaseUrl: http://h/v1\noptions: {Max_Tokens: 1024, stream: true}\nauth: {secretRef: a/b:c}\nallow_private: true",
    );
    assert_eq!(full.options["max_tokens"], "1024");
    assert_eq!(full.options["stream"], "true");
    let secret = full.auth.secret_ref.clone().unwrap();
    assert_eq!((secret.name.as_str(), secret.key_or_default()), ("b", "c"));
    assert!(full.allow_private && full.may_be_private());
    assert!(endpoint("{provider: Ollama, default_model: m}").may_be_private());
    assert!(!endpoint("default_model: m").may_be_private());
    let wire = serde_json::to_value(&full).unwrap();
    assert_eq!(wire["auth"], json!({"secretRef": "a/b:c"}));
    assert_eq!(wire["allowPrivate"], true);
}

const SNAKE: &str = "
kind: Agent
metadata: {name: a, resource_version: 7, created_at: x}
spec:
  model_ref: m
  fallback_model_refs: [n]
  allowed_tools: [t]
  execution: {tool_sequence: [t], required_output_markers: [x], duplicate_tool_call_policy: deny,
    on_contract_violation: observe, tool_use_behavior: stop_on_first_tool, output_schema: {type: object}}
  limits: {max_steps: 3, token_budget: 9, max_tool_output: 10}
  policy: {workspace_access: ro, retry: {max_attempts: 4, delay_ms: 5}}
";

#[test]
fn both_spellings_mean_the_same() {
    let mut camel = SNAKE.to_owned();
    for name in [
        "resource_version",
        "created_at",
        "model_ref",
        "fallback_model_refs",
        "allowed_tools",
        "tool_sequence",
        "required_output_markers",
        "duplicate_tool_call_policy",
        "on_contract_violation",
        "tool_use_behavior",
        "output_schema",
        "max_steps",
        "token_budget",
        "max_tool_output",
        "workspace_access",
        "max_attempts",
        "delay_ms",
    ] {
        let humps: String = name
            .split('_')
            .enumerate()
            .map(|(index, part)| match index {
                0 => part.to_owned(),
                _ => format!("{}{}", part[..1].to_uppercase(), &part[1..]),
            })
            .collect();
        assert!(camel.contains(&format!("{name}:")), "{name}");
        camel = camel.replace(&format!("{name}:"), &format!("{humps}:"));
    }
    assert_eq!(one(SNAKE), one(&camel));
    let Spec::Agent(spec) = one(SNAKE).spec else { panic!() };
    assert_eq!(
        (spec.limits.max_steps, spec.limits.token_budget, spec.policy.retry.delay_ms),
        (3, Some(9), 5)
    );
    assert_eq!(one(SNAKE).metadata.resource_version.as_deref(), Some("7"));
}

#[test]
fn an_agent_reads_all_it_may_say() {
    assert_eq!(agent("{model_ref: m, runner: claude_code}").runner, Runner::ClaudeCode);
    assert_eq!(agent("{model_ref: m, limits: {max_steps: -1}}").limits.max_steps, 10);
    assert_eq!(agent("{model_ref: m, limits: {timeout: ''}}").limits.timeout, None);
    assert_eq!(agent("{model_ref: m, limits: {timeout: 0s}}").limits.timeout, None);
    let timeout = agent("{model_ref: m, limits: {timeout: 1m30s}}").limits.timeout.unwrap();
    assert_eq!(timeout.get(), Duration::from_secs(90));
    let roles = agent("{model_ref: m, roles: [Reader, reader, writer]}").roles;
    assert_eq!(roles.iter().map(ToString::to_string).collect::<Vec<_>>(), ["Reader", "writer"]);
    let memory = agent("{model_ref: m, memory: {ref: notes, allow: [memory.read, read, SEARCH]}}").memory;
    assert_eq!(
        memory.allow.iter().map(|operation| operation.as_str()).collect::<Vec<_>>(),
        ["read", "search"]
    );
    assert_eq!(agent("{model_ref: m, policy: {network: false}}").policy.resources.len(), 0);
    assert!(agent("{model_ref: m, policy: {security: full}}").policy.network);
    assert_eq!(
        agent("{model_ref: m, policy: {retry: {max_attempts: 0, delay_ms: -4}}}").policy.retry.max_attempts,
        2
    );
    assert_eq!(agent("model_ref: m\nprompt: |\n  one\n\n  # two\n").prompt, "one\n\n# two\n");
    assert_eq!(agent("model_ref: m\ntools:\nprompt: ''").tools, []);
    assert_eq!(agent("model_ref: m\ndescription: Reads logs.").description, "Reads logs.");
}

#[test]
fn risk_decides_what_was_not_said() {
    let high = tool("risk_level: High");
    assert_eq!(high.operation_classes.iter().map(|class| class.as_str()).collect::<Vec<_>>(), ["write"]);
    assert_eq!(high.runtime.isolation_mode.as_str(), "sandboxed");
    let cli = tool("type: cli\ncli: {command: ls, image: tools}");
    assert_eq!(cli.runtime.isolation_mode.as_str(), "container");
    assert_eq!(cli.cli.unwrap().command, "ls");
}

#[test]
fn idempotence_is_declared_or_follows() {
    for (spec, expected) in [
        ("", true),
        ("operation_classes: [read]", true),
        ("operation_classes: [read, write]", false),
        ("operation_classes: [write]", false),
        ("risk_level: high", false),
        ("operation_classes: [write]\nruntime: {retry: {max_attempts: 2}}", true),
        ("operation_classes: [write]\nidempotent: true", true),
        ("idempotent: false", false),
        ("idempotent: false\nruntime: {retry: {max_attempts: 5}}", false),
    ] {
        assert_eq!(tool(spec).is_idempotent(), expected, "{spec}");
    }
}

#[test]
fn tool_auth_keeps_its_wire_names() {
    let spec =
        "auth: {profile: oauth2_client_credentials, secret_ref: key, token_url: 'https://h/t', scopes: [a]}";
    let expected = json!({
        "profile": "oauth2_client_credentials", "secretRef": "key", "tokenURL": "https://h/t", "scopes": ["a"]
    });
    assert_eq!(serde_json::to_value(tool(spec).auth).unwrap(), expected);
    assert_eq!(tool("auth: {secretRef: key}").auth.unwrap().profile.as_str(), "bearer");
    assert_eq!(tool("auth: {}").auth, None);
}

#[test]
fn a_message_is_made_from_the_input() {
    assert_eq!(task("input: {message: m}").message(), "m");
    assert_eq!(task("input: {topic: t, message: m, z: 1}").message(), "m\n\ntopic: t\nz: 1");
    assert_eq!(task("input: {topic: t, z: 1}").message(), "t\n\nz: 1");
    assert_eq!(task("input: {message: '', z: 1}").message(), "z: 1");
    let image = "data:image/png;base64,iVBORw0KGgo=";
    assert_eq!(task(&format!("input: {{message: m, photo: '{image}', z: 1}}")).message(), "m\n\nz: 1");
    assert_eq!(
        task("input: {z: 1, a: true, version: 1.10, empty: , hex: 0x1F}").message(),
        "a: true\nempty: \nhex: 0x1F\nversion: 1.10\nz: 1"
    );
    assert_eq!(task("").message(), "");
}

#[test]
fn message_retry_follows_retry() {
    let spec = task("retry: {max_attempts: 3, backoff: 2s}\nmessage_retry: {jitter: equal}");
    assert_eq!(spec.message_retry.max_attempts, 3);
    assert_eq!(spec.message_retry.backoff.to_string(), "2s");
    assert_eq!(spec.message_retry.jitter.as_str(), "equal");
    let template = one("kind: Task\nmetadata: {name: t}\nspec: {mode: template}\n");
    assert_eq!(serde_json::to_value(template).unwrap()["spec"]["mode"], "template");
}

#[test]
fn many_documents_anchors_and_merges() {
    let text = "\u{feff}# shared\r
---\r
kind: Agent\r
metadata: {name: a}\r
spec: &base\r
  model_ref: mock\r
  limits: &limits {max_steps: 2, timeout: 5s}\r
---\r
# empty\r
---\r
kind: Agent\r
metadata: {name: b}\r
spec:\r
  model_ref: &name !!str mock\r
  prompt: *name\r
  limits:\r
    <<: [{max_steps: 7}, {max_steps: 8, timeout: 9s}]\r
    timeout: 1s\r
...\r
";
    let resources = parse("many.yaml", text).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let agents: Vec<&AgentSpec> = resources
        .iter()
        .map(|resource| match &resource.spec {
            Spec::Agent(agent) => agent,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(agents.len(), 2);
    assert_eq!(agents[1].prompt, "mock");
    assert_eq!(
        (agents[1].limits.max_steps, agents[1].limits.timeout.unwrap().to_string()),
        (7, "1s".to_owned())
    );
}

#[test]
fn json_text_is_read_alone_or_in_a_list() {
    let text = r#" {"kind":"Agent","metadata":{"name":"a","labels":{"x":"\ud83d\ude00\n"}},"spec":{"model_ref":"m","prompt":"é\t"}}"#;
    let resource = one(text);
    assert_eq!(resource.metadata.labels["x"], "😀\n");
    let listed = parse("list.json", &format!("[{text}]")).unwrap();
    assert_eq!(listed, std::slice::from_ref(&resource));
    assert_eq!(from_json(&serde_json::from_str(text).unwrap()).unwrap(), resource);
}

#[test]
fn all_problems_of_a_file_come_at_once() {
    let text = "kind: Agent
metadata: {name: a/b}
spec: {modelref: m, limits: {max_steps: x}}
---
kind: [
---
kind: Tool
metadata: {nam: t}
spec: {type: cli}
";
    let problems = parse("f.yaml", text).unwrap_err();
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let expected = [
        "f.yaml:2:18: metadata.name: expected a name without slashes, white space or a leading dot, found one that contains a slash",
        "f.yaml:3:8: spec.modelref: unknown field, did you mean \"model_ref\"?",
        "f.yaml:3:41: spec.limits.max_steps: expected a whole number, found the string \"x\"",
        "f.yaml:5:7: not valid YAML: unclosed bracket '[' (close it; text that begins with it needs quotes)",
        "f.yaml:8:12: metadata.nam: unknown field, did you mean \"name\"?",
        "f.yaml:9:1: spec.cli: required field is missing",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn values_from_programs_get_pointers() {
    let value = json!({
        "kind": "Agent", "metadata": {"name": "a", "labels": {"ostler.dev/x": []}},
        "spec": {"model_ref": "m", "tools": ["a", 7], "limts": {}}
    });
    let shown: Vec<String> = from_json(&value).unwrap_err().iter().map(ToString::to_string).collect();
    let expected = [
        "/metadata/labels/ostler.dev~1x: expected a string, found a list",
        "/spec/tools/1: expected a reference such as \"name\" or \"namespace/name\", found the number 7 (put it in quotes)",
        "/spec/limts: unknown field, did you mean \"limits\"?",
    ];
    assert_eq!(shown, expected);
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(from_json(&deep).unwrap_err()[0].to_string(), "nested too deeply: more than 64 levels");
}

#[test]
fn every_field_of_a_task_is_named() {
    let schema = ostler_spec::schema::of(Kind::Task);
    let spec = schema.pointer("/$defs/TaskSpec/properties").unwrap().as_object().unwrap();
    let mut fields = TaskSpec::FIELDS.to_vec();
    fields.sort_unstable();
    let mut declared: Vec<&str> = spec.keys().map(String::as_str).collect();
    declared.retain(|name| !name.contains(char::is_uppercase));
    declared.sort_unstable();
    assert_eq!(fields, declared);
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    let template = one("kind: Task\nmetadata: {name: t}\nspec: {system: s, mode: template}\n");
    assert_eq!(template.unsupported(), []);
    let picky =
        one("kind: Task\nmetadata: {name: t}\nspec: {agent: a, message_retry: {non_retryable: [quota]}}\n");
    assert_eq!(picky.unsupported(), []);
    let later = declared("Agent", "{model_ref: m, prompt: p, memory: {ref: notes}}");
    let shown: Vec<String> = later.unsupported().iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["/spec/memory: the field memory is not available in this version"]);
    assert_eq!(declared("ModelEndpoint", "{default_model: m, auth: {secretRef: key}}").unsupported(), []);
}

#[test]
fn what_was_written_reads_back() {
    let full_tool = "type: mcp\nmcp_server_ref: s\nmcp_tool_name: n\ninput_schema: {type: object}\nauth: {secretRef: k}\nidempotent: false";
    let resources = [
        one(SNAKE),
        declared("Tool", full_tool),
        declared("ModelEndpoint", "default_model: m\noptions: {a: b}\nauth: {secretRef: k}"),
        declared(
            "Task",
            "agent: a\nsession: s\ndeadline: 1h\nidempotency_key: k\nrequirements: {gpu: true}\ninput: {a: b}",
        ),
    ];
    for resource in resources {
        let value = serde_json::to_value(&resource).unwrap();
        assert_eq!(from_json(&value).unwrap(), resource);
        assert_eq!(serde_json::from_value::<Resource>(value).unwrap(), resource);
        let yaml = serde_saphyr::to_string(&resource).unwrap();
        assert_eq!(one(&yaml), resource, "{yaml}");
    }
}

#[test]
fn an_older_reader_survives_a_newer_writer() {
    let mut value = serde_json::to_value(one(SNAKE)).unwrap();
    value["spec"]["invented_later"] = json!(true);
    assert_eq!(serde_json::from_value::<Resource>(value.clone()).unwrap(), one(SNAKE));
    assert_eq!(from_json(&value).unwrap_err().len(), 1);
}

#[test]
fn hostile_sizes_are_refused() {
    let long = format!("kind: Agent\nprompt: {}", "x".repeat(5 << 20));
    assert!(parse("f.yaml", &long).unwrap_err()[0].message.starts_with("too large: "));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(parse("f.json", &deep).unwrap_err()[0].message, "nested too deeply: more than 64 levels");
    let nest = |inner: &str| format!("{}{inner}{}", "[".repeat(40), "]".repeat(40));
    let stacked = format!("a: &a {}\nb: {}\n", nest("1"), nest("*a"));
    assert_eq!(parse("f.yaml", &stacked).unwrap_err()[0].message, "nested too deeply: more than 64 levels");
    let wide = format!("kind: Agent\nmetadata: {{name: a}}\nspec:\n  model_ref: m\n{}", {
        (0..20_000).map(|index| format!("  field{index}: 1\n")).collect::<String>()
    });
    let problems = parse("f.yaml", &wide).unwrap_err();
    assert_eq!(problems.len(), 1001);
    assert_eq!(problems[1000].to_string(), "too many problems, the rest are not listed");
}

#[test]
fn every_example_is_valid_and_supported() {
    // Cargo starts tests in their package; a path compiled in would be another clone's in a shared build folder.
    let folder = Path::new("../../examples");
    let mut seen = 0;
    for example in fs::read_dir(folder).unwrap() {
        for file in fs::read_dir(example.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                let text = fs::read_to_string(&path).unwrap();
                let parsed = ostler_spec::parse_with_notices(&path.to_string_lossy(), &text);
                assert_eq!(parsed.unwrap().notices, []);
                seen += 1;
            }
        }
    }
    assert!(seen >= 3, "only {seen} examples found");
}
