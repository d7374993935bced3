//! Objects that are declared together are looked at together: all mistakes at once, and nothing is written.

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, agent, model, worker::Worker},
};

fn task(name: &str, agent: &str) -> Value {
    json!({"kind": "Task", "metadata": {"name": name}, "spec": {"agent": agent, "input": {"message": "hi"}}})
}

fn helper(name: &str, model: &str, tools: &[&str]) -> Value {
    json!({"kind": "Agent", "metadata": {"name": name}, "spec": {"model_ref": model, "prompt": "p", "tools": tools}})
}

fn tool(name: &str) -> Value {
    let spec = json!({"type": "http", "endpoint": "http://127.0.0.1:1/x"});
    json!({"kind": "Tool", "metadata": {"name": name}, "spec": spec})
}

fn outcomes(checked: &Value) -> Vec<&str> {
    checked["items"].as_array().unwrap().iter().map(|item| item["outcome"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_refers_to_one_another_is_fine_in_any_order() {
    let place = Place::new().await;
    let batch = json!([task("t", "a"), helper("a", "m", &["look"]), tool("look"), model("m")]);
    let checked = place.post("/v1/check", &batch).await;
    assert_eq!((checked.status, outcomes(&checked.json())), (200, vec!["created"; 4]), "{checked:?}");
    for path in ["/v1/tasks", "/v1/agents", "/v1/tools", "/v1/model-endpoints"] {
        assert_eq!(place.get(path).await.json()["items"], json!([]), "nothing is written");
    }
    for (path, item) in [
        ("/v1/model-endpoints", model("m")),
        ("/v1/tools", tool("look")),
        ("/v1/agents", helper("a", "m", &["look"])),
        ("/v1/tasks", task("t", "a")),
    ] {
        assert_eq!(place.post(path, &item).await.status, 201);
    }
    let checked = place.post("/v1/check", &batch).await.json();
    assert_eq!(outcomes(&checked), ["unchanged"; 4], "{checked}");
    let changed = json!([helper("a", "mock", &[]), task("t", "a")]);
    assert_eq!(outcomes(&place.post("/v1/check", &changed).await.json()), ["configured", "unchanged"]);
}

#[tokio::test]
async fn all_mistakes_are_told_at_once_with_their_places() {
    let place = Place::new().await;
    place.post("/v1/tools", &tool("search")).await;
    let yaml = "kind: Agent\nmetadata: {name: one}\nspec:\n  model_ref: mock\n  tools:\n  - serch\n---\n\
                kind: Task\nmetadata: {name: t}\nspec: {agent: tow}\n---\n\
                kind: Agent\nmetadata: {name: two}\nspec: {model_ref: nothing}\n";
    let refused =
        place.send("POST", "/v1/check", "content-type: application/yaml\r\n", yaml.as_bytes()).await;
    check(&refused, 400, "invalid_manifest", "3 problems");
    let problems = refused.json()["problems"].clone();
    let told = |number: usize| {
        let problem = &problems[number];
        (problem["item"].as_u64().unwrap(), problem["line"].as_u64(), problem["suggestion"].as_str())
    };
    assert_eq!(told(0), (0, Some(6), Some("search")), "{problems}");
    assert_eq!(told(1), (1, Some(10), Some("two")), "{problems}");
    assert_eq!(told(2), (2, Some(14), None), "{problems}");
    assert_eq!(place.get("/v1/agents").await.json()["items"], json!([]));
}

#[tokio::test]
async fn what_one_may_not_do_or_what_is_there_otherwise_is_refused() {
    let place = Place::with_agent().await;
    let twice = json!([agent("x"), agent("x")]);
    let refused = place.post("/v1/check", &twice).await;
    check(&refused, 400, "invalid_manifest", "already declared");
    assert_eq!(place.post("/v1/tasks", &task("t", "helper")).await.status, 201);
    let mut other = task("t", "helper");
    other["spec"]["input"]["message"] = json!("something else");
    check(&place.post("/v1/check", &json!([other])).await, 400, "invalid_manifest", "\"t\"");
    let writer = place.token("w", "writer", &["team"]).await;
    let elsewhere = place.send_as(&writer, "POST", "/v1/check", Some(&json!([agent("x")]))).await;
    check(&elsewhere, 403, "forbidden", "default");
    let quota =
        json!([{"kind": "Quota", "metadata": {"name": "q", "namespace": "team"}, "spec": {"weight": 2}}]);
    let refused = place.send_as(&writer, "POST", "/v1/check", Some(&quota)).await;
    check(&refused, 403, "forbidden", "admin");
}

fn endpoint(name: &str, aliases: &Value) -> Value {
    let spec = json!({"provider": "mock", "default_model": "large", "aliases": aliases});
    json!({"kind": "ModelEndpoint", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn an_agent_may_name_a_model_by_an_alias_of_its_endpoint() {
    let place = Place::new().await;
    let (main, says_fast) = (endpoint("main", &json!({"fast": "small"})), helper("a", "fast", &[]));
    let batch = json!([task("t", "a"), says_fast, main]);
    let checked = place.post("/v1/check", &batch).await;
    assert_eq!((checked.status, outcomes(&checked.json())), (200, vec!["created"; 3]), "{checked:?}");
    for (path, item) in
        [("/v1/model-endpoints", &main), ("/v1/agents", &says_fast), ("/v1/tasks", &task("t", "a"))]
    {
        assert_eq!(place.post(path, item).await.status, 201);
    }
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    assert_eq!(held.run().model, "small");
    worker.finish(held, "done").await;
    // An endpoint of that name goes before an alias; two of the same alias are one too many.
    assert_eq!(
        place.post("/v1/model-endpoints", &endpoint("other", &json!({"fast": "tiny"}))).await.status,
        201
    );
    let refused = place.post("/v1/check", &json!([helper("b", "fast", &[])])).await;
    let problem = refused.json()["problems"][0].to_string();
    assert!(refused.status == 400 && problem.contains("main") && problem.contains("other"), "{refused:?}");
    assert_eq!(place.post("/v1/model-endpoints", &endpoint("fast", &json!({}))).await.status, 201);
    assert_eq!(place.post("/v1/tasks", &task("u", "a")).await.status, 201);
    assert_eq!(worker.claim().await.run().model, "large");
}
