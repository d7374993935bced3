//! What a manifest declares is shown as it was declared, counts, and is asked for again with it.

use serde_json::{Value, json};

use super::support::{Place, Reply, agent, model, task, worker::Worker};

fn declared() -> Value {
    let mut task = task();
    let annotations = json!({
        "team.example/ticket": "42",
        "orloj.io/traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    task["metadata"] = json!({"name": "declared", "annotations": annotations});
    task["spec"]["max_turns"] = json!(6);
    task["spec"]["retry"] = json!({"max_attempts": 3, "backoff": "5s"});
    task["spec"]["message_retry"] =
        json!({"max_attempts": 2, "backoff": "250ms", "max_backoff": "2s", "jitter": "equal"});
    task
}

async fn cancelled(place: &Place, task: &Value) -> String {
    let created = place.post("/v1/tasks", task).await;
    assert_eq!(created.status, 201, "{created:?}");
    let name = created.json()["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(place.send("POST", &format!("/v1/tasks/{name}/cancel"), "", b"").await.status, 200);
    name
}

async fn again(place: &Place, name: &str) -> [Reply; 2] {
    let rerun = json!({"metadata": {"name": name}});
    [
        place.post(&format!("/v1/tasks/{name}/retry"), &json!({})).await,
        place.post("/v1/tasks?rerun=true", &rerun).await,
    ]
}

#[tokio::test]
async fn a_task_is_shown_as_it_was_declared_and_asked_for_again_so() {
    let place = Place::with_agent().await;
    let name = cancelled(&place, &declared()).await;
    let shown = place.get(&format!("/v1/tasks/{name}")).await.json();
    assert_eq!(shown["metadata"]["annotations"], declared()["metadata"]["annotations"]);
    for field in ["max_turns", "retry", "message_retry"] {
        assert_eq!(shown["spec"][field], declared()["spec"][field], "{field}");
    }
    for repeated in again(&place, &name).await {
        assert_eq!(repeated.status, 201, "{repeated:?}");
        let repeated = repeated.json();
        assert_eq!(repeated["metadata"]["annotations"], json!({"team.example/ticket": "42"}));
        for field in ["max_turns", "retry", "message_retry"] {
            assert_eq!(repeated["spec"][field], declared()["spec"][field], "{field}");
        }
    }
}

#[tokio::test]
async fn what_is_shown_of_a_task_declares_the_same_task() {
    let place = Place::with_agent().await;
    let name = cancelled(&place, &declared()).await;
    let mut shown = place.get(&format!("/v1/tasks/{name}")).await.json();
    shown["metadata"] = json!({"name": "copy", "annotations": shown["metadata"]["annotations"]});
    shown.as_object_mut().unwrap().remove("status");
    let copy = place.post("/v1/tasks", &shown).await;
    assert_eq!(copy.status, 201, "{copy:?}");
    assert_eq!(copy.json()["spec"], shown["spec"]);
    assert_eq!(copy.json()["metadata"]["annotations"], shown["metadata"]["annotations"]);
}

#[tokio::test]
async fn a_template_gives_its_annotations_but_no_trace() {
    let place = Place::with_agent().await;
    let mut template = declared();
    template["spec"]["mode"] = json!("template");
    assert_eq!(place.post("/v1/tasks", &template).await.status, 201);
    let run = place.post("/v1/tasks?rerun=true", &json!({"metadata": {"name": "declared"}})).await.json();
    assert_eq!(run["metadata"]["annotations"], json!({"team.example/ticket": "42"}));
    assert_eq!(run["spec"]["max_turns"], 6);
}

/// How often a task with these fails until nobody tries it again.
async fn tries(retry: &Value, message_retry: Option<&Value>) -> (u64, Value) {
    let place = Place::with_agent().await;
    let mut task = task();
    task["spec"]["retry"] = retry.clone();
    task["spec"]["message_retry"] = message_retry.cloned().unwrap_or_default();
    let created = place.post("/v1/tasks", &task).await;
    assert_eq!(created.status, 201, "{created:?}");
    let path = format!("/v1/tasks/{}", created.json()["metadata"]["name"].as_str().unwrap());
    let mut worker = Worker::new(&place).await;
    for count in 1.. {
        let held = worker.claim().await;
        worker.fail(held).await;
        let shown = place.get(&path).await.json();
        if shown["status"]["phase"] == "DeadLetter" {
            return (count, shown["status"].clone());
        }
        assert_eq!(shown["status"]["phase"], "Running", "{shown}");
    }
    unreachable!()
}

#[tokio::test]
async fn a_task_is_tried_as_often_as_both_retries_say() {
    let (count, status) =
        tries(&json!({"max_attempts": 2}), Some(&json!({"max_attempts": 3, "jitter": "none"}))).await;
    assert_eq!((count, &status["attempts"]), (6, &json!(6)));
    assert_eq!(status["messages"][0]["max_attempts"], 6);
    assert_eq!(tries(&json!({"max_attempts": 3}), None).await.0, 3, "where only one is said, it is the one");
    assert_eq!(tries(&json!({}), Some(&json!({"max_attempts": 2}))).await.0, 2);
    assert_eq!(tries(&json!({"max_attempts": 2}), Some(&json!({"max_attempts": 1}))).await.0, 2);
}

#[tokio::test]
async fn a_retry_keeps_the_input_that_nobody_speaks_of() {
    let place = Place::with_agent().await;
    let mut first = task();
    first["spec"]["input"] = json!({"message": "hi", "quarter": "Q3"});
    let name = cancelled(&place, &first).await;
    for (overrides, input) in [
        (json!({"input": {"quarter": "Q4"}}), json!({"message": "hi", "quarter": "Q4"})),
        (json!({"topic": "x"}), json!({"message": "hi", "quarter": "Q3", "topic": "x"})),
        (
            json!({"quarter": "Q1", "input": {"region": "north"}, "priority": "low"}),
            json!({"message": "hi", "quarter": "Q1", "region": "north"}),
        ),
    ] {
        let again = place.post(&format!("/v1/tasks/{name}/retry"), &json!({"overrides": overrides})).await;
        assert_eq!(again.status, 201, "{again:?}");
        assert_eq!(again.json()["spec"]["input"], input, "{overrides}");
    }
}

#[tokio::test]
async fn a_retry_with_another_number_of_tries_has_that_number() {
    let place = Place::with_agent().await;
    let mut first = task();
    first["spec"]["retry"] = json!({"max_attempts": 3});
    let name = cancelled(&place, &first).await;
    let overrides = json!({"overrides": {"retry": {"max_attempts": 5}}});
    let spec = place.post(&format!("/v1/tasks/{name}/retry"), &overrides).await.json()["spec"].clone();
    assert_eq!(
        (&spec["retry"]["max_attempts"], &spec["message_retry"]["max_attempts"]),
        (&json!(5), &json!(5))
    );
}

#[tokio::test]
async fn the_same_input_again_is_the_same_request_and_other_input_is_not() {
    let place = Place::with_agent().await;
    let mut keyed = task();
    keyed["spec"]["input"] = json!({"message": "hi", "quarter": "Q3"});
    keyed["spec"]["idempotency_key"] = json!("once");
    let first = place.post("/v1/tasks", &keyed).await;
    let second = place.post("/v1/tasks", &keyed).await;
    assert_eq!((first.status, second.status), (201, 200));
    assert_eq!(first.json()["metadata"]["uid"], second.json()["metadata"]["uid"]);
    keyed["spec"]["input"]["quarter"] = json!("Q4");
    assert_eq!(place.post("/v1/tasks", &keyed).await.status, 409);
}

#[tokio::test]
async fn a_resource_has_a_uid_of_its_own_for_as_long_as_it_lives() {
    let place = Place::new().await;
    let mut helper = agent("helper");
    helper["metadata"]["uid"] = json!("mine");
    let uid = |reply: &Reply| reply.json()["metadata"]["uid"].as_str().unwrap().to_owned();
    let first = uid(&place.post("/v1/agents", &helper).await);
    assert!(first.starts_with("resource_"), "{first}");
    helper["spec"]["prompt"] = json!("Help more.");
    assert_eq!(uid(&place.post("/v1/agents", &helper).await), first);
    helper["metadata"]["name"] = json!("renamed");
    assert_eq!(uid(&place.put("/v1/agents/helper", "if-match: 2\r\n", &helper).await), first);
    assert_eq!(uid(&place.get("/v1/agents/renamed").await), first);
    assert_eq!(place.delete("/v1/agents/renamed").await.status, 204);
    assert_ne!(uid(&place.post("/v1/agents", &helper).await), first, "it is another");
}

#[tokio::test]
async fn a_provider_that_is_not_built_is_told_when_it_is_applied_and_refused_when_it_is_used() {
    let place = Place::new().await;
    let mut cloud = model("mock");
    cloud["spec"]["provider"] = json!("bedrock");
    let kept = place.post("/v1/model-endpoints", &cloud).await;
    assert_eq!((kept.status, &kept.json()["status"]["phase"]), (201, &json!("Error")), "{kept:?}");
    let told = kept.json()["status"]["lastError"].as_str().unwrap().to_owned();
    assert!(told.contains("provider bedrock is not available"), "{told}");
    place.post("/v1/agents", &agent("helper")).await;
    let refused = place.post("/v1/tasks", &task()).await;
    assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("not_available")), "{refused:?}");
}

/// A SealedSecret is somebody's ciphertext: it is kept as it stands, and nobody takes it for a Secret.
#[tokio::test]
async fn a_sealed_secret_is_kept_as_it_is_and_makes_no_secret() {
    let place = Place::new().await;
    let value = json!({"keyId": "sealing-1", "wrappedKey": "d3JhcHBlZA==", "ciphertext": "c2VhbGVk"});
    let sealed = json!({
        "apiVersion": "ostler.dev/v1", "kind": "SealedSecret", "metadata": {"name": "notes"},
        "spec": {"encryptedData": {"password": value}, "template": {"labels": {"desk": "research"}}},
    });
    let kept = place.post("/v1/sealed-secrets", &sealed).await;
    assert_eq!((kept.status, &kept.json()["status"]["phase"]), (201, &json!("Error")), "{kept:?}");
    let told = kept.json()["status"]["lastError"].as_str().unwrap().to_owned();
    assert!(told.contains("SealedSecret is not available"), "{told}");
    assert_eq!(place.get("/v1/sealed-secrets/notes").await.json()["spec"], sealed["spec"]);
    assert_eq!(place.get("/v1/secrets/notes").await.status, 404);

    let mut half = sealed.clone();
    half["spec"]["encryptedData"]["password"]["ciphertext"] = json!("not base64!");
    let refused = place.post("/v1/sealed-secrets", &half).await;
    assert_eq!(refused.status, 400, "{refused:?}");
}

/// Where a tool is called may be known last: it is kept, and who would call it is refused.
#[tokio::test]
async fn a_tool_without_an_endpoint_is_kept_and_refused_when_it_is_used() {
    let place = Place::with_agent().await;
    let lookup =
        json!({"kind": "Tool", "metadata": {"name": "lookup"}, "spec": {"description": "Looks things up."}});
    let kept = place.post("/v1/tools", &lookup).await;
    assert_eq!((kept.status, &kept.json()["status"]["phase"]), (201, &json!("Error")), "{kept:?}");
    assert_eq!(place.post("/v1/tasks", &task()).await.status, 201, "nobody calls it");
    let mut caller = agent("helper");
    caller["spec"]["tools"] = json!(["lookup"]);
    assert_eq!(place.post("/v1/agents", &caller).await.status, 201);
    let refused = place.post("/v1/tasks", &task()).await;
    assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("not_available")), "{refused:?}");
    let told = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(told.contains("tool/lookup") && told.contains("spec.endpoint"), "{told}");
}
