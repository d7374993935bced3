//! Users, as an admin looks after them.

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, bearer, sse::Listener},
};

const PASSWORD: &str = "correct horse battery";

async fn cookie(place: &Place, name: &str, password: &str) -> Option<String> {
    let body = json!({"username": name, "password": password});
    let reply = place.send_as("", "POST", "/v1/auth/login", Some(&body)).await;
    let set = reply.header("set-cookie")?;
    Some(format!("cookie: {}\r\norigin: http://{}\r\n", set.split(';').next()?, place.address()))
}

async fn patch(place: &Place, name: &str, body: Value) -> super::support::Reply {
    let path = format!("/v1/auth/users/{name}");
    place.send("PATCH", &path, "content-type: application/json\r\n", body.to_string().as_bytes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_may_what_they_were_given_and_changes_count_at_once() {
    let place = Place::with_agent().await;
    let body =
        json!({"name": "ada@example.org", "password": PASSWORD, "role": "reader", "namespaces": ["default"]});
    let made = place.post("/v1/auth/users", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    assert_eq!(
        (&made["name"], &made["role"], &made["namespaces"]),
        (&body["name"], &body["role"], &body["namespaces"])
    );
    assert!(!made.to_string().contains("hash") && !made.to_string().contains("salt"), "{made}");
    assert_eq!(place.get("/v1/auth/users/ada@example.org").await.json(), made);
    check(&place.post("/v1/auth/users", &body).await, 409, "conflict", "already");

    let ada = cookie(&place, "ada@example.org", PASSWORD).await.unwrap();
    let task = place.task().await;
    let mut reader = Listener::open_as(&place, &ada, &task, "").await;
    assert_eq!(reader.next().await.unwrap().id, Some(1));
    let agent = super::support::agent("another");
    assert_eq!(place.send_as(&ada, "GET", "/v1/agents", None).await.status, 200);
    check(&place.send_as(&ada, "GET", "/v1/agents?namespace=other", None).await, 403, "forbidden", "other");
    check(&place.send_as(&ada, "POST", "/v1/agents", Some(&agent)).await, 403, "forbidden", "writer");
    check(&place.send_as(&ada, "GET", "/v1/auth/users", None).await, 403, "forbidden", "admin");

    assert_eq!(patch(&place, "ada@example.org", json!({"role": "writer"})).await.status, 200);
    assert_eq!(
        place.send_as(&ada, "POST", "/v1/agents", Some(&agent)).await.status,
        201,
        "without a new sign-in"
    );
    let moved = patch(&place, "ada@example.org", json!({"namespaces": ["other"]})).await.json();
    assert_eq!((&moved["role"], &moved["namespaces"]), (&json!("writer"), &json!(["other"])));
    check(&place.send_as(&ada, "GET", "/v1/agents", None).await, 403, "forbidden", "default");
    assert_eq!(reader.rest().await, [], "who was following has to ask again");
    assert_eq!(
        patch(&place, "ada@example.org", json!({"password": "another long password"})).await.status,
        200
    );
    assert_eq!(place.send_as(&ada, "GET", "/v1/version", None).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_is_not_given_is_made_up_and_shown_once() {
    let place = Place::new().await;
    let made = place.post("/v1/auth/users", &json!({"username": "bob", "role": "writer"})).await;
    assert_eq!((made.status, made.header("cache-control")), (201, Some("no-store")), "{made:?}");
    let mut made = made.json();
    let password = made.as_object_mut().unwrap().remove("password").unwrap();
    let password = password.as_str().unwrap();
    assert!(password.len() >= 40, "{password}");
    assert_eq!((&made["name"], &made["username"]), (&json!("bob"), &json!("bob")));
    assert_eq!(made["updated_at"], made["created_at"]);
    assert_eq!(place.get("/v1/auth/users/bob").await.json(), made, "it is not shown again");
    assert!(cookie(&place, "bob", password).await.is_some());
    let changed = patch(&place, "bob", json!({"role": "reader"})).await.json();
    assert_eq!(changed["created_at"], made["created_at"]);
    assert!(changed["updated_at"].as_str() > made["updated_at"].as_str(), "{changed}");
    let given = place.post("/v1/auth/users", &json!({"username": "eve", "password": PASSWORD})).await;
    assert_eq!(given.json().get("password"), None, "who gave it knows it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_ones_own_stands_for_the_user() {
    let place = Place::with_agent().await;
    let body = json!({"name": "ada", "password": PASSWORD, "role": "reader", "namespaces": ["default"]});
    assert_eq!(place.post("/v1/auth/users", &body).await.status, 201);
    let ada = cookie(&place, "ada", PASSWORD).await.unwrap();
    let made = place.send_as(&ada, "POST", "/v1/auth/cli-token", None).await;
    assert_eq!((made.status, made.header("cache-control")), (201, Some("no-store")), "{made:?}");
    let token = made.json();
    assert_eq!((&token["role"], &token["namespaces"]), (&json!("reader"), &json!(["default"])));
    assert!(token["expires_at"].is_string() && token["created_by"] == "ada", "{token}");
    let own = bearer(token["token"].as_str().unwrap());
    let listed = place.get("/v1/tokens").await.json();
    assert_eq!(listed["items"][0]["name"], token["name"]);

    let me = place.send_as(&own, "GET", "/v1/auth/me", None).await.json();
    assert_eq!((&me["username"], &me["method"]), (&json!("ada"), &json!("token")));
    let agent = super::support::agent("another");
    assert_eq!(place.send_as(&own, "GET", "/v1/agents", None).await.status, 200);
    check(&place.send_as(&own, "POST", "/v1/agents", Some(&agent)).await, 403, "forbidden", "writer");
    patch(&place, "ada", json!({"role": "writer"})).await;
    assert_eq!(
        place.send_as(&own, "POST", "/v1/agents", Some(&agent)).await.status,
        201,
        "as the user now may"
    );
    let another = place.send_as(&own, "POST", "/v1/auth/cli-token", None).await;
    check(&another, 403, "forbidden", "a token makes no other");
    let long = json!({"name": "for ever", "expires_in": "91d"});
    check(&place.send_as(&ada, "POST", "/v1/auth/cli-token", Some(&long)).await, 400, "invalid_body", "name");
    let long = json!({"name": "mine", "expires_in": "91d"});
    check(
        &place.send_as(&ada, "POST", "/v1/auth/cli-token", Some(&long)).await,
        400,
        "invalid_body",
        "90 days",
    );

    patch(&place, "ada", json!({"password": "another long password"})).await;
    check(&place.send_as(&own, "GET", "/v1/agents", None).await, 401, "unauthorized", "not valid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_ones_own_is_made_for_a_name_and_a_password() {
    let place = Place::with_agent().await;
    let body = json!({"name": "ada", "password": PASSWORD, "role": "writer", "namespaces": ["default"]});
    assert_eq!(place.post("/v1/auth/users", &body).await.status, 201);
    let other = place.token("other", "reader", &["*"]).await;
    let ask = async |credential: &str, body: Value| {
        place.send_as(credential, "POST", "/v1/auth/cli-token", Some(&body)).await
    };
    for credential in ["", &other] {
        let made = ask(credential, json!({"username": "ada", "password": PASSWORD})).await;
        assert_eq!((made.status, made.header("cache-control")), (201, Some("no-store")), "{made:?}");
        assert!(made.header("set-cookie").is_none(), "{made:?}");
        let token = made.json();
        assert_eq!((&token["username"], &token["role"]), (&json!("ada"), &json!("writer")));
        assert!(token["created_at"].is_string() && token["name"].as_str().unwrap().starts_with("ada-cli-"));
        let own = bearer(token["token"].as_str().unwrap());
        assert_eq!(place.send_as(&own, "GET", "/v1/auth/me", None).await.json()["username"], "ada");
    }
    for (name, password) in [("ada", "another long password"), ("eve", PASSWORD), ("a/b", PASSWORD)] {
        let refused = ask("", json!({"username": name, "password": password})).await;
        check(&refused, 401, "unauthorized", "the name or the password is wrong");
    }
    let lacking = ask("", json!({"username": "ada"})).await;
    check(&lacking, 400, "invalid_body", "password");
    check(&ask("", json!({"password": PASSWORD})).await, 400, "invalid_body", "username");
    check(&ask("", json!({})).await, 401, "unauthorized", "no token");
    let tokens = place.get("/v1/tokens").await.json();
    assert_eq!(tokens["items"].as_array().unwrap().len(), 3, "those that were shown, and no more: {tokens}");
}

/// Guesses here are guesses there.
#[tokio::test(flavor = "multi_thread")]
async fn guesses_at_tokens_of_ones_own_are_bounded_as_sign_ins_are() {
    let place = Place::new().await;
    assert_eq!(place.post("/v1/auth/users", &json!({"name": "ada", "password": PASSWORD})).await.status, 201);
    let wrong = json!({"username": "ada", "password": "another long password"});
    let mut guesses = 0;
    loop {
        let reply = place.send_as("", "POST", "/v1/auth/cli-token", Some(&wrong)).await;
        if reply.status == 429 {
            break;
        }
        check(&reply, 401, "unauthorized", "wrong");
        guesses += 1;
        assert!(guesses < 100, "nobody is held up");
    }
    let right = json!({"username": "ada", "password": PASSWORD});
    for path in ["/v1/auth/cli-token", "/v1/auth/login"] {
        assert_eq!(place.send_as("", "POST", path, Some(&right)).await.status, 429, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_so_many_tokens_and_the_oldest_go_first() {
    let place = Place::new().await;
    let body = json!({"name": "ada", "password": PASSWORD});
    assert_eq!(place.post("/v1/auth/users", &body).await.status, 201);
    let others = place.token("ci", "reader", &["*"]).await;
    let ada = cookie(&place, "ada", PASSWORD).await.unwrap();
    let mut own = Vec::new();
    for days in 1..=33 {
        let body = json!({"name": format!("own-{days}"), "expires_in": format!("{days}d")});
        let made = place.send_as(&ada, "POST", "/v1/auth/cli-token", Some(&body)).await;
        own.push(bearer(made.json()["token"].as_str().unwrap()));
    }
    for (credential, status) in [(&own[0], 401), (&own[1], 200), (&own[32], 200), (&others, 200)] {
        assert_eq!(place.send_as(credential, "GET", "/v1/version", None).await.status, status);
    }
    assert_eq!(place.get("/v1/tokens").await.json()["items"].as_array().unwrap().len(), 33);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_deleted_is_out_also_under_the_same_name() {
    let place = Place::new().await;
    let body = json!({"username": "ada", "password": PASSWORD});
    assert_eq!(place.post("/v1/auth/users", &body).await.status, 201);
    let before = cookie(&place, "ada", PASSWORD).await.unwrap();
    assert_eq!(place.send_as(&before, "GET", "/v1/version", None).await.status, 200);
    assert_eq!(place.delete("/v1/auth/users/ada").await.status, 204);
    assert_eq!(place.send_as(&before, "GET", "/v1/version", None).await.status, 401);
    assert!(cookie(&place, "ada", PASSWORD).await.is_none());
    check(&place.delete("/v1/auth/users/ada").await, 404, "not_found", "there is no user");
    assert_eq!(place.post("/v1/auth/users", &body).await.status, 201);
    assert_eq!(place.send_as(&before, "GET", "/v1/version", None).await.status, 401, "it was another's");
    assert!(cookie(&place, "ada", PASSWORD).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_user() {
    let place = Place::new().await;
    for (body, words) in [
        (json!({"password": PASSWORD}), "name"),
        (json!({"name": "a b", "password": PASSWORD}), "name"),
        (json!({"name": "ada", "password": "elf letters"}), "at least 12"),
        (json!({"name": "ada", "password": "x".repeat(1025)}), "at most 1024"),
        (json!({"name": "ada", "password": PASSWORD, "role": "king"}), "king"),
        (json!({"name": "ada", "password": PASSWORD, "admin": true}), "admin"),
    ] {
        check(&place.post("/v1/auth/users", &body).await, 400, "invalid_body", words);
    }
    assert_eq!(place.post("/v1/auth/users", &json!({"name": "ada", "password": PASSWORD})).await.status, 201);
    for (body, words) in [
        (json!({"role": "king"}), "king"),
        (json!({"namespaces": []}), "namespaces"),
        (json!({"password": "short"}), "password"),
        (json!({"name": "eve"}), "name"),
    ] {
        check(&patch(&place, "ada", body).await, 400, "invalid_body", words);
    }
    check(&patch(&place, "eve", json!({"role": "admin"})).await, 404, "not_found", "eve");
    for name in ["%00", "a%2Fb"] {
        check(&place.get(&format!("/v1/auth/users/{name}")).await, 404, "not_found", "there is no user");
    }
    let list = place.get("/v1/auth/users").await.json();
    assert_eq!((list["items"].as_array().unwrap().len(), &list["items"][0]["role"]), (1, &json!("reader")));
}
