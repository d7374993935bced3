//! The OpenAI gateway over real sockets: what is sent, what comes of each answer, and what of each failure.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../../net/tests/support/mod.rs"]
mod support;

use std::{collections::BTreeMap, time::Duration};

use futures_util::StreamExt;
use ostler_kernel::{Block, ErrorClass, Failure, Role, plan::ModelPlan, step::Usage};
use ostler_llm::{
    Completion, Finish, Gateway, Identity, Message, ModelRequest, Part, Registry, Secrets, Shown, complete,
};
use ostler_net::Client;
use support::{Act, Seen, Server, TokioRuntime, answer, closed_port, write};

const KEY: &str = "k3y-0f-the-h0use";

fn registry() -> Registry {
    let runtime = TokioRuntime::new();
    let secrets = Secrets::new(|name| (name == "OSTLER_SECRET_OPENAI").then(|| KEY.to_owned()));
    Registry::standard(Client::new(runtime.clone()).unwrap(), runtime, secrets).unwrap()
}

fn request(base_url: String) -> ModelRequest {
    let endpoint = ModelPlan {
        endpoint: "main".into(),
        provider: "OpenAI-compatible".into(),
        base_url,
        model: "gpt-x".into(),
        options: BTreeMap::new(),
        secret_ref: Some("openai".into()),
        allow_private: true,
        ..ModelPlan::default()
    };
    let blocks = vec![Block::Text { text: "hi".into() }];
    let messages = vec![Message { role: Role::User, blocks }];
    ModelRequest {
        endpoint,
        system: String::new(),
        messages,
        tools: vec![],
        output_schema: None,
        request_id: "step_1".into(),
    }
}

async fn call(server: &Server) -> Result<Completion, Failure> {
    complete(&registry(), request(server.url("/v1/")), |_| {}).await
}

/// The chunk of HTTP that carries these bytes.
fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

fn event(data: &str) -> Act {
    write(chunk(format!("data: {data}\n\n").as_bytes()))
}

fn text(content: &str) -> Act {
    event(&format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":null}}]}}"#))
}

/// As servers write it that have no null for a reason that is still to come.
fn unreasoned(content: &str) -> Act {
    event(&format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":""}}]}}"#))
}

fn stop() -> Act {
    event(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#)
}

fn usage() -> Act {
    event(r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}"#)
}

fn stream(acts: impl IntoIterator<Item = Act>) -> Vec<Act> {
    let media_type = "content-type: text/event-stream; charset=utf-8";
    let head = format!("HTTP/1.1 200 OK\r\n{media_type}\r\ntransfer-encoding: chunked\r\n\r\n");
    [write(head)].into_iter().chain(acts).collect()
}

fn end() -> Act {
    write("0\r\n\r\n")
}

fn said(text: &str) -> Completion {
    let usage = Usage { input_tokens: 7, output_tokens: 2, estimated: false, ..Usage::default() };
    Completion {
        blocks: vec![Block::Text { text: text.into() }],
        finish: Finish::Stop,
        usage: Some(usage),
        identity: Identity::default(),
    }
}

#[tokio::test]
async fn a_call_is_sent_as_the_vendor_wants_it_and_its_stream_is_read() {
    let done = [text("Hel"), text("lo"), stop(), usage(), event("[DONE]"), end()];
    let mut server = Server::start([stream(done)]).await;
    let mut shown = String::new();
    let completion = complete(&registry(), request(server.url("/v1/")), |part| {
        if let Shown::Text(text) = part {
            shown.push_str(text)
        }
    })
    .await
    .unwrap();
    assert_eq!(completion, said("Hello"));
    assert_eq!(shown, "Hello");
    let (_, head, body) = server.request().await;
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    for line in
        [&format!("authorization: Bearer {KEY}"), "x-request-id: step_1", "content-type: application/json"]
    {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} in {head}");
    }
    assert!(body.contains(r#""model":"gpt-x""#) && body.contains(r#""stream":true"#), "{body}");
}

#[tokio::test]
async fn an_endpoint_without_a_secret_sends_none() {
    let mut server = Server::start([stream([stop(), event("[DONE]"), end()])]).await;
    let mut request = request(server.url("/v1"));
    request.endpoint.secret_ref = None;
    complete(&registry(), request, |_| {}).await.unwrap();
    let (_, head, _) = server.request().await;
    assert!(!head.contains("authorization"), "{head}");
}

#[tokio::test]
async fn text_is_shown_before_the_answer_ends_and_dropping_it_closes_the_connection() {
    let mut server = Server::start([stream([text("Hel"), Act::Hang])]).await;
    let mut parts = registry().stream(request(server.url("/v1")));
    assert_eq!(parts.next().await, Some(Ok(Part::Text("Hel".into()))));
    drop(parts);
    server.request().await;
    assert_eq!(server.seen().await, Seen::Closed { connection: 0 });
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_stream() {
    let registry = registry();
    let acts = || stream([text("Hello"), stop(), usage(), event("[DONE]"), end()]);
    let mut server = Server::start([acts(), acts(), acts()]).await;
    for _ in 0..3 {
        let completion = complete(&registry, request(server.url("/v1")), |_| {}).await.unwrap();
        assert_eq!(completion, said("Hello"));
        assert_eq!(server.request().await.0, 0);
    }
}

#[tokio::test]
async fn a_stream_may_end_without_saying_so_if_it_said_why() {
    let server = Server::start([stream([text("Hello"), stop(), usage(), end()])]).await;
    assert_eq!(call(&server).await.unwrap(), said("Hello"));
}

#[tokio::test]
async fn a_server_that_never_says_why_it_ends_has_ended_once_it_has_counted() {
    let acts = || stream([text("Hel"), unreasoned("lo"), usage(), event("[DONE]"), end()]);
    let server = Server::start([acts()]).await;
    assert_eq!(call(&server).await.unwrap(), said("Hello"));
    let server = Server::start([acts()]).await;
    let mut request = request(server.url("/v1"));
    request.endpoint.provider = "openai".into();
    let failure = complete(&registry(), request, |_| {}).await.unwrap_err();
    check(&failure, ErrorClass::Transient, "model_stream_cut");
}

#[tokio::test]
async fn a_stream_that_never_closes_is_over_at_its_last_event() {
    let server = Server::start([stream([text("Hello"), stop(), usage(), event("[DONE]"), Act::Hang])]).await;
    assert_eq!(call(&server).await.unwrap(), said("Hello"));
}

#[tokio::test]
async fn an_answer_in_one_piece_is_accepted() {
    let body = r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",
        "content":"Hello","refusal":null},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}"#;
    let server =
        Server::start([answer("200 OK", "content-type: Application/JSON; charset=utf-8\r\n", body)]).await;
    let mut shown = String::new();
    let completion = complete(&registry(), request(server.url("/v1")), |part| {
        if let Shown::Text(text) = part {
            shown.push_str(text)
        }
    })
    .await;
    assert_eq!((completion.unwrap(), shown.as_str()), (said("Hello"), "Hello"));
}

#[track_caller]
fn check(failure: &Failure, class: ErrorClass, code: &str) {
    assert_eq!((failure.class, failure.code.as_str()), (class, code), "{failure}");
    assert!(!failure.message.contains(KEY), "{failure}");
    assert!(failure.message.contains("`main`"), "{failure}");
}

#[tokio::test]
async fn every_error_status_has_its_code() {
    use ErrorClass::{Permanent, Transient};
    let overflow =
        r#"{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
    let broke =
        r#"{"error":{"message":"pay first","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let cases = [
        ("400 Bad Request", "{}", Permanent, "model_bad_request"),
        ("400 Bad Request", overflow, Permanent, "model_context_overflow"),
        ("401 Unauthorized", "", Permanent, "model_auth"),
        ("403 Forbidden", "<html>", Permanent, "model_auth"),
        ("404 Not Found", r#"{"detail":"no such model"}"#, Permanent, "model_not_found"),
        ("408 Request Timeout", "", Transient, "model_timeout"),
        ("418 Teapot", "", Permanent, "model_bad_request"),
        ("422 Unprocessable", "", Permanent, "model_bad_request"),
        ("429 Too Many", "", Transient, "model_rate_limited"),
        ("429 Too Many", broke, Permanent, "model_quota_exhausted"),
        ("500 Oops", "", Transient, "model_server_error"),
        ("502 Bad Gateway", "", Transient, "model_server_error"),
        ("503 Unavailable", "", Transient, "model_overloaded"),
        ("504 Gateway Timeout", "", Transient, "model_server_error"),
        ("529 Overloaded", "", Transient, "model_overloaded"),
    ];
    for (status, body, class, code) in cases {
        let server = Server::start([answer(status, "", body)]).await;
        check(&call(&server).await.unwrap_err(), class, code);
    }
}

#[tokio::test]
async fn an_error_says_what_the_vendor_said_but_not_the_key() {
    let long = "x".repeat(5000);
    let body = format!(r#"{{"error":{{"message":"wrong key {KEY} and sk-abcdefghijkl, {long}"}}}}"#);
    let server = Server::start([answer("401 Unauthorized", "", &body)]).await;
    let failure = call(&server).await.unwrap_err();
    check(&failure, ErrorClass::Permanent, "model_auth");
    assert!(
        failure.message.contains("401 Unauthorized: wrong key [REDACTED] and [REDACTED], xxx"),
        "{failure}"
    );
    assert!(failure.message.chars().count() < 400, "{failure}");
}

#[tokio::test]
async fn the_vendor_may_say_when_to_come_back() {
    for (header, expected) in [("retry-after: 3\r\n", 3000), ("retry-after-ms: 40\r\n", 40)] {
        let server = Server::start([answer("429 Too Many", header, "{}")]).await;
        let failure = call(&server).await.unwrap_err();
        assert_eq!(failure.retry_after(), Some(Duration::from_millis(expected)), "{header}");
    }
}

#[tokio::test]
async fn broken_answers_are_worth_another_try() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let cases = [
        (vec![Act::Close], "model_stream_cut"),
        (stream([text("Hel"), Act::Close]), "model_stream_cut"),
        (stream([text("Hel"), write("40\r\ndata: {\"cho"), Act::Close]), "model_stream_cut"),
        (stream([text("Hel"), end()]), "model_stream_cut"),
        (stream([text("Hel"), event("[DONE]"), end()]), "model_stream_cut"),
        (stream([unreasoned("Hel"), event("[DONE]"), end()]), "model_stream_cut"),
        (vec![write(head), write("data: {\"choices\":[]}\n\n"), Act::Close], "model_stream_cut"),
        (stream([event("{\"choices\": [{")]), "model_bad_answer"),
        (
            stream([write(chunk(b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n"))]),
            "model_bad_answer",
        ),
        (answer("200 OK", "content-type: text/html\r\n", "<h1>hello</h1>"), "model_bad_answer"),
        (answer("200 OK", "content-type: application/json\r\n", "{\"choices\":["), "model_bad_answer"),
        (answer("200 OK", "content-type: application/json\r\n", "{}"), "model_bad_answer"),
        (vec![write("nonsense\r\n\r\n"), Act::Close], "model_bad_answer"),
    ];
    for (acts, code) in cases {
        let server = Server::start([acts.clone()]).await;
        let failure = call(&server).await.expect_err(&format!("{acts:?}"));
        check(&failure, ErrorClass::Transient, code);
    }
}

#[tokio::test]
async fn waiting_has_bounds() {
    for (acts, option, code) in [
        (vec![Act::Hang], "first_byte_timeout_ms", "model_timeout"),
        (stream([text("Hel"), Act::Hang]), "idle_timeout_ms", "model_timeout"),
        (stream([text("Hel"), Act::Hang]), "timeout_ms", "model_too_slow"),
    ] {
        let server = Server::start([acts]).await;
        let mut request = request(server.url("/v1"));
        request.endpoint.options.insert(option.into(), "40".into());
        let failure = complete(&registry(), request, |_| {}).await.unwrap_err();
        check(&failure, ErrorClass::Transient, code);
    }
}

#[tokio::test]
async fn an_answer_over_the_cap_is_refused_for_good() {
    let lot = "x".repeat(1024 * 1024);
    let server = Server::start([stream((0..9).map(|_| text(&lot)))]).await;
    check(&call(&server).await.unwrap_err(), ErrorClass::Permanent, "model_answer_too_large");
    let endless = (0..9).map(|_| write(chunk(lot.as_bytes())));
    let server = Server::start([stream([write(chunk(b"data: "))].into_iter().chain(endless))]).await;
    check(&call(&server).await.unwrap_err(), ErrorClass::Permanent, "model_answer_too_large");
}

#[tokio::test]
async fn what_can_not_be_reached_says_why() {
    let fail = async |base_url: String, allow_private: bool| {
        let mut request = request(base_url);
        request.endpoint.allow_private = allow_private;
        complete(&registry(), request, |_| {}).await.unwrap_err()
    };
    let nobody = format!("http://{}", closed_port().await);
    check(&fail(nobody.clone(), true).await, ErrorClass::Transient, "model_unreachable");
    check(&fail(nobody, false).await, ErrorClass::Permanent, "model_address_refused");
    check(&fail("gopher://x".into(), true).await, ErrorClass::Permanent, "model_bad_endpoint");
    let server = Server::start([answer("301 Moved", "location: http://127.0.0.1/\r\n", "")]).await;
    check(&fail(server.url("/v1"), true).await, ErrorClass::Permanent, "model_redirected");
}

#[tokio::test]
async fn a_missing_secret_stops_a_call_before_it_is_sent() {
    // Nobody listens there, so had it been sent it would have failed otherwise.
    let mut request = request(format!("http://{}", closed_port().await));
    request.endpoint.secret_ref = Some("other".into());
    let failure = complete(&registry(), request, |_| {}).await.unwrap_err();
    assert_eq!((failure.class, failure.code.as_str()), (ErrorClass::Permanent, "secret_not_found"));
}
