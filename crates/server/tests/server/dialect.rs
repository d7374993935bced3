//! A client that says it is an SDK of Orloj is answered as that SDK reads; nobody else is.

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, agent, bearer, sse::Listener, task},
};

const SDK: &str = "user-agent: orloj-js-sdk/0.2.0\r\n";
const PYTHON: &str = "user-agent: orloj-sdk-python/0.2.0\r\n";

/// Those who are not it, however near their names come.
const OTHERS: [&str; 4] = [
    "",
    "user-agent: ostler/0.1.0\r\n",
    "user-agent: my-orloj-js-sdk/1 orloj-js-sdk/0.2.0\r\n",
    "user-agent: orloj-sdk-pythonic/1\r\n",
];

async fn list(place: &Place, path: &str, client: &str) -> Value {
    let reply = place.send("GET", path, client, b"").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[tokio::test]
async fn lists_are_bare_arrays_for_the_sdk_alone() {
    let place = Place::new().await;
    for number in 0..101 {
        place.token(&format!("t{number:03}"), "reader", &["*"]).await;
    }
    let user = json!({"name": "ada", "password": "correct horse battery", "role": "reader"});
    assert_eq!(place.post("/v1/auth/users", &user).await.status, 201);
    place.post("/v1/agents", &agent("a")).await;
    for client in [SDK, PYTHON] {
        let tokens = list(&place, "/v1/tokens", client).await;
        assert_eq!(tokens.as_array().unwrap().len(), 101, "a bare array can't say that there are more");
        assert_eq!((&tokens[0]["name"], &tokens[0]["role"]), (&json!("t000"), &json!("reader")));
        assert_eq!(list(&place, "/v1/auth/users", client).await[0]["name"], "ada");
        assert_eq!(list(&place, "/v1/namespaces", client).await, json!(["default"]));
    }
    for client in OTHERS {
        let tokens = list(&place, "/v1/tokens", client).await;
        assert_eq!(tokens["metadata"]["continue"], tokens["continue"], "where Orloj's clients look for it");
        assert_eq!((tokens["items"].as_array().unwrap().len(), &tokens["continue"]), (100, &json!("t099")));
        assert_eq!(list(&place, "/v1/auth/users", client).await["items"][0]["name"], "ada");
        assert_eq!(list(&place, "/v1/namespaces", client).await, json!({"namespaces": ["default"]}));
    }
}

#[tokio::test]
async fn lines_of_a_log_are_objects_for_the_python_sdk_alone() {
    let place = Place::with_agent().await;
    let task = place.task().await;
    for path in [format!("/v1/tasks/{task}/logs"), "/v1/agents/helper/logs".to_owned()] {
        let told = list(&place, &path, PYTHON).await;
        let line = &told["logs"][0];
        let (at, what) = (line["timestamp"].as_str().unwrap(), line["message"].as_str().unwrap());
        assert!(what.contains("task accepted"), "{told}");
        for client in OTHERS.into_iter().chain([SDK]) {
            assert_eq!(list(&place, &path, client).await["logs"][0], json!(format!("{at} {what}")));
        }
    }
}

#[tokio::test]
async fn a_retry_of_the_python_sdk_sends_what_is_otherwise_bare() {
    let place = Place::with_agent().await;
    let task = place.task().await;
    let path = format!("/v1/tasks/{task}");
    assert_eq!(place.send("POST", &format!("{path}/cancel"), "", b"").await.status, 200);
    let retry = async |client: &str, body: &[u8]| {
        let headers = format!("{client}content-type: application/json\r\n");
        place.send("POST", &format!("{path}/retry"), &headers, body).await
    };
    let bare = br#"{"topic":"x","overrides":"y"}"#;
    let made = retry(PYTHON, bare).await;
    assert_eq!(made.status, 201, "{made:?}");
    let input = &made.json()["spec"]["input"];
    assert_eq!((&input["topic"], &input["overrides"]), (&json!("x"), &json!("y")), "{input}");
    let named = retry(PYTHON, br#"{"overrides":{"topic":"z"}}"#).await;
    assert_eq!((named.status, &named.json()["spec"]["input"]["topic"]), (201, &json!("z")), "{named:?}");
    for nothing in [&b""[..], b"{}"] {
        assert_eq!(retry(PYTHON, nothing).await.status, 201);
    }
    check(&retry(PYTHON, b"[]").await, 400, "invalid_manifest", "object");
    for client in OTHERS.into_iter().chain([SDK]) {
        check(&retry(client, br#"{"topic":"x"}"#).await, 400, "invalid_manifest", "only overrides is known");
    }
}

#[tokio::test]
async fn events_are_called_what_the_sdk_listens_to() {
    let place = Place::new().await;
    place.post("/v1/agents", &agent("a")).await;
    let credential = bearer(place.server.token());
    let path = "/v1/events/watch?since=0";
    for (client, name) in [(SDK, "resource"), (PYTHON, "event"), ("", "event")] {
        let mut watch = Listener::at_as(&place, &credential, path, client).await;
        let message = loop {
            let message = watch.next().await.unwrap();
            if message.event != "comment" {
                break message;
            }
        };
        assert_eq!((message.event.as_str(), &message.data["type"]), (name, &json!("resource.created")));
        assert_eq!((&message.data["kind"], &message.data["name"]), (&json!("Agent"), &json!("a")));
    }
}

#[tokio::test]
async fn who_would_declare_a_worker_is_told_what_to_do_instead() {
    let place = Place::new().await;
    let worker = json!({"kind": "Worker", "metadata": {"name": "w"}, "spec": {}});
    let refused = [
        (place.post("/v1/workers", &worker).await, "GET,HEAD"),
        (place.put("/v1/workers/w", "if-match: *\r\n", &worker).await, "GET,HEAD"),
        (place.delete("/v1/workers/w").await, "GET,HEAD"),
    ];
    for (reply, allowed) in refused {
        let document = check(&reply, 405, "method_not_allowed", "registers itself");
        let remedy = document["remedy"].as_str().unwrap();
        assert!(remedy.contains("/cordon or /drain") && remedy.contains("ostler worker"), "{remedy}");
        assert_eq!(reply.header("allow"), Some(allowed));
    }
    let other = place.send("DELETE", "/v1/workers/w/cordon", "", b"").await;
    check(&other, 405, "method_not_allowed", "does not take DELETE");
    assert!(!String::from_utf8_lossy(&other.body).contains("registers itself"));
}

#[tokio::test]
async fn a_list_goes_on_behind_a_name() {
    let place = Place::with_agent().await;
    for name in ["a", "b", "c"] {
        place.post("/v1/agents", &agent(name)).await;
        let mut named = task();
        named["metadata"] = json!({"name": format!("task-{name}")});
        assert_eq!(place.post("/v1/tasks", &named).await.status, 201);
    }
    let names = async |path: &str| -> Vec<String> {
        let page = list(&place, path, "").await;
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("/v1/agents?limit=2&after=a").await, ["b", "c"]);
    assert_eq!(names("/v1/agents?after=bb").await, ["c", "helper"], "it need not be there any more");
    assert_eq!(names("/v1/tasks?limit=1&after=task-c").await, ["task-b"], "the newest come first");
    assert_eq!(names("/v1/tasks?sort=name&after=task-a").await, ["task-b", "task-c"]);
    assert_eq!(names("/v1/tasks?limit=1&after=default/task-c").await, ["task-b"]);
    assert_eq!(names("/v1/tasks?limit=1&namespace=*&after=default/task-c").await, ["task-b"]);
    assert_eq!(names("/v1/tasks?sort=name&namespace=*&before=default/task-a").await, ["task-b", "task-c"]);
    for name in ["after", "before"] {
        let refused = place.get(&format!("/v1/tasks?{name}=default/none")).await;
        check(&refused, 400, "bad_parameter", &format!("{name}: expected"));
    }
    let elsewhere = place.token("elsewhere", "reader", &["other"]).await;
    let prying =
        place.send_as(&elsewhere, "GET", "/v1/tasks?namespace=other&after=default/task-c", None).await;
    check(&prying, 403, "forbidden", "default");
    assert_eq!(names("/v1/agents?namespace=&limit=1").await, ["a"], "an empty namespace is none");
    for path in ["/v1/agents?namespace=*&after=a", "/v1/tasks?namespace=*&after=task-a", "/v1/tasks?after=no"]
    {
        check(&place.get(path).await, 400, "bad_parameter", "");
    }
}

#[tokio::test]
async fn a_status_is_looked_for_beside_itself_by_the_javascript_sdk_alone() {
    let place = Place::with_agent().await;
    let task = place.task().await;
    for path in ["/v1/agents/helper/status".to_owned(), format!("/v1/tasks/{task}/status")] {
        let told = list(&place, &path, SDK).await;
        assert_eq!((&told["phase"], told["phase"].is_string()), (&told["status"]["phase"], true), "{told}");
        assert_eq!(list(&place, &path, "").await.get("phase"), None);
    }
}
