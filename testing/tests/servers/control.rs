//! The control routes of the model server, and its counts.

#![allow(clippy::disallowed_methods, reason = "the other end of the wire")]

use ostler_testing::model_server::{ModelServer, Script, Settings, Turn};
use serde_json::{Value, json};

use crate::client::{Call, ask, completions, until};

async fn control(server: &ModelServer, route: &str) -> Value {
    let url = server.base_url().replace("/v1", &format!("/_control/{route}"));
    Call::get(url).send().await.json()
}

#[tokio::test]
async fn requests_are_counted_by_id_and_whether_they_were_answered() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    let sound = completions(&server, &ask("plan: text=hi")).header("x-request-id", "step-1");
    sound.send().await;
    sound.send().await;
    let cut = completions(&server, &ask("plan: text=hi fault=cut-text")).header("idempotency-key", "step-2");
    cut.send().await;
    completions(&server, &ask("hello")).send().await;
    until(async || server.desk().all().inflight == 0).await;
    let requests = control(&server, "requests").await;
    assert_eq!(requests["all"], json!({ "received": 4, "answered": 3, "inflight": 0 }));
    assert_eq!(requests["by_id"]["step-1"], json!({ "received": 2, "answered": 2, "inflight": 0 }));
    assert_eq!(requests["by_id"]["step-2"], json!({ "received": 1, "answered": 0, "inflight": 0 }));
    let ids: Vec<_> = requests["by_id"].as_object().unwrap().keys().collect();
    assert_eq!(ids.len(), 3);
    assert!(ids[2].starts_with("transcript-"), "without a header, the transcript is the id: {ids:?}");
    assert_eq!(control(&server, "requests?id=step-1").await["received"], 2);
    let repeated = control(&server, "requests?repeated=1").await;
    assert_eq!(repeated["by_id"].as_object().unwrap().keys().collect::<Vec<_>>(), ["step-1"]);
    let unanswered = control(&server, "requests?unanswered=1").await;
    assert_eq!(unanswered["by_id"].as_object().unwrap().keys().collect::<Vec<_>>(), ["step-2"]);
}

#[tokio::test]
async fn what_is_in_flight_is_known_until_its_client_goes() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    let call = completions(&server, &ask("plan: text=hi fault=hang")).header("x-request-id", "step-9");
    let stream = call.open().await;
    let in_flight = json!({ "inflight": 1, "ids": ["step-9"] });
    until(async || control(&server, "inflight").await == in_flight).await;
    drop(stream);
    let none = json!({ "inflight": 0, "ids": [] });
    until(async || control(&server, "inflight").await == none).await;
}

#[tokio::test]
async fn violations_are_listed_and_a_reset_forgets_everything() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    let once = ask("plan: text=hi fault=500:1");
    assert_eq!(completions(&server, &once).send().await.status, 500);
    completions(&server, &json!({ "model": "scripted", "messages": [] })).send().await;
    let violations = control(&server, "violations").await;
    assert_eq!(violations[0]["rule"], "no_messages");
    assert_eq!(violations[0]["param"], "messages");
    let reset = Call::post(server.base_url().replace("/v1", "/_control/reset"), "");
    assert_eq!(reset.send().await.status, 200);
    assert_eq!(control(&server, "violations").await, json!([]));
    assert_eq!(control(&server, "requests").await["all"]["received"], 0);
    assert!(server.requests().is_empty());
    assert_eq!(completions(&server, &once).send().await.status, 500, "strikes are forgotten too");
}

#[tokio::test]
async fn a_fast_server_neither_validates_nor_counts_by_id() {
    let settings = Settings { fast: true, forget_bodies: true, ..Settings::default() };
    let server = ModelServer::start_with(Script::function(|_| Turn::text("hi")), settings).await.unwrap();
    let answer = completions(&server, &json!({ "model": "scripted", "messages": [] })).send().await;
    assert_eq!(answer.status, 200);
    assert_eq!(server.desk().all().received, 1);
    assert!(server.desk().by_id(|_| true).is_empty() && server.requests().is_empty());
}

#[tokio::test]
async fn dropping_the_server_closes_its_port_and_its_connections() {
    let server = ModelServer::start(Script::Plan).await.unwrap();
    let call = completions(&server, &ask("plan: text=hi fault=hang"));
    let stream = call.open().await;
    until(async || server.desk().all().inflight == 1).await;
    drop(server);
    let mut byte = [0];
    stream.readable().await.unwrap();
    assert!(matches!(stream.try_read(&mut byte), Ok(0) | Err(_)), "the connection is closed");
    let address = call.url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "the port is closed");
}
