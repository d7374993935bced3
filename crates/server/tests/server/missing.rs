//! What a resource names and what is not there: a system of nobody is refused, and anything else says in its status what it
//! lacks, for as long as it lacks it.

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, agent, model},
};

fn system(agents: &[&str]) -> Value {
    json!({"kind": "AgentSystem", "metadata": {"name": "desk"}, "spec": {"agents": agents}})
}

async fn status(place: &Place, path: &str) -> (String, String) {
    let status = place.get(path).await.json()["status"].clone();
    let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    (text("phase"), text("lastError"))
}

fn ready() -> (String, String) {
    ("Ready".to_owned(), String::new())
}

#[tokio::test]
async fn a_system_of_nobody_is_refused() {
    let place = Place::with_agent().await;
    place.post("/v1/agents", &agent("writer")).await;
    let refused = place.post("/v1/agent-systems", &system(&["helper", "writr", "elsewhere/helper"])).await;
    let document = check(&refused, 400, "invalid_manifest", "2 problems");
    let problems = &document["problems"];
    assert_eq!(
        (&problems[0]["path"], &problems[0]["suggestion"]),
        (&json!("/spec/agents/1"), &json!("writer"))
    );
    assert_eq!(problems[1]["message"], "there is no Agent \"helper\" in namespace \"elsewhere\"");
    assert_eq!(place.get("/v1/agent-systems/desk").await.status, 404);

    assert_eq!(place.post("/v1/agent-systems", &system(&["helper", "writer"])).await.status, 201);
    let put = place.put("/v1/agent-systems/desk", "if-match: 1\r\n", &system(&["nobody"])).await;
    check(&put, 400, "invalid_manifest", "nobody");
    assert_eq!(status(&place, "/v1/agent-systems/desk").await, ready());
}

#[tokio::test]
async fn a_dry_run_of_a_system_says_who_is_missing_and_refuses_nothing() {
    let place = Place::new().await;
    let tried = place.post("/v1/agent-systems?dry_run=true", &system(&["helper"])).await;
    assert_eq!((tried.status, &tried.json()["status"]["phase"]), (201, &json!("Error")), "{tried:?}");
    assert_eq!(place.get("/v1/agent-systems/desk").await.status, 404);
}

#[tokio::test]
async fn what_an_agent_lacks_stands_in_its_status_until_it_is_there() {
    let place = Place::new().await;
    let mut lacking = agent("helper");
    lacking["spec"]["model_ref"] = json!("small");
    lacking["spec"]["tools"] = json!(["team/lookup"]);
    let created = place.post("/v1/agents", &lacking).await;
    assert_eq!((created.status, &created.json()["status"]["phase"]), (201, &json!("Error")), "{created:?}");
    let missing = "spec.model_ref: there is no ModelEndpoint \"small\" in namespace \"default\"; \
                   spec.tools[0]: there is no Tool \"lookup\" in namespace \"team\"";
    assert_eq!(status(&place, "/v1/agents/helper").await, ("Error".to_owned(), missing.to_owned()));

    assert_eq!(place.post("/v1/model-endpoints", &model("small")).await.status, 201);
    let tool = json!({"kind": "Tool", "metadata": {"name": "lookup", "namespace": "team"},
        "spec": {"endpoint": "http://127.0.0.1:1/x"}});
    assert_eq!(place.post("/v1/tools", &tool).await.status, 201);
    assert_eq!(status(&place, "/v1/agents/helper").await, ready());
    let listed = place.get("/v1/agents").await.json()["items"][0].clone();
    assert_eq!(
        (&listed["status"]["phase"], &listed["metadata"]["resourceVersion"]),
        (&json!("Ready"), &json!("1"))
    );

    assert_eq!(place.delete("/v1/model-endpoints/small").await.status, 204);
    let listed = place.get("/v1/agents").await.json()["items"][0]["status"]["lastError"].to_string();
    assert!(listed.contains("ModelEndpoint \\\"small\\\"") && !listed.contains("lookup"), "{listed}");
}

#[tokio::test]
async fn a_system_whose_agent_is_gone_says_so() {
    let place = Place::with_agent().await;
    place.post("/v1/agent-systems", &system(&["helper"])).await;
    assert_eq!(place.delete("/v1/agents/helper").await.status, 204);
    let (phase, lacks) = status(&place, "/v1/agent-systems/desk").await;
    assert_eq!(
        (phase.as_str(), lacks.as_str()),
        ("Error", "spec.agents[0]: there is no Agent \"helper\" in namespace \"default\"")
    );
    place.apply_agent().await;
    assert_eq!(status(&place, "/v1/agent-systems/desk").await, ready());
}

#[tokio::test]
async fn only_so_much_of_what_is_missing_is_named() {
    let place = Place::new().await;
    let mut lacking = agent("helper");
    lacking["spec"]["tools"] = (0..40).map(|number| format!("tool-{number}")).collect();
    place.post("/v1/agents", &lacking).await;
    let (_, lacks) = status(&place, "/v1/agents/helper").await;
    assert!(
        lacks.contains("tool-9") && !lacks.contains("tool-10") && lacks.ends_with("; and 30 more"),
        "{lacks}"
    );
}
