//! Whatever a client sends: the right status, a document that helps, never a 5xx, and the server goes on.

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::support::{Place, Reply, agent, raw, task};

const JSON: &str = "content-type: application/json\r\n";

/// A problem document with this status and code, whose detail holds these words.
#[track_caller]
pub fn check(reply: &Reply, status: u16, code: &str, words: &str) -> Value {
    let shown = String::from_utf8_lossy(&reply.body);
    assert_eq!(reply.status, status, "{shown}");
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{shown}");
    let document = reply.json();
    assert_eq!(document["code"], code, "{shown}");
    assert_eq!(document["status"], status, "{shown}");
    assert_eq!(document["type"], "about:blank");
    assert!(document["title"].as_str().is_some_and(|title| !title.is_empty()), "{shown}");
    assert!(document["detail"].as_str().unwrap().contains(words), "{shown} does not say {words:?}");
    assert_eq!(document["request_id"].as_str(), reply.header("x-request-id"), "{shown}");
    document
}

/// It still serves: a task is accepted.
pub async fn check_alive(place: &Place) {
    assert_eq!(place.get("/v1/version").await.status, 200);
    place.task().await;
}

#[tokio::test]
async fn large_bodies() {
    let place = Place::with_agent().await;
    let mut large = task();
    large["spec"]["input"]["message"] = json!("x".repeat(5 << 20));
    let large = large.to_string();
    for path in ["/v1/tasks", "/v1/agents", "/v1/tasks/none/cancel"] {
        let reply = place.send("POST", path, JSON, large.as_bytes()).await;
        check(&reply, 413, "body_too_large", "larger than 4194304 bytes");
    }
    // Not even read by who may not send it, or where nobody takes it; and yet the answer arrives.
    let address = place.address();
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        large.len()
    );
    check(&raw::exchange(address, (head + &large).as_bytes()).await, 401, "unauthorized", "no token");
    let mut chunked = format!("{}transfer-encoding: chunked\r\n\r\n", place.head("POST", "/v1/tasks"));
    for piece in large.as_bytes().chunks(100_000) {
        chunked.push_str(&format!("{:x}\r\n{}\r\n", piece.len(), std::str::from_utf8(piece).unwrap()));
    }
    chunked.push_str("0\r\n\r\n");
    check(&raw::exchange(address, chunked.as_bytes()).await, 413, "body_too_large", "larger");
    check_alive(&place).await;
}

#[tokio::test]
async fn a_body_just_small_enough_is_read() {
    let place = Place::with_agent().await;
    let mut manifest = task();
    let room = (4 << 20) - manifest.to_string().len();
    manifest["spec"]["input"]["message"] = json!(format!("hi{}", "x".repeat(room)));
    assert_eq!(manifest.to_string().len(), 4 << 20);
    assert_eq!(place.post("/v1/tasks", &manifest).await.status, 201);
}

#[tokio::test]
async fn lengths_that_are_absurd() {
    let place = Place::with_agent().await;
    let address = place.address();
    for length in ["4194305", "99999999999", "9223372036854775807"] {
        let expect = if length == "4194305" { "expect: 100-continue\r\n" } else { "" };
        let head =
            format!("{}{JSON}{expect}content-length: {length}\r\n\r\n", place.head("POST", "/v1/tasks"));
        check(&raw::exchange(address, head.as_bytes()).await, 413, "body_too_large", "larger");
    }
    // These are no requests at all: the connection is refused before anybody reads them.
    for length in ["18446744073709551614", "99999999999999999999999", "-1", "x", "1, 2"] {
        let head = format!("{}{JSON}content-length: {length}\r\n\r\n", place.head("POST", "/v1/tasks"));
        let status = raw::exchange(address, head.as_bytes()).await.status;
        assert!(matches!(status, 400 | 431), "{length}: {status}");
    }
    check_alive(&place).await;
}

#[tokio::test]
async fn a_client_that_goes_away_in_the_middle() {
    let place = Place::with_agent().await;
    for body in ["", "{\"kind\":"] {
        let mut stream = TcpStream::connect(place.address()).await.unwrap();
        let head = format!("{}{JSON}content-length: 100\r\n\r\n{body}", place.head("POST", "/v1/tasks"));
        stream.write_all(head.as_bytes()).await.unwrap();
        drop(stream);
    }
    check_alive(&place).await;
}

#[tokio::test]
async fn deep_json() {
    let place = Place::with_agent().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_object = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    for body in [&deep, &deep_object] {
        for path in ["/v1/tasks", "/v1/agents", "/v1/tasks/none/cancel"] {
            let reply = place.send("POST", path, JSON, body.as_bytes()).await;
            check(&reply, 400, "too_deep", "deeper than 64 levels");
        }
        let reply = place.send("POST", "/v1/agents", "content-type: text/yaml\r\n", body.as_bytes()).await;
        check(&reply, 400, "invalid_manifest", "");
        let reply = place.send("POST", "/v1/tasks", "content-type: text/yaml\r\n", body.as_bytes()).await;
        check(&reply, 400, "invalid_manifest", "");
    }
    check_alive(&place).await;
}

#[tokio::test]
async fn yaml_that_unfolds_without_end() {
    let place = Place::with_agent().await;
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let before = level - 1;
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 10].join(",")));
    }
    for path in ["/v1/tasks", "/v1/agents"] {
        let reply = place.send("POST", path, "content-type: application/yaml\r\n", bomb.as_bytes()).await;
        check(&reply, 400, "invalid_manifest", "");
    }
    check_alive(&place).await;
}

#[tokio::test]
async fn text_that_is_not_utf8() {
    let place = Place::with_agent().await;
    for path in ["/v1/tasks", "/v1/agents", "/v1/tasks/none/cancel"] {
        let reply = place.send("POST", path, JSON, b"{\"kind\":\"\xff\xfe\"}").await;
        check(&reply, 400, "bad_utf8", "behind byte 9");
    }
    check(&place.get("/v1/tasks/%ff%fe").await, 400, "bad_utf8", "the path");
    check(&place.get("/v1/agents/%c3%28").await, 400, "bad_utf8", "the path");
    check(&place.get("/v1/tasks?namespace=%ff").await, 400, "bad_utf8", "the query");
    let task = task().to_string();
    let mut request = format!(
        "{}{JSON}content-length: {}\r\nidempotency-key: ",
        place.head("POST", "/v1/tasks"),
        task.len()
    )
    .into_bytes();
    request.extend_from_slice(b"\xff\xfe\r\n\r\n");
    request.extend_from_slice(task.as_bytes());
    check(&raw::exchange(place.address(), &request).await, 400, "bad_utf8", "Idempotency-Key");
    // A path that is no path, and a header that is no token.
    let mut request = b"GET /v1/\xff\xfe HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_vec();
    assert_eq!(raw::exchange(place.address(), &request).await.status, 400);
    request = b"GET /v1/version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer \xff\xfe\r\n\r\n".to_vec();
    check(&raw::exchange(place.address(), &request).await, 401, "unauthorized", "not valid");
    check_alive(&place).await;
}

#[tokio::test]
async fn bodies_that_are_not_json() {
    let place = Place::with_agent().await;
    for body in ["{", "{\"a\":1,}", "{'a':1}", "{} {}", "\u{0}", "{\"a\":\"\\ud800\"}", "nul"] {
        for path in ["/v1/tasks", "/v1/agents", "/v1/tasks/none/cancel"] {
            let reply = place.send("POST", path, JSON, body.as_bytes()).await;
            check(&reply, 400, "bad_json", "line 1 column");
        }
    }
    check(&place.send("POST", "/v1/tasks", JSON, b"").await, 400, "bad_json", "EOF");
    check_alive(&place).await;
}

#[tokio::test]
async fn values_of_the_wrong_type() {
    let place = Place::with_agent().await;
    for body in ["null", "1", "\"x\"", "[]", "true", "[1]"] {
        for path in ["/v1/tasks", "/v1/agents"] {
            let reply = place.send("POST", path, JSON, body.as_bytes()).await;
            check(&reply, 400, "invalid_manifest", "");
        }
    }
    let wrong = [
        ("/metadata", json!("x")),
        ("/metadata", json!({"name": 7})),
        ("/metadata", json!({"name": "a/b"})),
        ("/metadata", json!({"name": "t", "namespace": ["x"]})),
        ("/spec", json!([])),
        ("/spec", json!({"agent": {"x": 1}})),
        ("/spec", json!({"agent": "helper", "input": "hi"})),
        ("/spec", json!({"agent": "helper", "priority": 3})),
        ("/spec", json!({"agent": "helper", "inptu": {}})),
        ("/kind", json!(5)),
        ("/kind", json!("Tsak")),
    ];
    for (path, value) in wrong {
        let mut body = task();
        body[&path[1..]] = value.clone();
        let document = check(&place.post("/v1/tasks", &body).await, 400, "invalid_manifest", "");
        let problems = document["problems"].as_array().unwrap();
        let all =
            problems.iter().all(|problem| problem["path"].is_string() && problem["message"].is_string());
        assert!(!problems.is_empty() && all, "{value} gave {document}");
    }
    let mut body = task();
    body["spec"] = json!({"agent": "helper", "inptu": {}, "priority": "hgh"});
    let document = check(&place.post("/v1/tasks", &body).await, 400, "invalid_manifest", "2 problems");
    let suggestions: Vec<_> =
        document["problems"].as_array().unwrap().iter().map(|problem| &problem["suggestion"]).collect();
    assert!(suggestions.contains(&&json!("input")) && suggestions.contains(&&json!("high")), "{document}");
    check_alive(&place).await;
}

#[tokio::test]
async fn the_reason_of_a_cancel_is_text() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    for body in [json!([]), json!({"reason": 5}), json!({"why": "x"}), json!("x")] {
        let reply = place.post(&format!("/v1/tasks/{name}/cancel"), &body).await;
        check(&reply, 400, "invalid_manifest", "");
    }
    let path = format!("/v1/tasks/{name}/cancel");
    let reply = place.send("POST", &path, "content-type: text/yaml\r\n", b"reason: x").await;
    check(&reply, 415, "unsupported_media_type", "only JSON");
    assert_eq!(place.get(&format!("/v1/tasks/{name}")).await.json()["status"]["state"], "queued");
}

#[tokio::test]
async fn keys_that_are_given_twice() {
    let place = Place::with_agent().await;
    let twice = br#"{"kind":"Task","spec":{"agent":"helper","agent":"other"}}"#;
    check(&place.send("POST", "/v1/tasks", JSON, twice).await, 400, "bad_json", "\"agent\" is given twice");
    let twice =
        br#"{"kind":"Agent","metadata":{"name":"a"},"spec":{"prompt":"x","prompt":"y","model_ref":"mock"}}"#;
    let document =
        check(&place.send("POST", "/v1/agents", JSON, twice).await, 400, "invalid_manifest", "duplicate key");
    assert_eq!(document["problems"][0]["line"], 1, "{document}");
    let reply = place.get("/v1/tasks?limit=1&limit=2").await;
    check(&reply, 400, "bad_parameter", "limit: given twice");
    check_alive(&place).await;
}

#[tokio::test]
async fn types_that_are_not_read() {
    let place = Place::with_agent().await;
    for kind in
        ["text/html", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "jsön"]
    {
        for path in ["/v1/tasks", "/v1/agents"] {
            let reply = place.send("POST", path, &format!("content-type: {kind}\r\n"), b"{}").await;
            let document = check(&reply, 415, "unsupported_media_type", "");
            assert!(document["remedy"].as_str().unwrap().contains("application/json"), "{document}");
        }
    }
    let body = task().to_string();
    for kind in
        ["", "content-type: application/json; charset=utf-8\r\n", "content-type: APPLICATION/JSON\r\n"]
    {
        assert_eq!(place.send("POST", "/v1/tasks", kind, body.as_bytes()).await.status, 201, "{kind}");
    }
    let login = place.send("POST", "/v1/tokens", "content-type: text/plain\r\n", b"{}").await;
    check(&login, 415, "unsupported_media_type", "only JSON");
    for (encoding, status) in [("gzip", 415), ("gzip, identity", 415), ("identity", 201)] {
        let headers = format!("{JSON}content-encoding: {encoding}\r\n");
        let reply = place.send("POST", "/v1/tasks", &headers, body.as_bytes()).await;
        assert_eq!(reply.status, status, "{encoding}: {reply:?}");
    }
}

/// What could be taken for another thing later is refused at once.
#[tokio::test]
async fn names_that_stand_for_something_else() {
    let place = Place::with_agent().await;
    let uid = place.post("/v1/tasks", &task()).await.json()["metadata"]["uid"].clone();
    let mut other = task();
    other["metadata"] = json!({ "name": uid });
    check(&place.post("/v1/tasks", &other).await, 400, "invalid_manifest", "uid of a task");
    other["spec"]["mode"] = json!("template");
    check(&place.post("/v1/tasks", &other).await, 400, "invalid_manifest", "uid of a task");
    let everywhere =
        json!({"kind": "Agent", "metadata": {"name": "n", "namespace": "*"}, "spec": {"model_ref": "mock"}});
    check(&place.post("/v1/agents", &everywhere).await, 400, "invalid_manifest", "stands for all");
    let versions = place.send("DELETE", "/v1/agents/helper", "if-match: \"1\", \"2\"\r\n", b"").await;
    check(&versions, 400, "bad_parameter", "expected one version");
}

#[tokio::test]
async fn a_body_that_says_no_type_is_told_by_its_first_letter() {
    let place = Place::with_agent().await;
    let yaml = "# an agent\nkind: Agent\nmetadata: {name: a}\nspec: {model_ref: mock}\n";
    let json = agent("a").to_string();
    for kind in ["", "content-type: text/plain\r\n", "content-type: text/plain; charset=utf-8\r\n"] {
        for body in [yaml, &format!(" \n{json}")] {
            let reply = place.send("POST", "/v1/agents", kind, body.as_bytes()).await;
            assert_eq!(reply.status, 201, "{kind:?} {reply:?}");
        }
        let broken = place
            .send(
                "POST",
                "/v1/agents",
                kind,
                b"kind: Agent\nmetadata: {name: a, nme: a}\nspec: {model_ref: mock}\n",
            )
            .await;
        let document = check(&broken, 400, "invalid_manifest", "unknown field");
        assert_eq!(document["problems"][0]["line"], 2, "{document}");
        let json = place.send("POST", "/v1/agents", kind, b"{\"kind\": ").await;
        check(&json, 400, "bad_json", "");
    }
}

#[tokio::test]
async fn one_manifest_at_a_time_and_of_the_right_kind() {
    let place = Place::with_agent().await;
    let document =
        check(&place.post("/v1/tools", &agent("a")).await, 400, "invalid_manifest", "expected Tool");
    assert_eq!(document["problems"][0]["path"], "/kind");
    check(&place.post("/v1/tasks", &agent("a")).await, 400, "invalid_manifest", "expected Task");
    check(
        &place.post("/v1/agents", &json!([agent("a"), agent("b")])).await,
        400,
        "invalid_manifest",
        "one object, found 2",
    );
    let two = "kind: Agent\nmetadata: {name: a}\nspec: {model_ref: mock}\n---\nkind: Agent\nmetadata: {name: b}\nspec: {model_ref: mock}\n";
    let reply = place.send("POST", "/v1/agents", "content-type: text/yaml\r\n", two.as_bytes()).await;
    check(&reply, 400, "invalid_manifest", "one object, found 2");
    let broken = "kind: Agent\nmetadata:\n  name: a\nspec:\n  model_ref: mock\n  limts: 3\n";
    let reply = place.send("POST", "/v1/agents", "content-type: text/yaml\r\n", broken.as_bytes()).await;
    let document = check(&reply, 400, "invalid_manifest", "unknown field");
    let problem = &document["problems"][0];
    assert_eq!(
        (&problem["path"], &problem["line"], &problem["suggestion"]),
        (&json!("spec.limts"), &json!(6), &json!("limits"))
    );
    assert_eq!(place.get("/v1/agents").await.json()["items"].as_array().unwrap().len(), 1, "only the helper");
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[tokio::test]
async fn requests_with_bytes_changed_anywhere() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let body = task().to_string();
    let post = format!(
        "{}{JSON}content-length: {}\r\n\r\n{body}",
        place.head("POST", "/v1/tasks?namespace=default"),
        body.len()
    );
    let get = format!(
        "{}accept: text/event-stream\r\nlast-event-id: 1\r\n\r\n",
        place.head("GET", &format!("/v1/tasks/{name}/steps"))
    );
    let mut dice = Dice(7);
    let mut answered = 0;
    for _ in 0..600 {
        let mut request = if dice.below(2) == 0 { &post } else { &get }.clone().into_bytes();
        for _ in 0..=dice.below(3) {
            let at = dice.below(request.len());
            match dice.below(3) {
                0 => request[at] = dice.below(256) as u8,
                1 => drop(request.remove(at)),
                _ => request.insert(at, b"\0\r\n{\"%/,:9\xff"[dice.below(11)]),
            }
        }
        // What is no HTTP any more may be left without an answer.
        if let Some(status) = raw::status(place.address(), &request).await {
            answered += 1;
            assert!(status < 500, "{status} for {:?}", String::from_utf8_lossy(&request));
        }
    }
    assert!(answered > 100, "only {answered} were answered");
    check_alive(&place).await;
}
