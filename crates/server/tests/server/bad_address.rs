//! Whoever asks, whatever they call things and wherever they look: refused in a way that helps.

use serde_json::json;

use super::{
    bad_input::{check, check_alive},
    support::{Place, bearer, raw, runtime, task},
};

#[tokio::test]
async fn names_and_ids_that_nobody_has() {
    let place = Place::with_agent().await;
    let long = "x".repeat(3000);
    let unknown = [
        "x",
        "task_01kb3v00000000000000000000",
        "run_01kb3v00000000000000000000",
        "%00",
        "a%2Fb",
        "%F0%9F%90%B4",
        "..%2f",
        &long,
    ];
    for name in unknown {
        for tail in ["", "/steps", "/events", "/logs"] {
            check(&place.get(&format!("/v1/tasks/{name}{tail}")).await, 404, "not_found", "there is no task");
        }
        for verb in ["cancel", "retry", "archive"] {
            let reply = place.send("POST", &format!("/v1/tasks/{name}/{verb}"), "", b"").await;
            check(&reply, 404, "not_found", "there is no task");
        }
        check(&place.get(&format!("/v1/agents/{name}")).await, 404, "not_found", "there is no Agent");
        check(&place.delete(&format!("/v1/tools/{name}")).await, 404, "not_found", "there is no Tool");
    }
    let mut body = task();
    body["spec"]["agent"] = json!("nobody");
    let reply = place.post("/v1/tasks", &body).await;
    assert!(matches!(reply.status, 400 | 404), "{reply:?}");
    assert!(reply.json()["detail"].as_str().unwrap().contains("nobody"), "{reply:?}");
    check_alive(&place).await;
}

#[tokio::test]
async fn who_has_no_token() {
    let place = Place::with_agent().await;
    let address = place.address();
    for authorization in
        ["", "authorization: Bearer wrong\r\n", "authorization: Basic eA==\r\n", "authorization: Bearer\r\n"]
    {
        for line in
            ["GET /v1/tasks", "POST /v1/tasks", "GET /v1/nonsense", "PATCH /v1/agents", "POST /v1/backup"]
        {
            let head =
                format!("{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{authorization}\r\n");
            let reply = raw::exchange(address, head.as_bytes()).await;
            let document = check(&reply, 401, "unauthorized", "");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            assert!(!document.to_string().contains(place.server.token()));
        }
    }
    let head = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let reply = raw::exchange(address, head.as_bytes()).await;
    assert_eq!((reply.status, reply.json()), (200, json!({"status": "ok"})));
}

#[tokio::test]
async fn pages_of_other_sites() {
    let place = Place::with_agent().await;
    let (address, token) = (place.address(), place.server.token());
    let ask = async |host: &str, origin: &str| {
        let head = format!(
            "GET /v1/version HTTP/1.1\r\n{host}{origin}authorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        raw::exchange(address, head.as_bytes()).await
    };
    check(&ask("host: evil.example\r\n", "").await, 403, "bad_host", "evil.example");
    check(&ask("", "").await, 403, "bad_host", "names no host");
    check(&ask("host: localhost\r\nhost: evil.example\r\n", "").await, 403, "bad_host", "more than one");
    let host = format!("host: {address}\r\n");
    check(&ask(&host, "origin: http://evil.example\r\n").await, 403, "bad_origin", "another site");
    check(&ask(&host, "origin: null\r\n").await, 403, "bad_origin", "another site");
    assert_eq!(ask(&host, &format!("origin: http://{address}\r\n")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_site_that_is_let_in_show_a_token_and_no_cookie() {
    let place = Place::configured(runtime(), |config| {
        config.allow_origins = vec!["https://App.example".to_owned(), "http://localhost:3000".to_owned()];
    })
    .await;
    let (page, token) = ("origin: https://app.example\r\n", bearer(place.server.token()));
    let ask =
        async |headers: &str, method: &str, path: &str| place.send_as(headers, method, path, None).await;
    let wants = "access-control-request-method: PUT\r\naccess-control-request-headers: authorization\r\n";
    let asked = ask(&format!("{page}{wants}"), "OPTIONS", "/v1/agents/a").await;
    assert_eq!(
        (asked.status, asked.header("access-control-allow-origin")),
        (204, Some("https://app.example"))
    );
    for (header, word) in [
        ("access-control-allow-methods", "PUT"),
        ("access-control-allow-headers", "authorization"),
        ("access-control-allow-headers", "last-event-id"),
        ("vary", "origin"),
    ] {
        assert!(asked.header(header).unwrap().contains(word), "{header} lacks {word}");
    }
    let private = format!("{page}{wants}access-control-request-private-network: true\r\n");
    let private = ask(&private, "OPTIONS", "/v1/agents/a").await;
    assert_eq!(private.header("access-control-allow-private-network"), Some("true"));

    let answered = ask(&format!("{page}{token}"), "GET", "/v1/version").await;
    assert_eq!(
        (answered.status, answered.header("access-control-allow-origin")),
        (200, Some("https://app.example"))
    );
    let refused = ask(page, "GET", "/v1/version").await;
    check(&refused, 401, "unauthorized", "no token");
    assert!(refused.header("access-control-allow-origin").is_some(), "the page has to see why");

    // What the browser has for us of its own doesn't count, and is never asked for.
    let ada = json!({"username": "ada", "password": "correct horse battery"});
    let signed_in = place.post("/v1/auth/setup", &ada).await;
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    for method in ["GET", "POST"] {
        let reply = ask(&format!("{page}cookie: {cookie}\r\n"), method, "/v1/agents").await;
        check(&reply, 401, "unauthorized", "a page of this server");
        assert_eq!(reply.header("access-control-allow-credentials"), None);
    }
    for other in
        ["https://app.example.evil.example", "http://app.example", "https://app.example:8443", "null"]
    {
        let reply = ask(&format!("origin: {other}\r\n{token}"), "GET", "/v1/version").await;
        check(&reply, 403, "bad_origin", "another site");
        assert_eq!(reply.header("access-control-allow-origin"), None, "{other}");
        let asked = ask(&format!("origin: {other}\r\n{wants}"), "OPTIONS", "/v1/agents").await;
        assert_eq!((asked.status, asked.header("access-control-allow-methods")), (403, None), "{other}");
    }
    let two = format!("{page}origin: http://localhost:3000\r\n{token}");
    check(&ask(&two, "GET", "/v1/version").await, 403, "bad_origin", "another site");
}

#[tokio::test]
async fn routes_and_methods_that_are_not_there() {
    let place = Place::with_agent().await;
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v2/tasks",
        "/v1/castles",
        "/v1/agents/a/b",
        "/v1/tasks/x/explode",
        "/v1/tasks/",
        "//v1/tasks",
    ] {
        check(&place.get(path).await, 404, "unknown_route", "there is no route");
    }
    let name = place.task().await;
    let not_taken = [
        ("PUT", "/v1/tasks".to_owned(), "GET,HEAD,POST"),
        ("PATCH", format!("/v1/tasks/{name}"), "GET,HEAD,PUT,DELETE"),
        ("GET", format!("/v1/tasks/{name}/cancel"), "POST"),
        ("POST", format!("/v1/tasks/{name}/events"), "GET,HEAD"),
        ("PATCH", "/v1/agents/helper".to_owned(), "GET,HEAD,PUT,DELETE"),
        ("DELETE", "/v1/agents".to_owned(), "GET,HEAD,POST"),
        ("GET", "/v1/backup".to_owned(), "POST"),
        ("POST", "/healthz".to_owned(), "GET,HEAD"),
        ("BREW", "/v1/version".to_owned(), "GET,HEAD"),
    ];
    for (method, path, allowed) in not_taken {
        let reply = place.send(method, &path, "", b"").await;
        check(&reply, 405, "method_not_allowed", method);
        assert_eq!(reply.header("allow"), Some(allowed), "{method} {path}");
    }
    assert_eq!(place.get(&format!("/v1/tasks/{name}")).await.status, 200);
}

#[tokio::test]
async fn parameters_that_make_no_sense() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let numbers = ["0", "-1", "1001", "x", "1.5", "+3", "99999999999999999999"];
    for limit in numbers {
        for path in ["/v1/tasks".to_owned(), "/v1/agents".to_owned(), format!("/v1/tasks/{name}/events")] {
            check(&place.get(&format!("{path}?limit={limit}")).await, 400, "bad_parameter", "limit");
        }
    }
    for place_in_log in ["-1", "x", "9223372036854775808", "18446744073709551615", "1e3"] {
        let path = format!("/v1/tasks/{name}/events");
        check(&place.get(&format!("{path}?after={place_in_log}")).await, 400, "bad_parameter", "after");
        let sse = format!("accept: text/event-stream\r\nlast-event-id: {place_in_log}\r\n");
        check(&place.send("GET", &path, &sse, b"").await, 400, "bad_parameter", "Last-Event-ID");
        let sse = "accept: text/event-stream\r\n";
        check(
            &place.send("GET", &format!("{path}?after={place_in_log}"), sse, b"").await,
            400,
            "bad_parameter",
            "after",
        );
    }
    let others = [
        ("/v1/agents?namespace=*&after=x", "after"),
        ("/v1/tasks?before=x", "before"),
        ("/v1/tasks?before=run_01kb3v00000000000000000000", "before"),
        ("/v1/tasks?state=happy", "happy"),
        ("/v1/tasks?state=queued,", "state"),
        ("/v1/tasks?archived=yes", "archived"),
        ("/v1/tasks?namespace=a/b", "namespace"),
        ("/v1/tasks?namespace=+", "namespace"),
        ("/v1/agents/helper?namespace=*", "namespace"),
        ("/v1/tasks?stat=queued", "this route takes namespace, state"),
        ("/v1/version?x=1", "takes none"),
    ];
    for (path, words) in others {
        check(&place.get(path).await, 400, "bad_parameter", words);
    }
    check(&place.post("/v1/tasks?namespace=*", &task()).await, 400, "bad_parameter", "namespace");
    check_alive(&place).await;
}

#[tokio::test]
async fn a_request_id_is_echoed_if_it_is_plain() {
    let place = Place::new().await;
    let echoed = place.send("GET", "/v1/version", "x-request-id: abc-1\r\n", b"").await;
    assert_eq!(echoed.header("x-request-id"), Some("abc-1"));
    let long = "x".repeat(129);
    for id in ["", "a b", long.as_str()] {
        let reply = place.send("GET", "/v1/nothing", &format!("x-request-id: {id}\r\n"), b"").await;
        assert_ne!(reply.header("x-request-id"), Some(id));
        check(&reply, 404, "unknown_route", "/v1/nothing");
    }
}
