//! Templates, tasks that are asked for again, and tasks that are deleted.

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, Reply, task, worker::Worker},
};

fn template(name: &str) -> Value {
    let mut template = task();
    template["metadata"] = json!({"name": name, "labels": {"team": "blue"}});
    template["spec"]["mode"] = json!("template");
    template
}

fn named(name: &str) -> Value {
    let mut task = task();
    task["metadata"] = json!({"name": name});
    task
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_template_is_kept_and_never_run() {
    let place = Place::with_agent().await;
    let kept = place.post("/v1/tasks", &template("nightly")).await;
    assert_eq!((kept.status, &kept.json()["spec"]["mode"]), (201, &json!("template")), "{kept:?}");
    assert_eq!(kept.json()["status"]["phase"], "Ready");
    assert_eq!(place.get("/v1/tasks/nightly").await.json(), kept.json());
    assert_eq!(place.get("/v1/tasks").await.json()["items"], json!([]));
    assert_eq!(names(&place.get("/v1/tasks?mode=template").await.json()), ["nightly"]);
    assert_eq!(names(&place.get("/v1/tasks?mode=template&labels=team=red").await.json()), Vec::<&str>::new());
    let mut changed = template("nightly");
    changed["spec"]["priority"] = json!("high");
    check(&place.put("/v1/tasks/nightly", "", &changed).await, 409, "conflict", "which version");
    assert_eq!(place.put("/v1/tasks/nightly", "if-match: 1\r\n", &changed).await.status, 200);
    check(&place.post("/v1/tasks", &named("nightly")).await, 409, "conflict", "template \"nightly\"");
    assert_eq!(place.post("/v1/tasks", &named("taken")).await.status, 201);
    check(&place.post("/v1/tasks", &template("taken")).await, 409, "conflict", "\"taken\"");
    assert_eq!(place.delete("/v1/tasks/nightly").await.status, 204);
    check(&place.delete("/v1/tasks/nightly").await, 404, "not_found", "nightly");
}

#[tokio::test]
async fn a_template_is_asked_for_again_and_again() {
    let place = Place::with_agent().await;
    place.post("/v1/tasks", &template("nightly")).await;
    for number in 1..=3 {
        let run = place.post("/v1/tasks?rerun=true", &json!({"metadata": {"name": "nightly"}})).await;
        assert_eq!(run.status, 201, "{run:?}");
        let metadata = run.json()["metadata"].clone();
        assert_eq!(metadata["name"], format!("nightly-run-{number}"));
        assert_eq!(metadata["labels"], json!({"team": "blue", "ostler.dev/source-task": "nightly"}));
    }
    let orloj = json!({"apiVersion": "orloj.dev/v1", "kind": "Task", "metadata": {"name": "nightly"}});
    let run = place.post("/v1/tasks?rerun=true", &orloj).await.json();
    assert_eq!((&run["apiVersion"], &run["spec"]["mode"]), (&json!("orloj.dev/v1"), &json!("run")));
    let labels = &run["metadata"]["labels"];
    assert_eq!(labels["orloj.dev/source-task"], "nightly");
    assert_eq!(labels["orloj.dev/source-task-namespace"], "default");
}

#[tokio::test]
async fn a_task_is_asked_for_again_once_it_ended() {
    let place = Place::with_agent().await;
    place.post("/v1/tasks", &named("once")).await;
    let again = json!({"kind": "Task", "metadata": {"name": "once"}});
    check(&place.post("/v1/tasks?rerun=true", &again).await, 409, "task_not_ended", "once");
    place.send("POST", "/v1/tasks/once/cancel", "", b"").await;
    let run = place.post("/v1/tasks?rerun=true", &again).await;
    assert_eq!((run.status, &run.json()["metadata"]["name"]), (201, &json!("once-run-1")));
    assert_eq!(run.json()["spec"]["input"], json!({"message": "hi"}));
    check(
        &place.post("/v1/tasks?rerun=true", &json!({"metadata": {"name": "no"}})).await,
        404,
        "not_found",
        "no",
    );
    for body in [json!({}), json!({"metadata": {}}), json!([]), json!({"metadata": {"name": 3}})] {
        check(&place.post("/v1/tasks?rerun=true", &body).await, 400, "invalid_manifest", "");
    }
}

#[tokio::test]
async fn who_asks_again_with_the_same_key_gets_the_same_task() {
    let place = Place::with_agent().await;
    place.post("/v1/tasks", &template("nightly")).await;
    for name in ["first", "second"] {
        place.post("/v1/tasks", &named(name)).await;
        place.send("POST", &format!("/v1/tasks/{name}/cancel"), "", b"").await;
    }
    let nightly = json!({"metadata": {"name": "nightly"}});
    let nightly_with_key = json!({"metadata": {"name": "nightly"}, "spec": {"idempotency_key": "k"}});
    let retry = "/v1/tasks/first/retry";
    let other = json!({"overrides": {"input": {"message": "other"}}});
    for (key, path, body, same, another_request) in [
        ("k", "/v1/tasks?rerun=true", &nightly, &nightly_with_key, ("/v1/tasks/first/retry", &json!({}))),
        ("r", retry, &json!({}), &json!({"overrides": {"idempotency_key": "r"}}), (retry, &other)),
        ("s", retry, &other, &other, ("/v1/tasks/second/retry", &other)),
    ] {
        let header = format!("content-type: application/json\r\nidempotency-key: {key}\r\n");
        let ask = async |path: &str, body: &Value| {
            place.send("POST", path, &header, body.to_string().as_bytes()).await
        };
        let (first, again, third) = (ask(path, body).await, ask(path, body).await, ask(path, same).await);
        assert_eq!((first.status, again.status, third.status), (201, 200, 200), "{again:?} {third:?}");
        let uid = |reply: &Reply| reply.json()["metadata"]["uid"].clone();
        assert_eq!((uid(&first), uid(&first)), (uid(&again), uid(&third)));
        let (path, body) = another_request;
        check(&ask(path, body).await, 409, "conflict", "idempotency key");
    }
    assert_eq!(place.post(retry, &json!({})).await.status, 201, "without a key each is a task of its own");
    let keys = "content-type: application/json\r\nidempotency-key: one\r\n";
    for (path, body) in
        [(retry, json!({"overrides": {"idempotencyKey": "k"}})), ("/v1/tasks?rerun=true", nightly_with_key)]
    {
        let two = place.send("POST", path, keys, body.to_string().as_bytes()).await;
        check(&two, 400, "bad_parameter", "the header says idempotency key \"one\", the body \"k\"");
    }
    let bad = json!({"metadata": {"name": "nightly"}, "spec": {"idempotency_key": ""}});
    check(&place.post("/v1/tasks?rerun=true", &bad).await, 400, "invalid_manifest", "idempotency_key");
}

#[tokio::test]
async fn a_retry_may_ask_for_something_else() {
    let place = Place::with_agent().await;
    place.post("/v1/tasks", &named("first")).await;
    place.send("POST", "/v1/tasks/first/cancel", "", b"").await;
    let overrides = json!({"overrides": {"priority": "high", "input": {"message": "other"}, "messageRetry": {"max_attempts": 4}}});
    let again = place.post("/v1/tasks/first/retry", &overrides).await;
    assert_eq!(again.status, 201, "{again:?}");
    let spec = again.json()["spec"].clone();
    assert_eq!((&spec["priority"], &spec["input"]), (&json!("high"), &json!({"message": "other"})));
    assert_eq!(
        (&spec["retry"]["max_attempts"], &spec["message_retry"]["max_attempts"]),
        (&json!(1), &json!(4))
    );
    for (body, words) in [
        (json!({"overrides": {"priority": "loud"}}), "priority"),
        (json!({"overrides": {"promt": 3}}), "promt"),
        (json!({"overrides": {"input": "x"}}), "input"),
        (json!({"overrides": 3}), "expected an object"),
        (json!({"override": {}}), "only overrides is known"),
        (json!([]), "expected an object"),
    ] {
        check(&place.post("/v1/tasks/first/retry", &body).await, 400, "invalid_manifest", words);
    }
}

#[tokio::test]
async fn a_task_never_changes_and_is_deleted_once_it_ended() {
    let place = Place::with_agent().await;
    place.post("/v1/tasks", &named("t")).await;
    let refused = place.put("/v1/tasks/t", "if-match: 1\r\n", &named("t")).await;
    let document = check(&refused, 409, "immutable", "never changes");
    assert!(document["remedy"].as_str().unwrap().contains("overrides"));
    let status =
        place.put("/v1/tasks/t/status", "if-match: 1\r\n", &json!({"status": {"phase": "Pending"}})).await;
    check(&status, 422, "not_available", "follows from its runs");
    check(&place.delete("/v1/tasks/t").await, 409, "task_not_ended", "it has to end first");
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    worker.finish(held, "done").await;
    let stale = place.send("DELETE", "/v1/tasks/t", "if-match: 1\r\n", b"").await;
    check(&stale, 409, "conflict", "not 1");
    assert_eq!(place.delete("/v1/tasks/t").await.status, 204);
    check(&place.get("/v1/tasks/t").await, 404, "not_found", "t");
    check(&place.delete("/v1/tasks/t").await, 404, "not_found", "t");
    assert_eq!(place.post("/v1/tasks", &named("t")).await.status, 201, "its name is free again");
}
