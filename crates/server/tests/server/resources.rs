//! Declared objects over HTTP: put in place, read, listed by page, deleted.

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, agent, model, task},
};

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_object_is_stored_and_read_back() {
    let place = Place::new().await;
    let stored = place.post("/v1/model-endpoints", &model("m")).await;
    assert_eq!(stored.status, 201);
    let stored = stored.json();
    assert_eq!(stored["metadata"]["resourceVersion"], "1");
    assert_eq!(stored["metadata"]["namespace"], "default");
    let read = place.get("/v1/model-endpoints/m").await;
    assert_eq!((read.status, read.json()), (200, stored));
    assert_eq!(read.header("content-type"), Some("application/json"));
    assert_eq!(place.delete("/v1/model-endpoints/m").await.status, 204);
    assert_eq!(place.get("/v1/model-endpoints/m").await.status, 404);
    assert_eq!(place.delete("/v1/model-endpoints/m").await.status, 404);
}

#[tokio::test]
async fn yaml_is_read_too() {
    let place = Place::new().await;
    let text = "# who helps\nkind: Agent\nmetadata: {name: yams}\nspec:\n  model_ref: mock\n  prompt: |\n    Help.\n";
    for kind in ["application/yaml", "text/yaml", "application/x-yaml; charset=utf-8"] {
        let reply =
            place.send("POST", "/v1/agents", &format!("content-type: {kind}\r\n"), text.as_bytes()).await;
        assert_eq!(reply.status, 201, "{reply:?}");
    }
    let read = place.get("/v1/agents/yams").await.json();
    assert_eq!(read["spec"]["prompt"], "Help.\n");
    assert_eq!(read["metadata"]["resourceVersion"], "1", "the same again writes nothing");
    assert_eq!(read["metadata"]["generation"], 1, "the same spec again is no new generation");
}

#[tokio::test]
async fn who_changes_an_older_version_is_told() {
    let place = Place::new().await;
    let first = place.post("/v1/agents", &agent("a")).await.json();
    let mut second = first.clone();
    second["spec"]["prompt"] = json!("Help more.");
    assert_eq!(place.post("/v1/agents", &second).await.status, 201);
    let stale = place.post("/v1/agents", &first).await;
    assert_eq!(stale.status, 409);
    let problem = stale.json();
    assert_eq!(problem["code"], "conflict");
    assert!(problem["detail"].as_str().unwrap().contains("is at version 2, not 1"), "{problem}");
}

#[tokio::test]
async fn lists_go_on_where_the_page_ended() {
    let place = Place::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(place.post("/v1/agents", &agent(name)).await.status, 201);
    }
    let mut elsewhere = agent("z");
    elsewhere["metadata"]["namespace"] = json!("other");
    assert_eq!(place.post("/v1/agents", &elsewhere).await.status, 201);

    let first = place.get("/v1/agents?limit=2").await.json();
    assert_eq!((names(&first), &first["continue"]), (vec!["a", "b"], &json!("default/b")));
    let second = place.get("/v1/agents?limit=2&after=default/b").await.json();
    assert_eq!(names(&second), ["c", "d"]);
    let last = place.get("/v1/agents?limit=2&after=default%2Fd").await.json();
    assert_eq!((names(&last), last.get("continue")), (vec!["e"], None));
    let whole = place.get("/v1/agents?limit=5").await.json();
    assert_eq!((names(&whole).len(), whole.get("continue")), (5, None));
    assert_eq!(names(&place.get("/v1/agents?namespace=other").await.json()), ["z"]);
    assert_eq!(names(&place.get("/v1/agents?namespace=*&limit=5").await.json()), ["a", "b", "c", "d", "e"]);
    assert_eq!(names(&place.get("/v1/agents?namespace=*&after=default/e").await.json()), ["z"]);
    assert_eq!(names(&place.get("/v1/tools").await.json()), Vec::<&str>::new());
}

#[tokio::test]
async fn the_namespace_in_the_address_counts_if_the_body_names_none() {
    let place = Place::new().await;
    assert_eq!(
        place.post("/v1/agents?namespace=team", &agent("a")).await.json()["metadata"]["namespace"],
        "team"
    );
    assert_eq!(place.get("/v1/agents/a?namespace=team").await.status, 200);
    assert_eq!(place.get("/v1/agents/a").await.status, 404);
    let yaml = b"kind: Agent\nmetadata: {name: y}\nspec: {model_ref: mock}\n";
    let reply = place.send("POST", "/v1/agents?namespace=team", "content-type: text/yaml\r\n", yaml).await;
    assert_eq!(reply.json()["metadata"]["namespace"], "team");
    for written in ["default", "other"] {
        let mut body = agent("a");
        body["metadata"]["namespace"] = json!(written);
        let reply = place.post("/v1/agents?namespace=team", &body).await;
        assert_eq!((reply.status, &reply.json()["code"]), (400, &json!("bad_parameter")), "{written}");
        assert_eq!(place.post(&format!("/v1/agents?namespace={written}"), &body).await.status, 201);
    }
}

#[tokio::test]
async fn who_applies_to_another_version_is_refused() {
    let place = Place::new().await;
    assert_eq!(place.post("/v1/agents", &agent("helper")).await.status, 201);
    let other = agent("helper").to_string().replace("Help.", "Help more.");
    let headers = |version: &str| format!("content-type: application/json\r\nif-match: {version}\r\n");
    let stale = place.send("POST", "/v1/agents", &headers("7"), other.as_bytes()).await;
    assert_eq!((stale.status, &stale.json()["code"]), (409, &json!("conflict")), "{stale:?}");
    let fresh = place.send("POST", "/v1/agents", &headers("\"1\""), other.as_bytes()).await;
    assert_eq!((fresh.status, &fresh.json()["metadata"]["resourceVersion"]), (201, &json!("2")));
}

#[tokio::test]
async fn a_kind_that_is_not_said_is_the_one_that_the_address_names() {
    let place = Place::new().await;
    let kindless = |mut body: Value, kind: Value| {
        match kind {
            Value::Null => drop(body.as_object_mut().unwrap().remove("kind")),
            kind => body["kind"] = kind,
        }
        body
    };
    let made = place.post("/v1/agents?namespace=team", &kindless(agent("a"), Value::Null)).await;
    assert_eq!((made.status, &made.json()["kind"]), (201, &json!("Agent")), "{made:?}");
    assert_eq!(made.json()["metadata"]["namespace"], "team");
    let mut elsewhere = kindless(agent("a"), Value::Null);
    elsewhere["metadata"]["namespace"] = json!("other");
    check(&place.post("/v1/agents?namespace=team", &elsewhere).await, 400, "bad_parameter", "team");
    let limited = place.token("limited", "writer", &["team"]).await;
    let refused = place.send_as(&limited, "POST", "/v1/agents?namespace=team", Some(&elsewhere)).await;
    check(&refused, 400, "bad_parameter", "other");
    let refused = place.send_as(&limited, "POST", "/v1/agents", Some(&elsewhere)).await;
    check(&refused, 403, "forbidden", "other");

    place.apply_agent().await;
    let put = place.put("/v1/agents/helper", "if-match: *\r\n", &kindless(agent("helper"), json!(""))).await;
    assert_eq!(put.status, 200, "{put:?}");
    let yaml = b"metadata: {name: yams}\nspec: {model_ref: mock}\n";
    let reply = place.send("POST", "/v1/agents", "content-type: text/yaml\r\n", yaml).await;
    assert_eq!((reply.status, &reply.json()["kind"]), (201, &json!("Agent")), "{reply:?}");
    for (content_type, path) in [("application/json", "/v1/tasks"), ("text/yaml", "/v1/tasks?rerun=true")] {
        let mut body = kindless(task(), Value::Null);
        body["metadata"] = json!({"name": format!("t-{}", path.len())});
        let headers = format!("content-type: {content_type}\r\n");
        let reply = place.send("POST", path, &headers, body.to_string().as_bytes()).await;
        assert_eq!(reply.status, 201, "{reply:?}");
    }
    let template = json!({"metadata": {"name": "often"}, "spec": {"agent": "helper", "mode": "template"}});
    let made = place.post("/v1/tasks", &template).await;
    assert_eq!((made.status, &made.json()["kind"]), (201, &json!("Task")), "{made:?}");

    check(&place.post("/v1/agents", &kindless(agent("a"), json!("Tool"))).await, 400, "invalid_manifest", "");
    check(&place.post("/v1/agents", &json!({})).await, 400, "invalid_manifest", "2 problems");
    let mistaken =
        place.post("/v1/agents", &json!({"metadata": {"name": "a"}, "spec": {"promt": "x"}})).await;
    check(&mistaken, 400, "invalid_manifest", "promt");
}
