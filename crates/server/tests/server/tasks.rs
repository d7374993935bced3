//! Tasks over HTTP: accepted, listed, cancelled, asked for again, put away.

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, task, worker::Worker},
};

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn named(name: &str) -> Value {
    let mut task = task();
    task["metadata"] = json!({"name": name, "labels": {"team": "blue"}});
    task
}

#[tokio::test]
async fn a_task_is_accepted_as_it_will_be_read() {
    let place = Place::with_agent().await;
    let created = place.post("/v1/tasks", &named("first")).await;
    assert_eq!(created.status, 201);
    let view = created.json();
    let (metadata, status) = (&view["metadata"], &view["status"]);
    assert_eq!((&view["apiVersion"], &view["kind"]), (&json!("ostler.dev/v1"), &json!("Task")));
    assert_eq!((&metadata["name"], &metadata["namespace"]), (&json!("first"), &json!("default")));
    assert_eq!(metadata["labels"], json!({"team": "blue"}));
    assert!(metadata["uid"].as_str().unwrap().starts_with("task_"));
    assert!(metadata["createdAt"].as_str().unwrap().ends_with('Z'));
    let spec = json!({"agent": "helper", "mode": "run", "input": {"message": "hi"}, "priority": "normal",
        "retry": {"max_attempts": 1, "backoff": "0s"},
        "message_retry": {"max_attempts": 1, "backoff": "0s", "max_backoff": "24h", "jitter": "full"}});
    assert_eq!(view["spec"], spec);
    assert_eq!((&status["phase"], &status["state"]), (&json!("Pending"), &json!("queued")));
    assert_eq!((&status["lastEvent"], status.get("output")), (&json!(1), None));
    assert!(status["run"].as_str().unwrap().starts_with("run_"));
    assert!(status["session"].as_str().unwrap().starts_with("session_"));
    let uid = metadata["uid"].as_str().unwrap();
    for reference in ["first", uid] {
        let read = place.get(&format!("/v1/tasks/{reference}")).await.json();
        assert_eq!((&read["metadata"], &read["spec"]), (&view["metadata"], &view["spec"]));
        for (field, value) in view["status"].as_object().unwrap() {
            assert_eq!(read["status"][field], *value, "{field}");
        }
        assert_eq!(place.get("/v1/tasks").await.json()["items"][0], view, "lists stay lean");
    }
}

#[tokio::test]
async fn names_are_made_up_and_do_not_repeat() {
    let place = Place::with_agent().await;
    let (first, second) = (place.task().await, place.task().await);
    assert!(first.starts_with("helper-") && first != second, "{first} {second}");
    for body in [json!({"name": null}), json!({"labels": {}}), json!({})] {
        let mut task = task();
        task["metadata"] = body;
        assert_eq!(place.post("/v1/tasks", &task).await.status, 201);
    }
    let yaml = b"kind: Task\nspec:\n  agent: helper\n  input: {message: yes, version: 1.10}\n";
    let reply = place.send("POST", "/v1/tasks", "content-type: application/yaml\r\n", yaml).await;
    let input = json!({"message": "yes", "version": "1.10"});
    assert_eq!((reply.status, &reply.json()["spec"]["input"]), (201, &input));
    let yaml = b"kind: Task\nmetadata: {name: yam}\nspec:\n  agent: helper\n  input: {message: hi}\n";
    let reply = place.send("POST", "/v1/tasks", "content-type: application/yaml\r\n", yaml).await;
    assert_eq!((reply.status, &reply.json()["metadata"]["name"]), (201, &json!("yam")));
    let mut other = named("yam");
    other["spec"]["input"]["message"] = json!("something else");
    let taken = place.post("/v1/tasks", &other).await;
    assert_eq!((taken.status, &taken.json()["code"]), (409, &json!("conflict")));
    assert!(taken.json()["detail"].as_str().unwrap().contains("yam"));
}

/// What `/v1/check` calls unchanged is no conflict.
#[tokio::test]
async fn the_same_request_under_the_same_name_is_the_same_task() {
    let place = Place::with_agent().await;
    let first = place.post("/v1/tasks", &named("report")).await;
    assert_eq!(first.status, 201);
    let uid = first.json()["metadata"]["uid"].clone();
    // How soon it is wanted is no other request.
    let mut sooner = named("report");
    sooner["spec"]["priority"] = json!("high");
    for (ended, body) in [(false, named("report")), (false, sooner), (true, named("report"))] {
        if ended {
            place.send("POST", "/v1/tasks/report/cancel", "", b"").await;
        }
        for path in ["/v1/tasks", "/v1/tasks?dry_run=true"] {
            let again = place.post(path, &body).await;
            assert_eq!((again.status, &again.json()["metadata"]["uid"]), (200, &uid), "{path}: {again:?}");
            assert_eq!(again.json()["status"]["state"], if ended { "cancelled" } else { "queued" });
        }
        let checked = place.post("/v1/check", &json!([body])).await.json();
        assert_eq!(checked["items"][0]["outcome"], "unchanged", "{checked}");
    }
    for (field, value) in [("input", json!({"message": "else"})), ("session", json!("s"))] {
        let mut other = named("report");
        other["spec"][field] = value;
        for path in ["/v1/tasks", "/v1/tasks?dry_run=true"] {
            check(&place.post(path, &other).await, 409, "conflict", "report");
        }
    }
    assert_eq!(names(&place.get("/v1/tasks").await.json()), ["report"]);
}

/// Two at once: one of them makes it, the other is given it.
#[tokio::test]
async fn who_asks_for_the_same_at_the_same_time_gets_one_task() {
    let place = Place::with_agent().await;
    let body = named("report");
    let asked = futures_util::future::join_all((0..8).map(|_| place.post("/v1/tasks", &body))).await;
    let mut statuses: Vec<u16> = asked.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
    let uid = asked[0].json()["metadata"]["uid"].clone();
    assert!(asked.iter().all(|reply| reply.json()["metadata"]["uid"] == uid));
}

#[tokio::test]
async fn what_a_task_names_is_not_retried() {
    let place = Place::with_agent().await;
    let mut asked = named("picky");
    asked["spec"]["message_retry"] = json!({"max_attempts": 5, "non_retryable": ["TRY later"]});
    let created = place.post("/v1/tasks", &asked).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.json()["spec"]["message_retry"]["non_retryable"], json!(["TRY later"]));
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    worker.fail(held).await;
    let ended = place.get("/v1/tasks/picky").await.json();
    assert_eq!(
        (&ended["status"]["phase"], &ended["status"]["attempts"]),
        (&json!("Failed"), &json!(1)),
        "{ended}"
    );
    assert!(ended["status"]["lastError"].as_str().unwrap().contains("try later"), "{ended}");
    let again = place.post("/v1/tasks/picky/retry", &json!({})).await.json();
    assert_eq!(again["spec"]["message_retry"]["non_retryable"], json!(["TRY later"]), "{again}");
    // What it does not name may pass.
    let overrides = json!({"overrides": {"message_retry": {"max_attempts": 5, "non_retryable": ["quota"]}}});
    place
        .post(&format!("/v1/tasks/{}/cancel", again["metadata"]["name"].as_str().unwrap()), &json!({}))
        .await;
    let other = place.post("/v1/tasks/picky/retry", &overrides).await.json();
    let held = worker.claim().await;
    worker.fail(held).await;
    let name = other["metadata"]["name"].as_str().unwrap();
    assert_eq!(place.get(&format!("/v1/tasks/{name}")).await.json()["status"]["phase"], "Running");
}

#[tokio::test]
async fn the_same_request_again_is_the_same_task() {
    let place = Place::with_agent().await;
    let body = task().to_string();
    let headers = "content-type: application/json\r\nidempotency-key: k-1\r\n";
    let first = place.send("POST", "/v1/tasks", headers, body.as_bytes()).await;
    let again = place.send("POST", "/v1/tasks", headers, body.as_bytes()).await;
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(first.json(), again.json());
    assert_eq!(first.json()["spec"]["idempotency_key"], "k-1");
    let mut in_body = task();
    in_body["spec"]["idempotency_key"] = json!("k-1");
    assert_eq!(place.post("/v1/tasks", &in_body).await.json(), first.json());
    let both = place.send("POST", "/v1/tasks", headers, in_body.to_string().as_bytes()).await;
    assert_eq!(both.status, 200);
    in_body["spec"]["idempotency_key"] = json!("k-2");
    let differ = place.send("POST", "/v1/tasks", headers, in_body.to_string().as_bytes()).await;
    assert_eq!((differ.status, &differ.json()["code"]), (400, &json!("bad_parameter")));
    let mut other = task();
    other["spec"]["input"]["message"] = json!("something else");
    let conflict = place.send("POST", "/v1/tasks", headers, other.to_string().as_bytes()).await;
    assert_eq!((conflict.status, &conflict.json()["code"]), (409, &json!("conflict")));
    let long = format!("content-type: application/json\r\nidempotency-key: {}\r\n", "k".repeat(257));
    assert_eq!(place.send("POST", "/v1/tasks", &long, body.as_bytes()).await.status, 400);
}

#[tokio::test]
async fn a_task_that_is_done_says_what_came_of_it() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let mut worker = Worker::new(&place).await;
    let mut held = worker.claim().await;
    assert_eq!(place.get(&format!("/v1/tasks/{name}")).await.json()["status"]["phase"], "Running");
    worker.step(&mut held).await;
    let so_far = json!({"input_tokens": 3, "output_tokens": 4, "estimated": false});
    let working = place.get(&format!("/v1/tasks/{name}")).await.json();
    assert_eq!((&working["status"]["phase"], &working["status"]["usage"]), (&json!("Running"), &so_far));
    assert_eq!(place.get("/v1/tasks?state=running").await.json()["items"][0]["status"]["usage"], so_far);
    worker.finish(held, "hello").await;
    let status = place.get(&format!("/v1/tasks/{name}")).await.json()["status"].clone();
    assert_eq!((&status["phase"], &status["output"]["last_output"]), (&json!("Succeeded"), &json!("hello")));
    assert_eq!(status["usage"], json!({"input_tokens": 6, "output_tokens": 8, "estimated": false}));
    assert!(status["startedAt"].is_string() && status["completedAt"].is_string(), "{status}");

    let steps = place.get(&format!("/v1/tasks/{name}/steps")).await.json();
    let states: Vec<_> =
        steps["items"].as_array().unwrap().iter().map(|step| &step["state"]["state"]).collect();
    assert_eq!(states, ["done", "done"]);
    let logs = place.get(&format!("/v1/tasks/{name}/logs")).await.json();
    let last = status["lastEvent"].as_u64().unwrap() as usize;
    let lines = logs["logs"].as_array().unwrap();
    assert_eq!((&logs["name"], lines.len()), (&json!(name), last));
    assert!(lines[2].as_str().unwrap().contains(" step 0 model mock ok 5ms"), "{logs}");
    assert!(lines[last - 1].as_str().unwrap().ends_with(" task succeeded 14 tokens"), "{logs}");

    let cancelled = place.send("POST", &format!("/v1/tasks/{name}/cancel"), "", b"").await;
    assert_eq!((cancelled.status, &cancelled.json()["code"]), (409, &json!("task_ended")));
}

#[tokio::test]
async fn cancel_retry_archive() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let path = format!("/v1/tasks/{name}");
    for verb in ["retry", "archive"] {
        let early = place.send("POST", &format!("{path}/{verb}"), "", b"").await;
        assert_eq!((early.status, &early.json()["code"]), (409, &json!("task_not_ended")), "{verb}");
    }
    let cancelled = place.post(&format!("{path}/cancel"), &json!({"reason": "not needed"})).await;
    assert_eq!(cancelled.status, 200);
    let status = cancelled.json()["status"].clone();
    assert_eq!((&status["phase"], &status["state"]), (&json!("Failed"), &json!("cancelled")));
    assert!(status["lastError"].as_str().unwrap().ends_with("not needed"), "{status}");
    assert_eq!(
        (&status["error"]["class"], &status["error"]["message"]),
        (&json!("cancelled"), &json!("not needed"))
    );
    let again = place.post(&format!("{path}/cancel"), &json!({"reason": "again"})).await;
    assert_eq!((again.status, &again.json()["status"]), (200, &status), "who asks again learns the same");

    let retried = place.send("POST", &format!("{path}/retry"), "", b"").await;
    assert_eq!(retried.status, 201);
    let labels = &retried.json()["metadata"]["labels"];
    assert_eq!(labels["ostler.dev/source-task"], name.as_str());

    assert_eq!(names(&place.get("/v1/tasks").await.json()).len(), 2);
    let archived = place.send("POST", &format!("{path}/archive"), "", b"").await;
    assert_eq!(archived.status, 200);
    assert!(archived.json()["status"]["archivedAt"].is_string());
    assert_eq!(names(&place.get("/v1/tasks").await.json()).len(), 1);
    assert_eq!(names(&place.get("/v1/tasks?archived=true").await.json()).len(), 2);
    assert_eq!(place.get(&path).await.status, 200, "by name it stays readable");
}

#[tokio::test]
async fn lists_show_the_newest_first_by_page() {
    let place = Place::with_agent().await;
    for name in ["a", "b", "c"] {
        assert_eq!(place.post("/v1/tasks", &named(name)).await.status, 201);
    }
    place.send("POST", "/v1/tasks/b/cancel", "", b"").await;
    let first = place.get("/v1/tasks?limit=2").await.json();
    assert_eq!(names(&first), ["c", "b"]);
    let next = first["continue"].as_str().unwrap();
    let last = place.get(&format!("/v1/tasks?limit=2&before={next}")).await.json();
    assert_eq!((names(&last), last.get("continue")), (vec!["a".to_owned()], None));
    let passed_over = place.get("/v1/tasks?limit=1&offset=1").await.json();
    assert_eq!((names(&passed_over), passed_over.get("continue").is_some()), (vec!["b".to_owned()], true));
    assert_eq!(names(&place.get("/v1/tasks?offset=3").await.json()), Vec::<String>::new());
    assert_eq!(place.get("/v1/tasks?offset=10001").await.status, 400);
    assert_eq!(names(&place.get("/v1/tasks?state=queued").await.json()), ["c", "a"]);
    assert_eq!(names(&place.get("/v1/tasks?state=running,cancelled").await.json()), ["b"]);
    assert_eq!(names(&place.get("/v1/tasks?namespace=other").await.json()), Vec::<String>::new());
    assert_eq!(names(&place.get("/v1/tasks?namespace=*").await.json()).len(), 3);
}

#[tokio::test]
async fn the_namespace_in_the_address_is_the_tasks() {
    let place = Place::with_agent().await;
    for (plural, mut manifest) in
        [("model-endpoints", super::support::model("mock")), ("agents", super::support::agent("helper"))]
    {
        manifest["metadata"]["namespace"] = json!("team");
        assert_eq!(place.post(&format!("/v1/{plural}"), &manifest).await.status, 201);
    }
    let created = place.post("/v1/tasks?namespace=team", &named("t")).await;
    assert_eq!((created.status, &created.json()["metadata"]["namespace"]), (201, &json!("team")));
    let uid = created.json()["metadata"]["uid"].as_str().unwrap().to_owned();
    assert_eq!(place.get(&format!("/v1/tasks/{uid}")).await.status, 404, "it is not in this namespace");
    assert_eq!(place.get(&format!("/v1/tasks/{uid}?namespace=team")).await.status, 200);
    let mut elsewhere = named("t");
    elsewhere["metadata"]["namespace"] = json!("default");
    assert_eq!(place.post("/v1/tasks?namespace=team", &elsewhere).await.status, 400);
}

#[tokio::test]
async fn many_requests_on_one_connection() {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };
    let place = Place::with_agent().await;
    let mut stream = TcpStream::connect(place.address()).await.unwrap();
    let body = task().to_string();
    let head = place.head("POST", "/v1/tasks").replace("connection: close\r\n", "");
    let request =
        format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for _ in 0..50 {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = vec![0; 4096];
        let read = stream.read(&mut bytes).await.unwrap();
        let answer = String::from_utf8_lossy(&bytes[..read]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    }
    assert_eq!(names(&place.get("/v1/tasks?limit=1000").await.json()).len(), 50);
}

#[tokio::test]
async fn what_a_task_asks_of_its_worker_is_shown_and_asked_for_again() {
    let place = Place::with_agent().await;
    let mut picky = named("picky");
    picky["spec"]["requirements"] = json!({"region": "eu", "gpu": true});
    picky["spec"]["deadline"] = json!("10m");
    assert_eq!(place.post("/v1/tasks", &picky).await.status, 201);
    let spec = place.get("/v1/tasks/picky").await.json()["spec"].clone();
    assert_eq!(spec["requirements"], json!({"region": "eu", "gpu": true}));
    assert!(spec["deadline"].as_str().unwrap().starts_with("10m"), "{spec}");
    place.send("POST", "/v1/tasks/picky/cancel", "", b"").await;
    let rerun = json!({"metadata": {"name": "picky"}});
    for again in [
        place.post("/v1/tasks/picky/retry", &json!({})).await,
        place.post("/v1/tasks?rerun=true", &rerun).await,
    ] {
        let name = again.json()["metadata"]["name"].as_str().unwrap().to_owned();
        let view = place.get(&format!("/v1/tasks/{name}")).await.json();
        assert_eq!(view["spec"]["requirements"], spec["requirements"], "{name}");
    }
    let template = json!({"overrides": {"mode": "template"}});
    assert_eq!(place.post("/v1/tasks/picky/retry", &template).await.status, 400);
}

/// Another system's command line knows no other way to cancel.
#[tokio::test]
async fn the_phase_failed_cancels_a_task_and_no_other_status_is_taken() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let path = format!("/v1/tasks/{name}/status");
    let task = place.get(&format!("/v1/tasks/{name}")).await.json();
    for phase in ["Succeeded", "Pending", "failed"] {
        let refused = place.put(&path, "", &json!({"status": {"phase": phase}})).await;
        check(&refused, 422, "not_available", "follows from its runs");
    }
    let mut failed = json!({"metadata": task["metadata"], "status": task["status"]});
    failed["status"]["phase"] = json!("Failed");
    failed["status"]["lastError"] = json!("no longer wanted");
    failed["metadata"]["resourceVersion"] = json!("999");
    check(&place.put(&path, "", &failed).await, 409, "conflict", "999");
    failed["metadata"]["resourceVersion"] = task["metadata"]["resourceVersion"].clone();
    let writer = place.token("w", "writer", &["*"]).await;
    check(&place.send_as(&writer, "PUT", &path, Some(&failed)).await, 403, "forbidden", "controller");
    let controller = place.token("c", "controller", &["*"]).await;
    let cancelled = place.send_as(&controller, "PUT", &path, Some(&failed)).await;
    let status = cancelled.json()["status"].clone();
    assert_eq!(
        (cancelled.status, &status["phase"], &status["state"]),
        (200, &json!("Failed"), &json!("cancelled"))
    );
    assert!(status["lastError"].as_str().unwrap().contains("no longer wanted"), "{status}");
    let again = place.put(&path, "", &json!({"status": {"phase": "Failed"}})).await;
    assert_eq!(again.status, 200, "as often as it is said: {again:?}");
}
