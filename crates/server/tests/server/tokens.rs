//! Tokens made over the API: shown once, kept as hashes, taken away at once.

use std::{fs, sync::Arc};

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Calendar, Hasty, Place, bearer, sse::Listener, start_in},
};

#[tokio::test]
async fn a_token_is_shown_once_and_kept_as_a_hash() {
    let place = Place::new().await;
    let body = json!({"name": "ci", "role": "writer", "namespaces": ["default"]});
    let reply = place.post("/v1/tokens", &body).await;
    assert_eq!((reply.status, reply.header("cache-control")), (201, Some("no-store")));
    let made = reply.json();
    assert_eq!(
        (&made["name"], &made["role"], &made["namespaces"]),
        (&body["name"], &body["role"], &body["namespaces"])
    );
    assert!(made["created_at"].as_str().unwrap().ends_with('Z') && made.get("expires_at").is_none());
    let token = made["token"].as_str().unwrap().to_owned();
    let letters = token.strip_prefix("ost_").unwrap();
    assert!(letters.len() == 52 && letters.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{letters}");
    let list = place.get("/v1/tokens").await;
    assert_eq!(list.json()["items"][0]["name"], "ci");
    assert!(!String::from_utf8_lossy(&list.body).contains(letters), "it is not shown again");
    assert_eq!(place.send_as(&bearer(&token), "GET", "/v1/agents", None).await.status, 200);

    let copy = place.send("POST", "/v1/backup", "", b"").await.body;
    let Place { server, folder } = place;
    server.shutdown().await;
    for bytes in [copy, fs::read(folder.path().join("store.db")).unwrap()] {
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(has("internal/Token") && !has(letters), "the token itself is in the store");
    }
    let place = Place { server: start_in(folder.path()).await.unwrap(), folder };
    assert_eq!(
        place.send_as(&bearer(&token), "GET", "/v1/agents", None).await.status,
        200,
        "after a restart"
    );
}

#[tokio::test]
async fn a_deleted_token_opens_nothing_at_once() {
    let place = Place::with_agent().await;
    let task = place.task().await;
    for round in 0..20 {
        let credential = place.token("ci", "reader", &["*"]).await;
        assert_eq!(place.send_as(&credential, "GET", "/v1/tasks", None).await.status, 200, "round {round}");
        let mut reader = Listener::open_as(&place, &credential, &task, "").await;
        assert_eq!((reader.status, reader.next().await.unwrap().id), (200, Some(1)));
        assert_eq!(place.delete("/v1/tokens/ci").await.status, 204);
        check(&place.send_as(&credential, "GET", "/v1/tasks", None).await, 401, "unauthorized", "not valid");
        // Who was following is cut off, though the task has not ended.
        assert_eq!(reader.rest().await, [], "round {round}");
    }
    check(&place.delete("/v1/tokens/ci").await, 404, "not_found", "there is no token");
}

#[tokio::test]
async fn names_are_unique_and_one_made_again_is_another() {
    let place = Place::new().await;
    let first = place.token("ci", "reader", &["*"]).await;
    check(&place.post("/v1/tokens", &json!({"name": "ci"})).await, 409, "conflict", "already");
    assert_eq!(place.send_as(&first, "GET", "/v1/version", None).await.status, 200, "the first one stays");
    assert_eq!(place.delete("/v1/tokens/ci").await.status, 204);
    let second = place.token("ci", "reader", &["*"]).await;
    assert_eq!(place.send_as(&first, "GET", "/v1/version", None).await.status, 401);
    assert_eq!(place.send_as(&second, "GET", "/v1/version", None).await.status, 200);
}

#[tokio::test]
async fn by_default_a_token_reads_everything() {
    let place = Place::new().await;
    let made = place.post("/v1/tokens", &json!({"name": "plain"})).await.json();
    assert_eq!((&made["role"], &made["namespaces"]), (&json!("reader"), &json!(["*"])));
}

#[tokio::test]
async fn a_token_may_have_an_end() {
    let place = Place::new().await;
    let made = place.post("/v1/tokens", &json!({"name": "a", "expiresIn": "30d"})).await.json();
    assert!(made["expires_at"].as_str().unwrap() > made["created_at"].as_str().unwrap(), "{made}");
    let body = json!({"name": "b", "expires_at": "2999-01-01T00:00:00Z"});
    assert_eq!(place.post("/v1/tokens", &body).await.json()["expires_at"], "2999-01-01T00:00:00.000Z");
    for body in [
        json!({"name": "x", "expires_at": "2001-01-01T00:00:00Z"}),
        json!({"name": "x", "expires_at": "soon"}),
        json!({"name": "x", "expires_in": "0s"}),
        json!({"name": "x", "expires_in": "36526d"}),
        json!({"name": "x", "expires_in": "1h", "expires_at": "2999-01-01T00:00:00Z"}),
        json!({"name": "x", "expires_in": 5}),
    ] {
        check(&place.post("/v1/tokens", &body).await, 400, "invalid_body", "expire");
    }
}

#[tokio::test]
async fn a_token_opens_nothing_behind_its_end() {
    let calendar = Calendar::new(Hasty::new());
    let place = Place::with(Arc::clone(&calendar) as _).await;
    place.apply_agent().await;
    let task = place.task().await;
    let body = json!({"name": "short", "expires_in": "2h"});
    let made = place.post("/v1/tokens", &body).await.json();
    let credential = bearer(made["token"].as_str().unwrap());
    calendar.turn_on(1);
    assert_eq!(place.send_as(&credential, "GET", "/v1/version", None).await.status, 200);
    let mut reader = Listener::open_as(&place, &credential, &task, "").await;
    assert_eq!(reader.next().await.unwrap().id, Some(1));
    calendar.turn_on(1);
    check(&place.send_as(&credential, "GET", "/v1/version", None).await, 401, "unauthorized", "not valid");
    // Who was following is cut off too.
    let rest = reader.rest().await;
    assert!(rest.iter().all(|message| message.event == "comment"), "{rest:?}");
}

#[tokio::test]
async fn its_use_is_written_down() {
    let place = Place::new().await;
    let credential = place.token("ci", "reader", &["*"]).await;
    let first = async || place.get("/v1/tokens").await.json()["items"][0].clone();
    assert!(first().await.get("last_used_at").is_none());
    assert_eq!(place.send_as(&credential, "GET", "/v1/version", None).await.status, 200);
    while first().await.get("last_used_at").is_none() {
        tokio::task::yield_now().await;
    }
    let noted = first().await["last_used_at"].clone();
    assert_eq!(place.send_as(&credential, "GET", "/v1/version", None).await.status, 200);
    assert_eq!(first().await["last_used_at"], noted, "and not again so soon");
}

#[tokio::test]
async fn they_are_listed_by_page() {
    let place = Place::new().await;
    for name in ["b", "d", "a", "c"] {
        place.token(name, "reader", &["*"]).await;
    }
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = place.get("/v1/tokens?limit=3").await.json();
    assert_eq!((names(&first), &first["continue"]), (vec!["a".into(), "b".into(), "c".into()], &json!("c")));
    let second = place.get("/v1/tokens?limit=3&after=c").await.json();
    assert_eq!((names(&second), second.get("continue")), (vec!["d".to_owned()], None));
    for query in ["after=%00", "after=a/b", "limit=0", "namespace=default"] {
        check(&place.get(&format!("/v1/tokens?{query}")).await, 400, "bad_parameter", "");
        check(&place.get(&format!("/v1/auth/users?{query}")).await, 400, "bad_parameter", "");
    }
}

#[tokio::test]
async fn what_makes_no_token() {
    let place = Place::new().await;
    for (body, field) in [
        (json!({}), "name"),
        (json!({"name": ""}), "name"),
        (json!({"name": "a/b"}), "name"),
        (json!({"name": 5}), "name"),
        (json!({"name": "x".repeat(129)}), "name"),
        (json!({"name": "x", "role": "root"}), "reader, writer, controller and admin"),
        (json!({"name": "x", "role": 1}), "role"),
        (json!({"name": "x", "namespaces": []}), "namespaces"),
        (json!({"name": "x", "namespaces": "a"}), "namespaces"),
        (json!({"name": "x", "namespaces": ["a/b"]}), "namespaces"),
        (json!({"name": "x", "token": "ost_mine"}), "token"),
        (json!([]), "object"),
    ] {
        check(&place.post("/v1/tokens", &body).await, 400, "invalid_body", field);
    }
    check(&place.send("POST", "/v1/tokens", "", b"{").await, 400, "bad_json", "");
    let yaml = place.send("POST", "/v1/tokens", "content-type: application/yaml\r\n", b"name: x").await;
    check(&yaml, 415, "unsupported_media_type", "JSON");
    for name in ["none", "%00", "a%2Fb", "%F0%9F%90%B4"] {
        check(&place.delete(&format!("/v1/tokens/{name}")).await, 404, "not_found", "there is no token");
    }
    assert_eq!(place.get("/v1/tokens").await.json()["items"], json!([]));
}

/// What is internal is in no list of resources, and no manifest can say it.
#[tokio::test]
async fn they_are_no_resources() {
    let place = Place::new().await;
    place.token("ci", "admin", &["*"]).await;
    for path in ["/v1/internal", "/v1/internal%2FToken", "/v1/users", "/v1/sign-ins"] {
        check(&place.get(path).await, 404, "unknown_route", "");
    }
    let forged = json!({"kind": "internal/Token", "metadata": {"name": "ci"}, "spec": {}});
    check(&place.post("/v1/agents", &forged).await, 400, "invalid_manifest", "");
}
