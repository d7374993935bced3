//! Tasks that ended long ago are forgotten, with all they left.

use std::time::Duration;

use ostler_control::store::{StoreExt, TaskRef};
use ostler_kernel::runtime::timeout;
use ostler_server::{ServerConfig, start};
use serde_json::json;

use super::support::{Hasty, Place, agent, config, model, runtime, task};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_long_ago_is_gone_and_its_name_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let config = ServerConfig { keep: Some(Duration::from_millis(1)), ..config(folder.path()) };
    let place = Place { server: start(config, Hasty::new()).await.unwrap(), folder };
    place.apply_agent().await;
    let waiting = place.task().await;
    let mut named = task();
    named["metadata"] = json!({"name": "report"});
    assert_eq!(place.post("/v1/tasks", &named).await.status, 201);
    assert_eq!(place.post("/v1/tasks", &named).await.status, 200, "it is there");
    place.post("/v1/tasks/report/cancel", &json!({})).await;
    until(async || place.get("/v1/tasks/report").await.status == 404).await;
    assert_eq!(place.get("/v1/tasks/report/logs").await.status, 404);
    assert_eq!(place.get(&format!("/v1/tasks/{waiting}")).await.status, 200, "it has not ended");
    let listed = place.get("/v1/tasks?archived=true").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(place.post("/v1/tasks", &named).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_too_many_the_oldest_go_and_what_has_not_ended_stays() {
    let folder = tempfile::tempdir().unwrap();
    let config = ServerConfig { keep_tasks: Some(3), ..config(folder.path()) };
    let place = Place { server: start(config, Hasty::new()).await.unwrap(), folder };
    place.apply_agent().await;
    let waiting = place.task().await;
    let mut ended = Vec::new();
    for _ in 0..5 {
        let name = place.task().await;
        place.post(&format!("/v1/tasks/{name}/cancel"), &json!({})).await;
        ended.push(name);
    }
    let elsewhere = json!({"namespace": "other"});
    for resource in [model("mock"), agent("helper")] {
        let mut resource = resource;
        resource["metadata"]["namespace"] = json!("other");
        let plural = if resource["kind"] == "Agent" { "agents" } else { "model-endpoints" };
        assert_eq!(place.post(&format!("/v1/{plural}"), &resource).await.status, 201);
    }
    let mut alone = task();
    alone["metadata"] = elsewhere;
    let alone = place.post("/v1/tasks", &alone).await.json()["metadata"]["name"].as_str().unwrap().to_owned();
    place.post(&format!("/v1/tasks/{alone}/cancel?namespace=other"), &json!({})).await;
    until(async || place.get(&format!("/v1/tasks/{}", ended[1])).await.status == 404).await;
    assert_eq!(place.get(&format!("/v1/tasks/{}", ended[0])).await.status, 404);
    for name in ended[2..].iter().chain([&waiting]) {
        assert_eq!(place.get(&format!("/v1/tasks/{name}")).await.status, 200, "{name}");
    }
    assert_eq!(place.get(&format!("/v1/tasks/{alone}?namespace=other")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_a_while_ago_is_out_of_sight_and_still_there() {
    let folder = tempfile::tempdir().unwrap();
    let config = ServerConfig { archive_after: Some(Duration::from_millis(1)), ..config(folder.path()) };
    let place = Place { server: start(config, Hasty::new()).await.unwrap(), folder };
    place.apply_agent().await;
    let (waiting, ended) = (place.task().await, place.task().await);
    place.post(&format!("/v1/tasks/{ended}/cancel"), &json!({})).await;
    let listed = async || {
        let list = place.get("/v1/tasks").await.json();
        list["items"].as_array().unwrap().iter().map(|it| it["metadata"]["name"].clone()).collect::<Vec<_>>()
    };
    until(async || listed().await == [json!(waiting)]).await;
    let view = place.get(&format!("/v1/tasks/{ended}")).await.json();
    assert!(view["status"]["archivedAt"].is_string(), "{view}");
    // One that ends behind it is found too.
    place.post(&format!("/v1/tasks/{waiting}/cancel"), &json!({})).await;
    until(async || listed().await.is_empty()).await;
}

/// A plan is put again a sixteenth of the time later, and must not be forgotten on the way to a task.
#[tokio::test(flavor = "multi_thread")]
async fn plans_that_no_task_names_are_forgotten_and_the_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (keep, keep_plans) = (Some(Duration::from_millis(1)), Some(Duration::from_millis(500)));
    let config = ServerConfig { keep, keep_plans, ..config(folder.path()) };
    let place = Place { server: start(config, Hasty::new()).await.unwrap(), folder };
    place.apply_agent().await;
    let store = place.server.control().store();
    let plan_of = async |name: &str| {
        let reference = TaskRef::Name { namespace: "default".into(), name: name.into() };
        store.task(reference).await.unwrap().unwrap().task.request.plan
    };
    let waiting = plan_of(&place.task().await).await;
    let mut changed = agent("helper");
    changed["spec"]["prompt"] = json!("Be brief.");
    let applied = place.post("/v1/agents", &changed).await;
    assert!(applied.status < 300, "{applied:?}");
    for round in 0..3 {
        let name = place.task().await;
        let brief = plan_of(&name).await;
        assert_ne!(brief, waiting);
        assert!(store.blob(brief).await.unwrap().is_some(), "round {round}: a task names it");
        place.post(&format!("/v1/tasks/{name}/cancel"), &json!({})).await;
        until(async || store.blob(brief).await.unwrap().is_none()).await;
    }
    assert!(store.blob(waiting).await.unwrap().is_some(), "a task waits for it");
}

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    timeout(&*runtime(), PATIENCE, waiting).await.unwrap();
}

/// What was put in place is what is listed, and the conversations of agents are not among it.
#[tokio::test]
async fn declared_sessions_are_listed_as_any_other_resource() {
    let place = Place::with_agent().await;
    for (name, desk) in [("a", "sales"), ("b", "support"), ("c", "support"), ("d", "support")] {
        let metadata = json!({"name": name, "labels": {"desk": desk}});
        let session = json!({"kind": "Session", "metadata": metadata, "spec": {"system": "desk"}});
        assert_eq!(place.post("/v1/sessions", &session).await.status, 201);
    }
    let mut asked = task();
    asked["spec"]["session"] = json!("chat");
    assert_eq!(place.post("/v1/tasks", &asked).await.status, 201);
    for query in ["", "?mode=declared"] {
        let listed = place.get(&format!("/v1/sessions{query}")).await.json();
        let items = listed["items"].as_array().unwrap();
        let names: Vec<&str> = items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a", "b", "c", "d"], "{listed}");
        assert_eq!(items[0], place.get("/v1/sessions/a").await.json());
    }
    let page = place.get("/v1/sessions?labelSelector=desk=support&limit=2").await.json();
    assert_eq!(
        (&page["items"][0]["metadata"]["name"], &page["continue"]),
        (&json!("b"), &json!("default/c"))
    );
    let rest = place.get("/v1/sessions?labelSelector=desk=support&limit=2&after=default/c").await.json();
    assert_eq!((&rest["items"][0]["metadata"]["name"], rest.get("continue")), (&json!("d"), None));
    let live = place.get("/v1/sessions?mode=live").await.json();
    assert_eq!(
        (&live["items"][0]["status"]["key"], live["items"].as_array().unwrap().len()),
        (&json!("chat"), 1)
    );
    for query in ["mode=both", "mode=live&labels=a=b"] {
        assert_eq!(place.get(&format!("/v1/sessions?{query}")).await.status, 400, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_are_listed_and_forgotten_when_nobody_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place { server: start(config(folder.path()), Hasty::new()).await.unwrap(), folder };
    place.apply_agent().await;
    for (name, key) in [("one", "chat"), ("two", "chat"), ("three", "other")] {
        let mut asked = task();
        asked["metadata"] = json!({ "name": name });
        asked["spec"]["session"] = json!(key);
        assert_eq!(place.post("/v1/tasks", &asked).await.status, 201);
    }
    let listed = place.get("/v1/sessions?mode=live&limit=1").await.json();
    let session = &listed["items"][0];
    assert_eq!((&session["kind"], &session["metadata"]["name"]), (&json!("Session"), &json!("chat")));
    let status = &session["status"];
    assert_eq!((&status["phase"], &status["runs"]), (&json!("Active"), &json!(2)), "{listed}");
    assert!(status["lastUsedAt"].as_str().is_some_and(|at| at.ends_with('Z')), "{listed}");
    let next = listed["continue"].as_str().unwrap();
    let next: String = next.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let listed = place.get(&format!("/v1/sessions?mode=live&limit=1&after={next}")).await.json();
    assert_eq!((&listed["items"][0]["status"]["key"], &listed["continue"]), (&json!("other"), &json!(null)));
    assert_eq!(place.get("/v1/sessions?mode=live&namespace=nowhere").await.json()["items"], json!([]));
    assert_eq!(place.get("/v1/sessions").await.json()["items"], json!([]));
    assert_eq!(place.get("/v1/sessions?mode=live&after=x").await.status, 400);
    place.post("/v1/tasks/three/cancel", &json!({})).await;
    let Place { server, folder } = place;
    server.shutdown().await;
    let config = ServerConfig { keep_sessions: Some(Duration::from_millis(1)), ..config(folder.path()) };
    let place = Place { server: start(config, Hasty::new()).await.unwrap(), folder };
    until(async || place.get("/v1/sessions?mode=live").await.json()["items"].as_array().unwrap().len() == 1)
        .await;
    let left = place.get("/v1/sessions?mode=live").await.json();
    assert_eq!(left["items"][0]["metadata"]["name"], "chat", "someone is in it: {left}");
    assert_eq!(place.get("/v1/tasks/three").await.status, 200, "what was asked for is still there");
    let again = place.post("/v1/tasks/three/cancel", &json!({})).await;
    assert_eq!((again.status, &again.json()["status"]["state"]), (200, &json!("cancelled")), "{again:?}");
}
