//! A namespace may be said by the address or by the body, and by both only if they agree. Blank is not said.

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, agent, model, task},
};

fn within(mut resource: Value, namespace: &str) -> Value {
    resource["metadata"]["namespace"] = json!(namespace);
    resource
}

async fn send(place: &Place, path: &str, yaml: &str) -> super::support::Reply {
    place.send("POST", path, "content-type: application/yaml\r\n", yaml.as_bytes()).await
}

#[tokio::test]
async fn a_list_of_one_says_its_namespace_as_well() {
    let place = Place::new().await;
    let one = json!([within(model("m"), "own")]);
    check(&place.post("/v1/model-endpoints?namespace=other", &one).await, 400, "bad_parameter", "own");
    assert_eq!(place.get("/v1/model-endpoints/m?namespace=other").await.status, 404);
    for path in ["/v1/model-endpoints", "/v1/model-endpoints?namespace=own"] {
        let kept = place.post(path, &one).await;
        assert_eq!((kept.status, &kept.json()["metadata"]["namespace"]), (201, &json!("own")), "{path}");
    }
    let kept = place.post("/v1/model-endpoints?namespace=other", &json!([model("m")])).await;
    assert_eq!((kept.status, &kept.json()["metadata"]["namespace"]), (201, &json!("other")));
}

#[tokio::test]
async fn a_blank_namespace_is_not_said() {
    let place = Place::new().await;
    for blank in ["", "  "] {
        let kept = place.post("/v1/model-endpoints?namespace=team", &within(model("m"), blank)).await;
        assert_eq!((kept.status, &kept.json()["metadata"]["namespace"]), (201, &json!("team")), "{kept:?}");
        let kept = place.post("/v1/model-endpoints", &within(model("m"), blank)).await;
        assert_eq!((kept.status, &kept.json()["metadata"]["namespace"]), (201, &json!("default")));
    }
    let yaml =
        "kind: ModelEndpoint\nmetadata: {name: y, namespace: ''}\nspec: {default_model: m, provider: mock}\n";
    let kept = send(&place, "/v1/model-endpoints?namespace=team", yaml).await;
    assert_eq!((kept.status, &kept.json()["metadata"]["namespace"]), (201, &json!("team")), "{kept:?}");
}

#[tokio::test]
async fn a_task_is_settled_in_the_same_way() {
    let place = Place::new().await;
    place.post("/v1/model-endpoints?namespace=team", &model("mock")).await;
    assert_eq!(place.post("/v1/agents?namespace=team", &agent("helper")).await.status, 201);
    let mut named = task();
    named["metadata"] = json!({"name": "once", "namespace": ""});
    let created = place.post("/v1/tasks?namespace=team", &named).await;
    assert_eq!(
        (created.status, &created.json()["metadata"]["namespace"]),
        (201, &json!("team")),
        "{created:?}"
    );
    place.send("POST", "/v1/tasks/once/cancel?namespace=team", "", b"").await;
    let again = json!({"metadata": {"name": "once", "namespace": " "}});
    let run = place.post("/v1/tasks?rerun=true&namespace=team", &again).await;
    assert_eq!((run.status, &run.json()["metadata"]["namespace"]), (201, &json!("team")), "{run:?}");
    named["metadata"] = json!({"name": "twice", "namespace": " team "});
    assert_eq!(place.post("/v1/tasks?namespace=team", &named).await.status, 201);
    named["metadata"] = json!({"namespace": "other"});
    check(&place.post("/v1/tasks?namespace=team", &named).await, 400, "bad_parameter", "other");
}
