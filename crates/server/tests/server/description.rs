//! What the server tells of itself: its description, its namespaces, what it can do, its figures.

use std::{env, fs};

use serde_json::json;

use super::{
    bad_input::check,
    support::{Place, agent, worker::Worker},
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
