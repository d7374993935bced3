//! What the server tells of itself: its description, its namespaces, what it can do, its figures.

use std::{env, fs};

use ostler_kernel::{Failure, run::end::Leave};
use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, agent, worker::Worker},
    systems::{desk, task},
};

#[test]
fn the_description_is_of_this_version() {
    let path = "../../schema/openapi.json";
    let text = serde_json::to_string_pretty(&ostler_server::description()).unwrap() + "\n";
    if env::var_os("WRITE_FIXTURES").is_some() {
        fs::write(path, &text).unwrap();
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == text,
        "{path} is not this version's: WRITE_FIXTURES=1 cargo test -p ostler-server --test server"
    );
}

#[tokio::test]
async fn the_description_is_served() {
    let place = Place::new().await;
    let served = place.get("/openapi.json").await;
    assert_eq!((served.status, served.header("content-type")), (200, Some("application/json")));
    assert_eq!(served.json(), ostler_server::description());
    assert_eq!(served.json()["openapi"], "3.1.0");
}

#[tokio::test]
async fn namespaces_are_those_in_use() {
    let place = Place::new().await;
    assert_eq!(place.get("/v1/namespaces").await.json(), json!({"namespaces": ["default"]}));
    for namespace in ["team", "a-team"] {
        place.post(&format!("/v1/agents?namespace={namespace}"), &agent("a")).await;
    }
    let expected = json!({"namespaces": ["a-team", "default", "team"]});
    assert_eq!(place.get("/v1/namespaces").await.json(), expected);
    check(&place.get("/v1/namespaces?limit=1").await, 400, "bad_parameter", "takes none");
}

#[tokio::test]
async fn capabilities_are_honest() {
    let place = Place::new().await;
    let told = place.get("/v1/capabilities").await.json();
    let is_enabled = |id: &str| {
        let all = told["capabilities"].as_array().unwrap();
        all.iter().find(|one| one["id"] == id).unwrap()["enabled"].as_bool().unwrap()
    };
    assert!(told["generated_at"].is_string() && is_enabled("core.api.crud") && is_enabled("core.self_host"));
    assert!(!is_enabled("core.runtime.message_driven") && !is_enabled("core.ui.baseline"));
}

#[tokio::test]
async fn figures_are_counted_as_they_happen() {
    let place = Place::with_agent().await;
    place.task().await;
    let mut worker = Worker::new(&place).await;
    let mut held = worker.claim().await;
    worker.step(&mut held).await;
    let text = async || String::from_utf8(place.get("/metrics").await.body).unwrap();
    let has = |text: &str, line: &str| assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
    let working = text().await;
    has(&working, "ostler_leases{worker=\"scripted\"} 1");
    has(&working, "ostler_tasks_accepted_total{namespace=\"default\"} 1");
    worker.finish(held, "done").await;
    let done = text().await;
    has(&done, "orloj_task_duration_seconds_count{namespace=\"default\",system=\"\",status=\"succeeded\"} 1");
    has(&done, "orloj_tokens_used_total{agent=\"helper\",model=\"mock\",type=\"output\"} 8");
    has(&done, "orloj_agent_step_duration_seconds_count{agent=\"helper\",step_type=\"model\"} 2");
    has(&done, "orloj_messages_total{phase=\"succeeded\",agent=\"helper\"} 1");
    has(&done, "ostler_leases{worker=\"scripted\"} 0");
    has(&done, "ostler_resources_changed_total 2");
    let reply = place.get("/metrics").await;
    assert!(reply.header("content-type").unwrap().starts_with("text/plain"));
}

/// The description with every object closed that says what is in it: what is sent and not described is found.
fn closed(mut description: Value) -> Value {
    fn close(shape: &mut Value) {
        match shape {
            Value::Object(members) => {
                if members.get("properties").is_some_and(Value::is_object) {
                    members.entry("additionalProperties").or_insert(json!(false));
                }
                members.values_mut().for_each(close);
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }
    close(&mut description["components"]["schemas"]);
    description
}

/// Whether an answer is as the description says of its route.
fn check_described(description: &Value, route: &str, answer: &Value) {
    let path = format!("/paths/{}/get/responses/200/content", route.replace('/', "~1"));
    let content = description.pointer(&path).unwrap_or_else(|| panic!("{route} is not described"));
    let mut schema = content["application/json"]["schema"].clone();
    schema["components"] = description["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mistakes: Vec<String> = validator
        .iter_errors(answer)
        .map(|mistake| format!("{}: {mistake}", mistake.instance_path()))
        .collect();
    assert!(mistakes.is_empty(), "{route}: {mistakes:#?}");
}

#[tokio::test]
async fn what_a_task_tells_is_as_it_is_described() {
    let place = desk().await;
    let mut worker = Worker::new(&place).await;
    let description = closed(ostler_server::description());
    let check_all = async || {
        for part in ["", "/status", "/steps", "/events", "/messages", "/trace"] {
            let answer = place.get(&format!("/v1/tasks/report{part}")).await.json();
            check_described(&description, &format!("/v1/tasks/{{task}}{part}"), &answer);
        }
        check_described(&description, "/v1/tasks", &place.get("/v1/tasks").await.json());
    };
    assert_eq!(place.post("/v1/tasks", &task("report")).await.status, 201);
    check_all().await;
    let held = worker.claim().await;
    worker.give_back(held).await;
    for _ in 0..3 {
        let mut held = worker.claim().await;
        worker.calls(&mut held, 2).await;
        check_all().await;
        worker.finish(held, "done").await;
    }
    check_all().await;
    let cancelled = place.post("/v1/tasks", &task("other")).await.json()["metadata"]["name"].clone();
    place.post("/v1/tasks/other/cancel", &json!({})).await;
    let path = format!("/v1/tasks/{}", cancelled.as_str().unwrap());
    check_described(&description, "/v1/tasks/{task}", &place.get(&path).await.json());
    place.post("/v1/tasks/report/archive", &json!({})).await;
    check_all().await;
}

#[test]
#[should_panic(expected = "/status/attempts")]
fn an_answer_of_another_type_would_be_noticed() {
    let answer = json!({"metadata": {"name": "t"}, "status": {"attempts": "three"}});
    check_described(&closed(ostler_server::description()), "/v1/tasks/{task}/status", &answer);
}

/// Names and labels that dashboards know; `orloj_wasm_fuel_consumed` will come with such tools.
const KNOWN: [(&str, &str, &[&str]); 8] = [
    ("orloj_task_duration_seconds", "histogram", &["namespace", "system", "status"]),
    ("orloj_agent_step_duration_seconds", "histogram", &["agent", "step_type"]),
    ("orloj_tokens_used_total", "counter", &["agent", "model", "type"]),
    ("orloj_messages_total", "counter", &["phase", "agent"]),
    ("orloj_deadletters_total", "counter", &[]),
    ("orloj_retries_total", "counter", &[]),
    ("orloj_inflight_messages", "gauge", &[]),
    ("orloj_tool_execution_duration_seconds", "histogram", &["tool", "outcome"]),
];

#[test]
fn figures_have_the_names_and_labels_that_dashboards_know() {
    let metrics = ostler_server::metrics();
    for (name, kind, labels) in KNOWN {
        let metric = metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(metric.kind, kind, "{name}");
        assert_eq!(metric.labels, labels, "{name}");
    }
    let n_known = metrics.iter().filter(|metric| metric.name.starts_with("orloj_")).count();
    assert_eq!(n_known, KNOWN.len());
}

#[tokio::test]
async fn a_message_is_counted_in_each_phase_that_it_comes_to() {
    let place = Place::with_agent().await;
    let task = |retry: u32| {
        json!({
            "apiVersion": "ostler.dev/v1", "kind": "Task",
            "spec": {"agent": "helper", "input": {"message": "hi"}, "retry": {"max_attempts": retry, "backoff": "1ms"}},
        })
    };
    let mut worker = Worker::new(&place).await;
    let failed = |failure: Failure| Leave::Failed { failure };
    let busy = || Failure::transient("model_overloaded", "later");
    // One is tried again and then a dead letter, one fails for good, one is cancelled, one ends well.
    place.post("/v1/tasks", &task(2)).await;
    for _ in 0..2 {
        let held = worker.claim().await;
        worker.leave(held, failed(busy())).await;
    }
    place.post("/v1/tasks", &task(1)).await;
    let held = worker.claim().await;
    worker.leave(held, failed(Failure::permanent("model_auth", "no"))).await;
    let queued = place.task().await;
    place.post(&format!("/v1/tasks/{queued}/cancel"), &json!({})).await;
    place.task().await;
    let held = worker.claim().await;
    worker.finish(held, "done").await;
    let text = String::from_utf8(place.get("/metrics").await.body).unwrap();
    let prefix = "orloj_messages_total{phase=\"";
    let counted: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix(prefix))
        .map(|rest| rest.replace("\",agent=\"helper\"}", ""))
        .collect();
    let expected =
        ["cancelled 1", "deadletter 1", "failed 1", "queued 4", "retrypending 1", "running 4", "succeeded 1"];
    assert_eq!(counted, expected);
    assert!(text.lines().any(|line| line == "orloj_deadletters_total 1"), "{text}");
    assert!(text.lines().any(|line| line == "orloj_retries_total 1"), "{text}");
}
