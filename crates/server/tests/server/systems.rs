//! Tasks for systems: agents in a line, each told what the one before it made.

use serde_json::{Value, json};

use super::support::{Place, agent, worker::Worker};

fn system(spec: &Value) -> Value {
    json!({"apiVersion": "ostler.dev/v1", "kind": "AgentSystem", "metadata": {"name": "desk"}, "spec": spec})
}

pub fn task(name: &str) -> Value {
    json!({"kind": "Task", "metadata": {"name": name}, "spec": {"system": "desk", "input": {"topic": "horses"}}})
}

/// With the system `desk`: helper, then writer, then editor.
pub async fn desk() -> Place {
    let place = Place::with_agent().await;
    for name in ["writer", "editor"] {
        assert_eq!(place.post("/v1/agents", &agent(name)).await.status, 201);
    }
    let line = json!({"agents": ["helper", "writer", "editor"]});
    assert_eq!(place.post("/v1/agent-systems", &system(&line)).await.status, 201);
    place
}

async fn events(place: &Place, task: &str) -> Vec<Value> {
    place.get(&format!("/v1/tasks/{task}/events")).await.json()["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn agents_of_a_line_work_one_behind_the_other() {
    let place = desk().await;
    let mut worker = Worker::new(&place).await;
    let created = place.post("/v1/tasks", &task("report")).await;
    assert_eq!(created.status, 201, "{created:?}");
    let spec = created.json()["spec"].clone();
    assert_eq!((&spec["system"], spec.get("agent")), (&json!("desk"), None));
    for (agent, said) in [("helper", "notes"), ("writer", "a draft"), ("editor", "a text")] {
        let held = worker.claim().await;
        assert_eq!(held.run().agent, agent);
        let view = place.get("/v1/tasks/report").await.json();
        assert_eq!(view["status"]["state"], "running");
        worker.finish(held, said).await;
    }
    let status = place.get("/v1/tasks/report").await.json()["status"].clone();
    assert_eq!((&status["phase"], &status["output"]["last_output"]), (&json!("Succeeded"), &json!("a text")));
    assert_eq!(status["usage"]["input_tokens"], 9, "of all three");
    let sent: Vec<Value> = events(&place, "report").await;
    let messages: Vec<&Value> =
        sent.iter().map(|event| &event["body"]).filter(|body| body["type"] == "message_sent").collect();
    let ways: Vec<(&Value, &Value)> =
        messages.iter().map(|body| (&body["message"]["from"], &body["message"]["to"])).collect();
    let [system, helper, writer, editor] = ["system", "helper", "writer", "editor"].map(|name| json!(name));
    assert_eq!(ways, [(&system, &helper), (&helper, &writer), (&writer, &editor)]);
    assert_eq!(messages[2]["message"]["content"], "a draft");
    assert_eq!(messages[2]["message"]["parent"], "default/report/a001/h002/helper/writer");
    let steps = place.get("/v1/tasks/report/steps").await.json()["items"].as_array().unwrap().len();
    assert_eq!(steps, 3, "one of each agent");
}

#[tokio::test]
async fn a_system_is_frozen_when_its_task_is_accepted() {
    let place = desk().await;
    let mut worker = Worker::new(&place).await;
    assert_eq!(place.post("/v1/tasks", &task("report")).await.status, 201);
    assert_eq!(place.delete("/v1/agents/writer").await.status, 204);
    assert_eq!(place.delete("/v1/agent-systems/desk").await.status, 204);
    for agent in ["helper", "writer", "editor"] {
        let held = worker.claim().await;
        assert_eq!(held.run().agent, agent);
        worker.finish(held, "done").await;
    }
    assert_eq!(place.get("/v1/tasks/report").await.json()["status"]["phase"], "Succeeded");
}

#[tokio::test]
async fn whoever_is_at_work_is_cancelled_and_nobody_comes_next() {
    let place = desk().await;
    let mut worker = Worker::new(&place).await;
    assert_eq!(place.post("/v1/tasks", &task("report")).await.status, 201);
    let held = worker.claim().await;
    worker.finish(held, "notes").await;
    let _held = worker.claim().await;
    let cancelled = place.post("/v1/tasks/report/cancel", &json!({})).await;
    assert_eq!((cancelled.status, &cancelled.json()["status"]["state"]), (200, &json!("cancelled")));
    let retried = place.post("/v1/tasks/report/retry", &json!({})).await;
    assert_eq!((retried.status, &retried.json()["spec"]["system"]), (201, &json!("desk")), "{retried:?}");
    let held = worker.claim().await;
    assert_eq!(held.run().agent, "helper", "from the beginning");
}

#[tokio::test]
async fn conversations_of_a_system_go_on_with_each_of_its_agents() {
    let place = desk().await;
    let mut worker = Worker::new(&place).await;
    for name in ["first", "second"] {
        let mut task = task(name);
        task["spec"]["session"] = json!("chat");
        assert_eq!(place.post("/v1/tasks", &task).await.status, 201);
    }
    let mut sessions = Vec::new();
    for _ in 0..6 {
        let held = worker.claim().await;
        sessions.push((held.run().agent.clone(), held.run().session));
        worker.finish(held, "done").await;
    }
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 3, "{sessions:?}");
}

#[tokio::test]
async fn what_a_task_needs_is_there_when_it_is_accepted() {
    let place = desk().await;
    assert_eq!(place.delete("/v1/agents/editor").await.status, 204);
    let refused = place.post("/v1/tasks", &task("report")).await;
    assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("bad_reference")), "{refused:?}");
    let unknown = json!({"kind": "Task", "spec": {"system": "nowhere"}});
    assert_eq!(place.post("/v1/tasks", &unknown).await.status, 404);
    let both = json!({"kind": "Task", "spec": {"system": "desk", "agent": "helper"}});
    assert_eq!(place.post("/v1/tasks", &both).await.status, 400);
}

#[tokio::test]
async fn a_graph_that_is_not_a_line_is_refused_by_name() {
    let place = desk().await;
    let fork = json!({"agents": ["helper", "writer", "editor"],
        "graph": {"helper": {"edges": [{"to": "writer"}, {"to": "editor"}]}}});
    assert_eq!(place.post("/v1/agent-systems", &system(&fork)).await.status, 201);
    let refused = place.post("/v1/tasks", &task("report")).await;
    assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("not_available")), "{refused:?}");
    assert!(refused.json()["detail"].as_str().unwrap().contains("desk"), "{refused:?}");
}

#[tokio::test]
async fn the_same_request_is_the_same_task_though_its_system_changed() {
    let place = desk().await;
    let mut keyed = task("report");
    keyed["spec"]["idempotency_key"] = json!("once");
    assert_eq!(place.post("/v1/tasks", &keyed).await.status, 201);
    let turned = json!({"agents": ["editor", "writer", "helper"]});
    assert_eq!(place.post("/v1/agent-systems", &system(&turned)).await.status, 201);
    assert_eq!(place.post("/v1/tasks", &keyed).await.status, 200);
    keyed["spec"] = json!({"agent": "helper", "idempotency_key": "once", "input": {"topic": "horses"}});
    assert_eq!(place.post("/v1/tasks", &keyed).await.status, 409, "another one was asked");
}
