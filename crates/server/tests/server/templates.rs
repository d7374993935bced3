//! Templates, tasks that are asked for again, and tasks that are deleted.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, Reply, sse::Listener, task, worker::Worker},
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

/// Whoever applies a folder says `rerun` of every Task in it, the first time too.
#[tokio::test]
async fn what_is_asked_for_again_is_what_was_sent() {
    let place = Place::with_agent().await;
    let asked = |name: &str, message: &str| {
        let mut task = named(name);
        task["metadata"]["labels"] = json!({"said": message});
        task["spec"]["input"] = json!({ "message": message });
        task
    };
    let path = "/v1/tasks?rerun=true";
    let told = |reply: &Reply| {
        let task = reply.json();
        let name = task["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        (reply.status, name, task["spec"]["input"]["message"].as_str().unwrap_or_default().to_owned())
    };
    let first = place.post(path, &asked("digest", "one")).await;
    assert_eq!(told(&first), (201, "digest".to_owned(), "one".to_owned()));
    check(&place.post(path, &asked("digest", "two")).await, 409, "task_not_ended", "digest");
    place.send("POST", "/v1/tasks/digest/cancel", "", b"").await;
    let second = place.post(path, &asked("digest", "two")).await;
    assert_eq!(told(&second), (201, "digest-run-1".to_owned(), "two".to_owned()));
    let labels = json!({"said": "two", "ostler.dev/source-task": "digest"});
    assert_eq!(second.json()["metadata"]["labels"], labels);
    // The same words once more are one more task, and the name alone asks for what it was asked for first.
    let third = place.post(path, &asked("digest", "two")).await;
    assert_eq!(told(&third), (201, "digest-run-2".to_owned(), "two".to_owned()));
    let fourth = place.post(path, &json!({"metadata": {"name": "digest"}})).await;
    assert_eq!(told(&fourth), (201, "digest-run-3".to_owned(), "one".to_owned()));
    // A template is kept, whatever is said of it; what is sent under its name is run instead of it.
    let kept = place.post(path, &template("nightly")).await;
    assert_eq!((kept.status, &kept.json()["spec"]["mode"]), (201, &json!("template")), "{kept:?}");
    assert_eq!(place.get("/v1/tasks?mode=template").await.json()["items"].as_array().unwrap().len(), 1);
    let run = place.post(path, &asked("nightly", "three")).await;
    assert_eq!(told(&run), (201, "nightly-run-1".to_owned(), "three".to_owned()));
    // With a key the same again is the same task, the first one too.
    for name in ["keyed", "digest"] {
        let mut keyed = asked(name, "four");
        keyed["spec"]["idempotency_key"] = json!(format!("k-{name}"));
        let (one, other) = (place.post(path, &keyed).await, place.post(path, &keyed).await);
        assert_eq!((one.status, other.status), (201, 200), "{other:?}");
        assert_eq!(one.json()["metadata"]["uid"], other.json()["metadata"]["uid"]);
    }
    check(&place.post(path, &json!({"metadata": {"name": "no"}})).await, 404, "not_found", "no");
    let mut unknown = named("no");
    unknown["spec"]["agent"] = json!("nobody");
    check(&place.post(path, &unknown).await, 404, "not_found", "nobody");
    unknown.as_object_mut().unwrap().remove("kind");
    check(&place.post(path, &unknown).await, 404, "not_found", "nobody");
}

/// What is said of it beside its name is otherwise this time, and nothing is passed over.
#[tokio::test]
async fn what_is_asked_for_again_may_be_otherwise() {
    let place = Place::with_agent().await;
    let mut kept = template("nightly");
    kept["spec"]["input"] = json!({"message": "hi", "day": "Sunday"});
    place.post("/v1/tasks", &kept).await;
    let path = "/v1/tasks?rerun=true";
    let otherwise = json!({"metadata": {"name": "nightly", "labels": {"why": "x"}},
        "spec": {"input": {"day": "Monday"}, "priority": "urgent"}});
    let run = place.post(path, &otherwise).await.json();
    assert_eq!(run["spec"]["input"], json!({"message": "hi", "day": "Monday"}), "{run}");
    assert_eq!((&run["spec"]["priority"], &run["spec"]["agent"]), (&json!("urgent"), &json!("helper")));
    assert_eq!(
        (&run["metadata"]["labels"]["why"], &run["metadata"]["labels"]["team"]),
        (&json!("x"), &json!("blue"))
    );
    place.send("POST", "/v1/tasks/nightly-run-1/cancel", "", b"").await;
    let again = json!({"metadata": {"name": "nightly-run-1"}, "spec": {"input": {"day": "Tuesday"}}});
    assert_eq!(place.post(path, &again).await.json()["spec"]["input"]["day"], "Tuesday");
    for (spec, words) in [
        (json!({"inputt": "x"}), "inputt"),
        (json!({"priority": "loud"}), "priority"),
        (json!({"input": 3}), "input"),
        (json!(3), "expected an object"),
    ] {
        let body = json!({"metadata": {"name": "nightly"}, "spec": spec});
        check(&place.post(path, &body).await, 400, "invalid_manifest", words);
    }
    let labels = json!({"metadata": {"name": "nightly", "labels": {"n": 1}}});
    check(&place.post(path, &labels).await, 400, "invalid_manifest", "labels");
}

#[tokio::test]
async fn a_template_has_a_status_and_nothing_to_tell() {
    let place = Place::with_agent().await;
    place.post("/v1/tasks", &template("nightly")).await;
    let status = place.get("/v1/tasks/nightly/status").await;
    assert_eq!((status.status, &status.json()["status"]["phase"]), (200, &json!("Ready")), "{status:?}");
    for path in ["logs", "trace", "messages", "steps", "events", "metrics"] {
        let path = format!("/v1/tasks/nightly/{path}");
        check(&place.get(&path).await, 404, "not_found", "is a template");
    }
    check(&place.post("/v1/tasks/nightly/cancel", &json!({})).await, 404, "not_found", "is a template");
    check(&place.get("/v1/tasks/nobody/logs").await, 404, "not_found", "no task");
}

#[tokio::test]
async fn a_template_is_replaced_in_the_namespace_that_its_manifest_names() {
    let place = Place::with_agent().await;
    assert_eq!(place.post("/v1/tasks", &named("nightly")).await.status, 201);
    let mut elsewhere = template("nightly");
    elsewhere["metadata"]["namespace"] = json!("shop");
    place.post("/v1/tasks", &elsewhere).await;
    elsewhere["spec"]["priority"] = json!("high");
    let replaced = place.put("/v1/tasks/nightly", "if-match: *\r\n", &elsewhere).await;
    assert_eq!(
        (replaced.status, &replaced.json()["spec"]["priority"]),
        (200, &json!("high")),
        "{replaced:?}"
    );
}

/// However many of the numbers at hand are taken, it is run.
#[tokio::test]
async fn a_rerun_finds_a_name_that_is_free() {
    let place = Place::with_agent().await;
    for name in ["nightly", "a,b"] {
        place.post("/v1/tasks", &template(name)).await;
        // Nobody can tell that these are runs of it: as when they are too far back to be looked at.
        for number in 1..=40 {
            let taken = place.post("/v1/tasks", &named(&format!("{name}-run-{number}"))).await;
            assert_eq!(taken.status, 201, "{taken:?}");
        }
        let mut names = BTreeSet::new();
        for _ in 0..3 {
            let run = place.post("/v1/tasks?rerun=true", &json!({"metadata": {"name": name}})).await;
            assert_eq!(run.status, 201, "{run:?}");
            let called = run.json()["metadata"]["name"].as_str().unwrap().to_owned();
            assert!(called.starts_with(&format!("{name}-run-")), "{called}");
            assert!(names.insert(called));
        }
    }
    // A template may have such a name, too.
    for name in ["weekly", "weekly-run-1"] {
        place.post("/v1/tasks", &template(name)).await;
    }
    let run = place.post("/v1/tasks?rerun=true", &json!({"metadata": {"name": "weekly"}})).await;
    assert_eq!((run.status, &run.json()["metadata"]["name"]), (201, &json!("weekly-run-2")));
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
    // As it is it may be put back, as whoever reads and writes does.
    let read = place.get("/v1/tasks/t").await.json();
    assert_eq!(place.put("/v1/tasks/t", "if-match: 1\r\n", &read).await.status, 200);
    check(&place.put("/v1/tasks/t", "if-match: 9\r\n", &read).await, 409, "conflict", "not 9");
    let mut other = read.clone();
    other["metadata"]["labels"] = json!({"a": "b"});
    let refused = place.put("/v1/tasks/t", "if-match: 1\r\n", &other).await;
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

/// A watch begins with what a list shows, and goes on with that.
#[tokio::test]
async fn a_watch_tells_of_tasks_or_of_templates_as_a_list_shows_them() {
    let place = Place::with_agent().await;
    place.post("/v1/tasks", &template("nightly")).await;
    place.post("/v1/tasks", &named("first")).await;
    let open = async |query: &str, last| Listener::at(&place, &format!("/v1/tasks/watch{query}"), last).await;
    let (mut tasks, mut templates) = (open("", None).await, open("?mode=template", None).await);
    let (mut same, mut one) = (open("?mode=run", None).await, open("?name=nightly", None).await);
    assert_eq!(told(&mut tasks).await, "added first");
    assert_eq!(told(&mut same).await, "added first");
    assert_eq!(told(&mut templates).await, "added nightly");
    assert_eq!(told(&mut one).await, "added nightly", "a name is enough to know what is meant");
    // Everything that can happen to either; what is told next is never the other's.
    let mut changed = template("nightly");
    changed["spec"]["priority"] = json!("high");
    place.put("/v1/tasks/nightly", "if-match: *\r\n", &changed).await;
    assert_eq!(told(&mut templates).await, "updated nightly");
    assert_eq!(place.delete("/v1/tasks/nightly").await.status, 204);
    assert_eq!(told(&mut templates).await, "deleted nightly");
    for verb in ["cancel", "archive"] {
        place.post(&format!("/v1/tasks/first/{verb}"), &json!({})).await;
        assert_eq!(told(&mut tasks).await, "updated first", "{verb}");
    }
    assert_eq!(place.delete("/v1/tasks/first").await.status, 204);
    assert_eq!(told(&mut tasks).await, "deleted first");
    // Under names that were the other's.
    place.post("/v1/tasks", &template("first")).await;
    assert_eq!(told(&mut templates).await, "added first");
    place.post("/v1/tasks", &named("nightly")).await;
    assert_eq!(told(&mut tasks).await, "added nightly");
    place.post("/v1/tasks/nightly/cancel", &json!({})).await;
    assert_eq!(told(&mut tasks).await, "updated nightly");
    assert_eq!(place.delete("/v1/tasks/first").await.status, 204);
    assert_eq!(told(&mut templates).await, "deleted first");
    assert_eq!(place.delete("/v1/tasks/nightly").await.status, 204);
    assert_eq!(told(&mut tasks).await, "deleted nightly");
    place.post("/v1/tasks", &named("end")).await;
    place.post("/v1/tasks", &template("last")).await;
    assert_eq!(told(&mut tasks).await, "added end");
    assert_eq!(told(&mut templates).await, "added last");
    for query in ["?mode=both", "?mode=Template"] {
        check(&place.get(&format!("/v1/tasks/watch{query}")).await, 400, "bad_parameter", "run or template");
    }
    check(&place.get("/v1/agents/watch?mode=run").await, 400, "bad_parameter", "mode");
}

/// Whoever comes back is told what is gone, though its name is another's by now.
#[tokio::test]
async fn a_watch_that_goes_on_loses_nothing_of_the_names_that_changed_hands() {
    let place = Place::with_agent().await;
    place.post("/v1/tasks", &named("a")).await;
    place.post("/v1/tasks/a/cancel", &json!({})).await;
    place.post("/v1/tasks", &template("b")).await;
    let mut all = Listener::at(&place, "/v1/events/watch?since=0", None).await;
    let mut position = None;
    // Both are known from here on.
    while position.is_none() {
        let event = all.next().await.unwrap();
        position = event.id.filter(|_| event.data["name"] == "b");
    }
    for (name, becomes) in [("a", template("a")), ("b", named("b"))] {
        assert_eq!(place.delete(&format!("/v1/tasks/{name}")).await.status, 204);
        assert_eq!(place.post("/v1/tasks", &becomes).await.status, 201);
    }
    let mut tasks = Listener::at(&place, "/v1/tasks/watch", position).await;
    let mut templates = Listener::at(&place, "/v1/tasks/watch?mode=template", position).await;
    place.post("/v1/tasks", &template("y")).await;
    place.post("/v1/tasks", &named("z")).await;
    let of_tasks = told_until(&mut tasks, "added z").await;
    let of_templates = told_until(&mut templates, "added y").await;
    let has = |told: &[String], what: &str| told.iter().any(|it| it == what);
    assert!(has(&of_tasks, "deleted a") && has(&of_tasks, "added b"), "{of_tasks:?}");
    assert!(!has(&of_tasks, "added a") && !has(&of_tasks, "added y"), "{of_tasks:?}");
    assert!(has(&of_templates, "deleted b") && has(&of_templates, "added a"), "{of_templates:?}");
    assert!(!has(&of_templates, "added b") && !has(&of_templates, "added z"), "{of_templates:?}");
}

/// The next change, as `added NAME`.
async fn told(watch: &mut Listener) -> String {
    loop {
        let message = watch.next().await.expect("the stream goes on");
        if message.event == "resource" {
            let name = message.data["resource"]["metadata"]["name"].as_str().unwrap();
            return format!("{} {name}", message.data["type"].as_str().unwrap());
        }
    }
}

async fn told_until(watch: &mut Listener, last: &str) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.last().is_none_or(|told| told != last) {
        seen.push(told(watch).await);
    }
    seen
}
