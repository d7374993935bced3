//! Rules that can't be enforced yet: what they hold for is refused, however many there are and wherever they live.

use serde_json::{Value, json};

use super::support::{Place, agent, model, task};

fn tool(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "ostler.dev/v1", "kind": "Tool", "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": "http", "endpoint": "https://tools.example/call", "description": "Keeps books."},
    })
}

fn permission(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "ostler.dev/v1", "kind": "ToolPermission", "metadata": {"name": name, "namespace": namespace},
        "spec": {"required_permissions": ["books:read"]},
    })
}

async fn apply(place: &Place, plural: &str, resource: &Value) {
    let reply = place.post(&format!("/v1/{plural}"), resource).await;
    assert!(reply.status < 300, "{reply:?}");
}

async fn refused_by(place: &Place, rule: &str) {
    let refused = place.post("/v1/tasks", &task()).await;
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (422, Some("not_available")),
        "{refused:?}"
    );
    let words = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(words.contains(&format!("{rule:?}")), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_keeps_a_tool_rules_over_it_wherever_its_agent_lives() {
    let place = Place::new().await;
    apply(&place, "tools", &tool("shared", "ledger")).await;
    let mut helper = agent("helper");
    helper["spec"]["tools"] = json!(["shared/ledger"]);
    apply(&place, "model-endpoints", &model("mock")).await;
    apply(&place, "agents", &helper).await;
    assert_eq!(place.post("/v1/tasks", &task()).await.status, 201, "no rule holds for it");
    apply(&place, "tool-permissions", &permission("shared", "ledger")).await;
    refused_by(&place, "ledger").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_of_very_many_rules_counts_too() {
    let place = Place::new().await;
    apply(&place, "tools", &tool("default", "zeta")).await;
    let mut helper = agent("helper");
    helper["spec"]["tools"] = json!(["zeta"]);
    apply(&place, "model-endpoints", &model("mock")).await;
    apply(&place, "agents", &helper).await;
    for number in 0..1000 {
        apply(&place, "tool-permissions", &permission("default", &format!("other-{number}"))).await;
    }
    assert_eq!(place.post("/v1/tasks", &task()).await.status, 201, "none of them speaks of it");
    apply(&place, "tool-permissions", &permission("default", "zeta")).await;
    refused_by(&place, "zeta").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_for_everyone_holds_whatever_agents_it_names() {
    let place = Place::new().await;
    apply(&place, "tools", &tool("default", "ledger")).await;
    let mut helper = agent("helper");
    helper["spec"]["tools"] = json!(["ledger"]);
    apply(&place, "agents", &helper).await;
    let mut rule = permission("default", "ledger");
    rule["spec"]["target_agents"] = json!(["somebody-else"]);
    rule["spec"]["apply_mode"] = json!("scoped");
    apply(&place, "tool-permissions", &rule).await;
    assert_eq!(place.post("/v1/tasks", &task()).await.status, 201, "it is for somebody else");
    rule["spec"]["apply_mode"] = json!("global");
    apply(&place, "tool-permissions", &rule).await;
    refused_by(&place, "ledger").await;
}
