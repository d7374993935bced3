//! The tool server: each behaviour on the wire, and what it remembers.

use std::time::Duration;

use ostler_testing::tool_server::{Behaviour, ToolServer};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::client::{Answer, Call, until};

async fn call(server: &ToolServer, tool: &str, id: &str, body: &str) -> Answer {
    Call::post(server.tool_url(tool), body).header("x-request-id", id).send().await
}

#[tokio::test]
async fn each_behaviour_answers_as_stated() {
    let server = ToolServer::start().await.unwrap();
    let input = r#"{"q": "x"}"#;
    let echo = call(&server, "echo", "1", input).await;
    assert_eq!((echo.status, echo.text()), (200, input));
    assert_eq!(echo.headers["content-type"], "application/json");
    let before = jiff::Timestamp::now();
    assert_eq!(call(&server, "slow-lookup?ms=120", "2", input).await.text(), input);
    assert!(jiff::Timestamp::now().duration_since(before).as_millis() >= 120);
    assert_eq!(call(&server, "flood?bytes=1234567", "3", input).await.body.len(), 1_234_567);
    let html = call(&server, "html", "4", input).await;
    assert_eq!((html.status, &*html.headers["content-type"]), (200, "text/html"));
    let invalid = call(&server, "invalid-utf8", "5", input).await;
    assert!(invalid.complete && std::str::from_utf8(&invalid.body).is_err());
    assert_eq!(call(&server, "weather?as=echo", "6", input).await.text(), input);
    assert_eq!(call(&server, "weather", "7", input).await.status, 404);
}

#[tokio::test]
async fn failures_are_counted_per_request_id() {
    let server = ToolServer::start().await.unwrap();
    for id in ["a", "b"] {
        for expected in [503, 503, 200] {
            assert_eq!(call(&server, "fail?status=503&times=2", id, "{}").await.status, expected);
        }
    }
    assert_eq!(call(&server, "fail", "c", "{}").await.status, 500);
}

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test]
async fn calls_are_remembered_by_request_id() {
    let server = ToolServer::start().await.unwrap();
    call(&server, "counter", "step-1", r#"{"n":1}"#).await;
    let traced = Call::post(server.tool_url("counter"), r#"{"n":2}"#).header("x-request-id", "step-1");
    traced.header("traceparent", TRACE).send().await;
    let last = call(&server, "counter", "step-1", r#"{"n":1}"#).await;
    assert_eq!(last.json(), json!({ "counter": 3 }));
    Call::post(server.tool_url("echo"), "{}").send().await;
    until(async || server.desk().all().inflight == 0).await;
    let calls = Call::get(format!("{}/_control/calls", server.base_url())).send().await.json();
    let expected = json!({
        "tool": "counter", "count": 3, "answered": 3, "distinct_bodies": 2,
        "first_body": "{\"n\":1}", "last_body": "{\"n\":1}", "traceparents": [TRACE],
    });
    assert_eq!(calls["step-1"], expected);
    assert_eq!(calls["none"]["count"], 1, "a call without an id is not forgotten");
    assert_eq!(server.calls()["step-1"].count, 3);
    assert_eq!(server.counter(), 3);
    Call::post(format!("{}/_control/reset", server.base_url()), "").send().await;
    assert_eq!((server.calls().len(), server.counter()), (0, 0));
}

#[tokio::test]
async fn a_hanging_tool_is_in_flight_until_its_caller_goes() {
    let server = ToolServer::start().await.unwrap();
    let call = Call::post(server.tool_url("hang"), "{}").header("x-request-id", "step-1");
    let mut stream = call.open().await;
    let inflight = async || {
        let url = format!("{}/_control/inflight", server.base_url());
        Call::get(url).send().await.json()
    };
    until(async || inflight().await == json!({ "inflight": 1, "ids": ["step-1"] })).await;
    let silence = timeout(Duration::from_millis(100), stream.read_u8()).await;
    assert!(silence.is_err(), "it said something");
    drop(stream);
    until(async || inflight().await == json!({ "inflight": 0, "ids": [] })).await;
    assert_eq!((server.calls()["step-1"].count, server.calls()["step-1"].answered), (1, 0));
}

#[tokio::test]
async fn the_contract_is_answered_in_its_envelope() {
    let server = ToolServer::start().await.unwrap();
    let envelope = |change: fn(&mut Value)| {
        let mut request = json!({
            "tool_contract_version": "v1", "request_id": "req-1", "tool": { "name": "lookup" },
            "input": { "q": "x" }, "attempt": 2,
        });
        change(&mut request);
        request.to_string()
    };
    let ok = call(&server, "contract", "s", &envelope(|_| {})).await.json();
    assert_eq!((&ok["status"], &ok["request_id"]), (&json!("ok"), &json!("req-1")));
    assert_eq!(ok["output"]["result"], r#"{"q":"x"}"#);
    assert_eq!(ok["usage"]["attempt"], 2);
    let raw = call(&server, "contract", "s", &envelope(|request| request["input_raw"] = json!("raw"))).await;
    assert_eq!(raw.json()["output"]["result"], "raw");
    let plain = call(&server, "contract", "step-7", r#"{"q":1}"#).await.json();
    assert_eq!((&plain["request_id"], &plain["output"]["result"]), (&json!("step-7"), &json!("{\"q\":1}")));
    let wrong = envelope(|request| request["tool_contract_version"] = json!("v2"));
    let wrong = call(&server, "contract", "s", &wrong).await.json();
    assert_eq!((&wrong["status"], &wrong["error"]["code"]), (&json!("error"), &json!("invalid_input")));
    assert_eq!(wrong["error"]["details"]["field"], "tool_contract_version");
    let denied = call(&server, "contract?status=denied", "s", "{}").await.json();
    assert_eq!(
        (&denied["status"], &denied["error"]["code"]),
        (&json!("denied"), &json!("permission_denied"))
    );
    assert_eq!(denied["error"]["retryable"], false);
    let late = call(&server, "contract?status=error&code=timeout", "s", "{}").await.json();
    assert_eq!(late["error"]["reason"], "tool_execution_timeout");
    assert_eq!(late["error"]["retryable"], true);
}

#[test]
fn every_behaviour_is_found_by_its_prefix() {
    for behaviour in Behaviour::ALL {
        assert_eq!(Behaviour::of(&format!("{}_more", behaviour.prefix()), None), Some(behaviour));
    }
}
