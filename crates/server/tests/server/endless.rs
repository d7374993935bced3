//! Agents that send to each other in a circle stop only where a task bounds their turns. Whoever declares a task, or what makes
//! tasks, is told so, whether the system comes along or is there already.

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, agent},
};

/// With the system `loop`, whose agents send to each other, and `line`, whose agents don't.
async fn place() -> Place {
    let place = Place::with_agent().await;
    assert_eq!(place.post("/v1/agents", &agent("critic")).await.status, 201);
    let circle = json!({"helper": {"next": "critic"}, "critic": {"next": "helper"}});
    for (name, graph) in [("loop", circle), ("line", json!({}))] {
        let spec = json!({"agents": ["helper", "critic"], "graph": graph});
        let system = json!({"kind": "AgentSystem", "metadata": {"name": name}, "spec": spec});
        assert_eq!(place.post("/v1/agent-systems", &system).await.status, 201);
    }
    place
}

fn template(system: &str, max_turns: u32) -> Value {
    let spec = json!({"mode": "template", "system": system, "max_turns": max_turns});
    json!({"kind": "Task", "metadata": {"name": "rounds"}, "spec": spec})
}

fn schedule(system: &str, max_turns: u32) -> Value {
    let spec = json!({"schedule": "0 9 * * *", "task_template": {"system": system, "max_turns": max_turns}});
    json!({"kind": "TaskSchedule", "metadata": {"name": "rounds"}, "spec": spec})
}

fn webhook(system: &str, max_turns: u32) -> Value {
    let spec =
        json!({"auth": {"secret_ref": "s"}, "task_template": {"system": system, "max_turns": max_turns}});
    json!({"kind": "TaskWebhook", "metadata": {"name": "rounds"}, "spec": spec})
}

#[tokio::test]
async fn what_would_go_round_for_ever_is_refused_where_the_system_is_there() {
    let place = place().await;
    type Declared = fn(&str, u32) -> Value;
    let kinds: [(&str, Declared, &str); 3] = [
        ("/v1/tasks", template, "/spec/max_turns"),
        ("/v1/task-schedules", schedule, "/spec/task_template/max_turns"),
        ("/v1/task-webhooks", webhook, "/spec/task_template/max_turns"),
    ];
    for (path, declared, field) in kinds {
        for path in [path.to_owned(), format!("{path}?dry_run=true")] {
            let refused = place.post(&path, &declared("loop", 0)).await;
            check(&refused, 400, "invalid_manifest", "helper -> critic -> helper");
            assert_eq!(refused.json()["problems"][0]["path"], field, "{refused:?}");
        }
        let named = format!("{path}/rounds");
        assert_eq!(place.get(&named).await.status, 404, "{path}");
        assert_eq!(place.post(path, &declared("loop", 3)).await.status, 201, "{path}");
        check(
            &place.put(&named, "if-match: *\r\n", &declared("loop", 0)).await,
            400,
            "invalid_manifest",
            "circles",
        );
        assert_eq!(place.put(&named, "if-match: *\r\n", &declared("line", 0)).await.status, 200, "{path}");
        assert_eq!(place.post(path, &declared("elsewhere", 0)).await.status, 201, "may come later: {path}");
    }
}

#[tokio::test]
async fn a_task_alone_is_held_against_the_system_that_is_there_or_comes_along() {
    let place = place().await;
    let task = json!({"kind": "Task", "metadata": {"name": "t"}, "spec": {"system": "loop"}});
    let refused = place.post("/v1/check", &json!([task])).await;
    check(&refused, 400, "invalid_manifest", "expected a whole number of at least 1");
    assert_eq!(refused.json()["problems"][0]["path"], "/spec/max_turns");
    let mended = json!({"kind": "AgentSystem", "metadata": {"name": "loop"}, "spec": {"agents": ["helper", "critic"]}});
    let checked = place.post("/v1/check", &json!([task, mended])).await;
    assert_eq!(checked.status, 200, "{checked:?}");
}
