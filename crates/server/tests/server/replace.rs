//! Changes that say which version they are made to: PUT, If-Match, rename, status, dry run.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, agent, model},
};

fn prompting(name: &str, prompt: &str) -> Value {
    let mut agent = agent(name);
    agent["spec"]["prompt"] = json!(prompt);
    agent
}

#[tokio::test]
async fn a_put_says_what_it_replaces() {
    let place = Place::new().await;
    check(&place.put("/v1/agents/a", "if-match: 1\r\n", &agent("a")).await, 404, "not_found", "\"a\"");
    place.post("/v1/agents", &agent("a")).await;
    check(&place.put("/v1/agents/a", "", &prompting("a", "x")).await, 409, "conflict", "which version");
    for (header, version) in [("1", "2"), ("\"2\"", "3"), ("W/\"3\"", "4"), ("*", "5")] {
        let body = prompting("a", &format!("Help {version}."));
        let reply = place.put("/v1/agents/a", &format!("if-match: {header}\r\n"), &body).await;
        assert_eq!((reply.status, &reply.json()["metadata"]["resourceVersion"]), (200, &json!(version)));
        assert_eq!(reply.json()["spec"]["prompt"], format!("Help {version}."));
    }
    let stale = place.put("/v1/agents/a", "if-match: 4\r\n", &agent("a")).await;
    check(&stale, 409, "conflict", "is at version 5, not 4");
    let mut body = prompting("a", "In the body.");
    body["metadata"]["resourceVersion"] = json!("5");
    assert_eq!(place.put("/v1/agents/a", "", &body).await.status, 200);
    check(&place.put("/v1/agents/a", "", &body).await, 409, "conflict", "is at version 6, not 5");
    let reply = place.put("/v1/agents/a", "if-match: 6\r\n", &json!({"kind": "Tool"})).await;
    check(&reply, 400, "invalid_manifest", "");
    let other = place.put("/v1/agents/a?namespace=x", "if-match: 6\r\n", &agent("a")).await;
    check(&other, 404, "not_found", "\"a\"");
    assert_eq!(place.get("/v1/agents/a").await.json()["metadata"]["generation"], 6);
}

#[tokio::test]
async fn another_name_in_the_body_renames() {
    let place = Place::new().await;
    for name in ["a", "taken"] {
        place.post("/v1/agents", &agent(name)).await;
    }
    let before = place.get("/v1/agents/a").await.json();
    let taken = place.put("/v1/agents/a", "if-match: 1\r\n", &agent("taken")).await;
    check(&taken, 409, "conflict", "there is a Agent \"taken\" already");
    assert_eq!(place.get("/v1/agents/a").await.json(), before);
    let renamed = place.put("/v1/agents/a", "if-match: 1\r\n", &agent("b")).await;
    assert_eq!((renamed.status, &renamed.json()["metadata"]["name"]), (200, &json!("b")));
    assert_eq!(renamed.json()["metadata"]["createdAt"], before["metadata"]["createdAt"]);
    assert_eq!(place.get("/v1/agents/a").await.status, 404);
    assert_eq!(place.get("/v1/agents/b").await.json(), renamed.json());
    assert_eq!(renamed.json()["metadata"]["resourceVersion"], "2");
    let again = place.put("/v1/agents/b", "if-match: 2\r\n", &agent("c")).await;
    assert_eq!((again.status, &again.json()["metadata"]["resourceVersion"]), (200, &json!("3")));
    let back = place.put("/v1/agents/c", "if-match: 3\r\n", &agent("a")).await;
    assert_eq!(back.json()["metadata"]["resourceVersion"], "4", "not one that `a` had before");
}

#[tokio::test]
async fn a_delete_may_name_the_version_it_means() {
    let place = Place::new().await;
    place.post("/v1/agents", &agent("a")).await;
    let stale = place.send("DELETE", "/v1/agents/a", "if-match: 7\r\n", b"").await;
    check(&stale, 409, "conflict", "is at version 1, not 7");
    assert_eq!(place.send("DELETE", "/v1/agents/a", "if-match: \"1\"\r\n", b"").await.status, 204);
    let server = json!({"kind": "McpServer", "metadata": {"name": "m"}, "spec": {"transport": "http", "endpoint": "http://localhost:1/"}});
    assert_eq!(place.post("/v1/mcp-servers", &server).await.status, 201);
    let deleted = place.delete("/v1/mcp-servers/m").await;
    assert_eq!((deleted.status, deleted.json()), (200, json!({"deleted": "m"})));
}

#[tokio::test]
async fn a_dry_run_checks_everything_and_writes_nothing() {
    let place = Place::with_agent().await;
    for spelling in ["dry_run", "dryRun"] {
        let reply = place.post(&format!("/v1/agents?{spelling}=true"), &agent("new")).await;
        assert_eq!((reply.status, &reply.json()["metadata"]["resourceVersion"]), (201, &json!("1")));
        assert_eq!(place.get("/v1/agents/new").await.status, 404);
        let path = format!("/v1/agents/helper?{spelling}=true");
        let reply = place.put(&path, "if-match: 1\r\n", &prompting("helper", "Other.")).await;
        assert_eq!((reply.status, &reply.json()["metadata"]["resourceVersion"]), (200, &json!("2")));
        assert_eq!(place.get("/v1/agents/helper").await.json()["spec"]["prompt"], "Help.");
        let reply = place.put(&path, "if-match: 3\r\n", &prompting("helper", "Other.")).await;
        check(&reply, 409, "conflict", "not 3");
        let task = place.post(&format!("/v1/tasks?{spelling}=true"), &super::support::task()).await;
        assert_eq!((task.status, &task.json()["status"]["state"]), (201, &json!("queued")));
        let mut unknown = super::support::task();
        unknown["spec"]["agent"] = json!("nobody");
        check(&place.post(&format!("/v1/tasks?{spelling}=true"), &unknown).await, 404, "not_found", "nobody");
    }
    assert_eq!(place.get("/v1/tasks").await.json()["items"], json!([]));
    check(&place.post("/v1/agents?dry_run=yes", &agent("x")).await, 400, "bad_parameter", "true or false");
    let both = place.post("/v1/agents?dry_run=true&dryRun=true", &agent("x")).await;
    check(&both, 400, "bad_parameter", "two names");
}

#[tokio::test]
async fn a_status_is_kept_until_the_spec_changes() {
    let place = Place::new().await;
    place.post("/v1/model-endpoints", &model("m")).await;
    let path = "/v1/model-endpoints/m/status";
    let first = place.get(path).await.json();
    assert_eq!((&first["status"]["phase"], &first["metadata"]["name"]), (&json!("Ready"), &json!("m")));
    let report =
        json!({"metadata": {"resourceVersion": "1"}, "status": {"phase": "Error", "lastError": "down"}});
    assert_eq!(place.put(path, "", &report).await.status, 200);
    check(&place.put(path, "", &report).await, 409, "conflict", "is at version 2, not 1");
    check(&place.put(path, "", &json!({"status": {}})).await, 409, "conflict", "which version");
    check(&place.put(path, "if-match: 2\r\n", &json!({})).await, 400, "invalid_manifest", "status");
    check(
        &place.put(path, "if-match: 2\r\n", &json!({"status": 3})).await,
        400,
        "invalid_manifest",
        "object",
    );
    check(&place.put(path, "if-match: 2\r\n", &json!([])).await, 400, "invalid_manifest", "object");
    let nobody = place.put("/v1/model-endpoints/x/status", "if-match: 1\r\n", &report).await;
    check(&nobody, 404, "not_found", "\"x\"");
    // The same spec again, with a status that is not a manifest's to say.
    let mut again = model("m");
    again["status"] = json!({"phase": "Ready"});
    place.post("/v1/model-endpoints", &again).await;
    assert_eq!(place.get(path).await.json()["status"]["lastError"], "down");
    again["spec"]["default_model"] = json!("another");
    place.post("/v1/model-endpoints", &again).await;
    let status = place.get(path).await.json()["status"].clone();
    assert_eq!((&status["phase"], status.get("lastError")), (&json!("Ready"), None));
    assert_eq!(place.get("/v1/agent-roles/x/status").await.status, 404, "of a role nothing is found out");
}

#[tokio::test]
async fn a_status_does_not_hide_that_something_is_not_built() {
    let place = Place::new().await;
    let hook = json!({"kind": "TaskWebhook", "metadata": {"name": "w"},
        "spec": {"task_ref": "t", "auth": {"secret_ref": "s"}}});
    assert_eq!(place.post("/v1/task-webhooks", &hook).await.status, 201);
    let path = "/v1/task-webhooks/w/status";
    let found = place.get(path).await.json()["status"].clone();
    assert_eq!(found["phase"], "Error", "{found}");
    let said = json!({"status": {"phase": "Ready", "observedGeneration": 0, "seen": "yes"}});
    assert_eq!(place.put(path, "if-match: *\r\n", &said).await.status, 200);
    let status = place.get(path).await.json()["status"].clone();
    let told = status["lastError"].as_str().unwrap();
    assert!(status["phase"] == "Error" && told.contains("not available"), "{status}");
    assert_eq!((&status["observedGeneration"], &status["seen"]), (&json!(1), &json!("yes")));

    place.post("/v1/model-endpoints", &model("m")).await;
    let path = "/v1/model-endpoints/m/status";
    let said = json!({"status": {"phase": "Error", "lastError": "down"}});
    assert_eq!(place.put(path, "if-match: *\r\n", &said).await.status, 200);
    let expected = json!({"phase": "Error", "lastError": "down", "observedGeneration": 1});
    assert_eq!(place.get(path).await.json()["status"], expected, "what works is as they say");
    let said = json!({"status": {"phase": "Ready", "observedGeneration": 7}});
    assert_eq!(place.put(path, "if-match: *\r\n", &said).await.status, 200);
    assert_eq!(place.get(path).await.json()["status"], said["status"]);
}

/// Each round, several replace the same version at the same time: one of them wins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_those_who_race_one_wins() {
    let place = Place::new().await;
    place.post("/v1/agents", &agent("a")).await;
    for round in 1..=50 {
        let put = async |who: u32| {
            let body = prompting("a", &format!("round {round} by {who}"));
            place.put("/v1/agents/a", &format!("if-match: {round}\r\n"), &body).await
        };
        let replies = join_all((0..4).map(&put)).await;
        let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409, 409, 409], "round {round}");
        let winner = replies.iter().find(|reply| reply.status == 200).unwrap().json();
        assert_eq!(place.get("/v1/agents/a").await.json(), winner);
    }
}

#[tokio::test]
async fn what_was_read_elsewhere_is_new_here_and_comes_back_after_a_delete() {
    let place = Place::new().await;
    let mut exported = agent("helper");
    exported["metadata"]["resourceVersion"] = json!("17");
    let checked = place.post("/v1/check", &json!([exported])).await;
    assert_eq!(
        (checked.status, &checked.json()["items"][0]["outcome"]),
        (200, &json!("created")),
        "{checked:?}"
    );
    let created = place.post("/v1/agents", &exported).await;
    assert_eq!((created.status, &created.json()["metadata"]["resourceVersion"]), (201, &json!("1")));
    check(&place.post("/v1/agents", &exported).await, 409, "conflict", "is at version 1, not 17");

    let read = place.get("/v1/agents/helper").await.json();
    assert_eq!(place.delete("/v1/agents/helper").await.status, 204);
    let headers = "content-type: application/json\r\nif-match: 1\r\n";
    let meant = place.send("POST", "/v1/agents", headers, read.to_string().as_bytes()).await;
    check(&meant, 409, "conflict", "is at version 0, not 1");
    let back = place.post("/v1/agents", &read).await;
    assert_eq!((back.status, &back.json()["metadata"]["resourceVersion"]), (201, &json!("2")), "{back:?}");
}

/// Whoever reads a status and sends it back says with it which object it is of.
#[tokio::test]
async fn a_status_is_written_to_the_object_that_its_report_names() {
    let place = Place::new().await;
    for namespace in ["default", "shop"] {
        place.post(&format!("/v1/agents?namespace={namespace}"), &agent("a")).await;
    }
    let any = "if-match: *\r\n";
    let report =
        |metadata: Value| json!({"metadata": metadata, "status": {"phase": "Error", "lastError": "here"}});
    let path = "/v1/agents/a/status";
    let written = place.put(path, any, &report(json!({"name": "a", "namespace": "shop"}))).await;
    assert_eq!(
        (written.status, &written.json()["metadata"]["namespace"]),
        (200, &json!("shop")),
        "{written:?}"
    );
    let last_error = async |namespace: &str| {
        let status = place.get(&format!("{path}?namespace={namespace}")).await.json();
        status["status"]["lastError"].as_str().unwrap_or_default().contains("here")
    };
    assert_eq!((last_error("shop").await, last_error("default").await), (true, false));
    let elsewhere = report(json!({"namespace": "default"}));
    check(
        &place.put(&format!("{path}?namespace=shop"), any, &elsewhere).await,
        400,
        "bad_parameter",
        "namespace",
    );
    check(&place.put(path, any, &report(json!({"name": "b"}))).await, 400, "bad_parameter", "\"b\"");
    let mut tool = report(json!({}));
    tool["kind"] = json!("Tool");
    check(&place.put(path, any, &tool).await, 400, "invalid_manifest", "expected Agent");
    let bare = place.put(path, any, &json!({"phase": "Error", "lastError": "there"})).await;
    assert_eq!((bare.status, &bare.json()["status"]["lastError"]), (200, &json!("there")), "{bare:?}");
    // Of some kinds nobody reports, and yet there is something to read.
    place.post("/v1/agent-roles", &json!({"kind": "AgentRole", "metadata": {"name": "r"}, "spec": {}})).await;
    assert_eq!(place.get("/v1/agent-roles/r/status").await.status, 200);
    check(
        &place.put("/v1/agent-roles/r/status", any, &report(json!({}))).await,
        405,
        "method_not_allowed",
        "",
    );
}
