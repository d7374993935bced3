//! A caller that was let into some namespaces, and every way out of them.

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, agent, bearer, model, task},
};

/// A server with an agent `helper` in the namespaces `own` and `other`, and who is let into `own` alone.
async fn divided() -> (Place, String) {
    let place = Place::new().await;
    for namespace in ["own", "other"] {
        for (plural, resource) in [("model-endpoints", model("mock")), ("agents", agent("helper"))] {
            let reply = place.post(&format!("/v1/{plural}?namespace={namespace}"), &resource).await;
            assert_eq!(reply.status, 201, "{reply:?}");
        }
    }
    let limited = place.token("limited", "admin", &["own"]).await;
    (place, limited)
}

fn in_namespace(mut resource: Value, namespace: &str) -> Value {
    resource["metadata"]["namespace"] = json!(namespace);
    resource
}

#[tokio::test]
async fn inside_all_is_as_usual() {
    let (place, limited) = divided().await;
    let ask = async |method: &str, path: &str, body: Option<&Value>| {
        place.send_as(&limited, method, path, body).await
    };
    assert_eq!(
        ask("GET", "/v1/agents?namespace=own", None).await.json()["items"].as_array().unwrap().len(),
        1
    );
    assert_eq!(ask("POST", "/v1/agents", Some(&in_namespace(agent("new"), "own"))).await.status, 201);
    let created = ask("POST", "/v1/tasks?namespace=own", Some(&task())).await;
    assert_eq!(created.status, 201, "{created:?}");
    let uid = created.json()["metadata"]["uid"].as_str().unwrap().to_owned();
    for tail in ["", "/steps", "/events", "/logs"] {
        assert_eq!(ask("GET", &format!("/v1/tasks/{uid}{tail}?namespace=own"), None).await.status, 200);
    }
    assert_eq!(ask("POST", &format!("/v1/tasks/{uid}/cancel?namespace=own"), None).await.status, 200);
    assert_eq!(ask("DELETE", "/v1/agents/new?namespace=own", None).await.status, 204);
    assert_eq!(ask("GET", "/v1/version", None).await.status, 200);
    let me = ask("GET", "/v1/auth/me", None).await.json();
    assert_eq!((&me["name"], &me["namespaces"]), (&json!("limited"), &json!(["own"])));
}

#[tokio::test]
async fn no_parameter_leads_out() {
    let (place, limited) = divided().await;
    let reply = place.post("/v1/tasks?namespace=other", &task()).await;
    let uid = reply.json()["metadata"]["uid"].as_str().unwrap().to_owned();
    let paths = [
        "/v1/agents".to_owned(),
        "/v1/agents/helper".to_owned(),
        "/v1/tasks".to_owned(),
        format!("/v1/tasks/{uid}"),
        format!("/v1/tasks/{uid}/events"),
    ];
    for path in paths {
        for query in ["?namespace=other", "?namespace=default", "?namespace=*", "", "?namespace=%6fther"] {
            let reply = place.send_as(&limited, "GET", &format!("{path}{query}"), None).await;
            let document = check(&reply, 403, "forbidden", "limited");
            assert!(document["remedy"].as_str().unwrap().contains("namespace own"), "{document}");
        }
    }
    for verb in ["cancel", "retry", "release", "archive"] {
        let path = format!("/v1/tasks/{uid}/{verb}?namespace=other");
        check(&place.send_as(&limited, "POST", &path, None).await, 403, "forbidden", "other");
        // Whatever lives elsewhere is not there.
        let path = format!("/v1/tasks/{uid}/{verb}?namespace=own");
        check(&place.send_as(&limited, "POST", &path, None).await, 404, "not_found", "");
    }
    check(
        &place.send_as(&limited, "GET", &format!("/v1/tasks/{uid}?namespace=own"), None).await,
        404,
        "not_found",
        "",
    );
    let deleted = place.send_as(&limited, "DELETE", "/v1/agents/helper?namespace=other", None).await;
    check(&deleted, 403, "forbidden", "other");
    assert_eq!(place.get("/v1/agents/helper?namespace=other").await.status, 200);
    let cancelled = place.get(&format!("/v1/tasks/{uid}?namespace=other")).await.json();
    assert_eq!(cancelled["status"]["state"], "queued", "nothing was done to it");
}

#[tokio::test]
async fn no_body_leads_out() {
    let (place, limited) = divided().await;
    let post = async |path: &str, body: &Value| place.send_as(&limited, "POST", path, Some(body)).await;
    check(&post("/v1/agents", &agent("x")).await, 403, "forbidden", "default");
    check(&post("/v1/agents", &in_namespace(agent("x"), "other")).await, 403, "forbidden", "other");
    check(&post("/v1/tasks", &task()).await, 403, "forbidden", "default");
    let mut elsewhere = task();
    elsewhere["metadata"] = json!({"namespace": "other"});
    check(&post("/v1/tasks", &elsewhere).await, 403, "forbidden", "other");
    check(&post("/v1/tasks?namespace=own", &elsewhere).await, 400, "bad_parameter", "other");
    let yaml =
        "kind: Task\nmetadata: {name: t, namespace: other}\nspec: {agent: helper, input: {message: hi}}\n";
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{limited}content-type: application/yaml\r\ncontent-length: {}\r\n\r\n{yaml}",
        place.address(),
        yaml.len()
    );
    check(&super::support::raw::exchange(place.address(), head.as_bytes()).await, 403, "forbidden", "other");
    let all = place.get("/v1/tasks?namespace=*").await.json();
    assert_eq!(all["items"], json!([]), "nothing was accepted");
    assert_eq!(place.get("/v1/agents/x?namespace=other").await.status, 404);
}

#[tokio::test]
async fn no_reference_leads_out() {
    let (place, limited) = divided().await;
    let mut borrowed = in_namespace(agent("borrower"), "own");
    borrowed["spec"]["model_ref"] = json!("other/mock");
    let reply = place.send_as(&limited, "POST", "/v1/agents", Some(&borrowed)).await;
    check(&reply, 403, "forbidden", "\"other\", which the resource names");
    borrowed["spec"]["model_ref"] = json!("mock");
    borrowed["spec"]["tools"] = json!(["other/hammer"]);
    check(&place.send_as(&limited, "POST", "/v1/agents", Some(&borrowed)).await, 403, "forbidden", "other");
    let mut endpoint = in_namespace(model("m"), "own");
    endpoint["spec"]["auth"] = json!({"secretRef": "other/key"});
    check(
        &place.send_as(&limited, "POST", "/v1/model-endpoints", Some(&endpoint)).await,
        403,
        "forbidden",
        "other",
    );
    let mut sent = task();
    sent["spec"]["agent"] = json!("other/helper");
    check(
        &place.send_as(&limited, "POST", "/v1/tasks?namespace=own", Some(&sent)).await,
        403,
        "forbidden",
        "other",
    );
    // Who is let in everywhere may.
    borrowed["spec"] = json!({"model_ref": "other/mock", "prompt": "Help."});
    assert_eq!(place.post("/v1/agents", &borrowed).await.status, 201);
}

#[tokio::test]
async fn what_concerns_the_server_takes_all_namespaces() {
    let (place, limited) = divided().await;
    let asked = [
        ("POST", "/v1/backup", None),
        ("POST", "/v1/workers/x/drain", None),
        ("GET", "/v1/tokens", None),
        ("POST", "/v1/tokens", Some(json!({"name": "more", "role": "admin"}))),
        (
            "POST",
            "/v1/auth/users",
            Some(json!({"name": "more", "password": "a long password", "role": "admin"})),
        ),
        ("DELETE", "/v1/tokens/limited", None),
    ];
    for (method, path, body) in asked {
        let reply = place.send_as(&limited, method, path, body.as_ref()).await;
        check(&reply, 403, "forbidden", "all namespaces");
    }
    assert_eq!(place.get("/v1/tokens").await.json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn several_namespaces_are_named_one_at_a_time() {
    let (place, _) = divided().await;
    let both = place.token("both", "reader", &["own", "other"]).await;
    for namespace in ["own", "other"] {
        let reply = place.send_as(&both, "GET", &format!("/v1/agents?namespace={namespace}"), None).await;
        assert_eq!(reply.status, 200);
    }
    let reply = place.send_as(&both, "GET", "/v1/agents?namespace=*", None).await;
    let document = check(&reply, 403, "forbidden", "all namespaces at once");
    assert!(document["remedy"].as_str().unwrap().contains("other, own"), "{document}");
    let whole = place.send_as(&bearer(place.server.token()), "GET", "/v1/agents?namespace=*", None).await;
    assert_eq!(whole.json()["items"].as_array().unwrap().len(), 2);
}
