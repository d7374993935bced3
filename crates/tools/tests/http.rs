//! HTTP tools over real sockets: what is sent, and what each answer and each failure comes to.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../../net/tests/support/mod.rs"]
mod support;

use ostler_kernel::{
    ErrorClass, Failure,
    plan::{AuthForm, AuthPlan, ToolPlan},
    retry::{Jitter, RetryPolicy},
};
use ostler_net::Client;
use ostler_secrets::Secrets;
use ostler_tools::{Redacting, Registry, ToolRequest, Toolbox};
use serde_json::{Value, json};
use support::{Act, Seen, Server, TokioRuntime, answer, closed_port, write};

fn secrets() -> Secrets {
    Secrets::new(|name| (name == "OSTLER_SECRET_LOOKUP").then(|| KEY.to_owned()))
}

const KEY: &str = "user:hush-0123";

fn registry() -> Registry {
    let runtime = TokioRuntime::new();
    Registry::standard(Client::new(runtime.clone()).unwrap(), runtime, secrets()).unwrap()
}

fn request(endpoint: String) -> ToolRequest {
    let retry = RetryPolicy { max_attempts: 1, backoff_ms: 1, max_backoff_ms: 1, jitter: Jitter::None };
    let tool = ToolPlan {
        name: "t".into(),
        way: "http".into(),
        endpoint,
        description: String::new(),
        input_schema: Some(json!({"type": "object"})),
        idempotent: false,
        timeout_ms: 5_000,
        retry,
        allow_private: true,
        auth: None,
    };
    ToolRequest {
        tool,
        request_id: "run_1-2".into(),
        namespace: "default".into(),
        agent: "a".into(),
        task: "task".into(),
        arguments: json!({"city": "Oslo"}),
    }
}

/// A call that shows the secret in this way.
async fn show(server: &Server, secret: &str, shown: AuthForm) -> Result<String, Failure> {
    let mut request = request(server.url("/tool"));
    request.tool.auth = Some(AuthPlan { secret_ref: secret.to_owned(), shown });
    registry().call(request).await
}

#[tokio::test]
async fn a_call_shows_its_secret_as_the_tool_wants_it() {
    let header = AuthForm::Header { header: "X-Api-Key".to_owned() };
    for (shown, line) in [
        (AuthForm::Bearer, "authorization: Bearer user:hush-0123"),
        (AuthForm::Basic, "authorization: Basic dXNlcjpodXNoLTAxMjM="),
        (header, "x-api-key: user:hush-0123"),
    ] {
        let mut server = Server::start([answer("200 OK", "", "fine")]).await;
        assert_eq!(show(&server, "lookup", shown).await.unwrap(), "fine");
        let (_, head, _) = server.request().await;
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} in {head}");
    }
}

/// What a caller sees of an answer that repeats what the tool was shown, or of a failure that does.
async fn repeated(shown: AuthForm, acts: Vec<Act>) -> String {
    let server = Server::start([acts]).await;
    let (runtime, secrets) = (TokioRuntime::new(), secrets());
    let redactor = secrets.redactor().clone();
    let registry = Registry::standard(Client::new(runtime.clone()).unwrap(), runtime, secrets).unwrap();
    let mut request = request(server.url("/tool"));
    request.tool.auth = Some(AuthPlan { secret_ref: "lookup".to_owned(), shown });
    match Redacting::new(registry, redactor).call(request).await {
        Ok(result) => result,
        Err(failure) => failure.message,
    }
}

#[tokio::test]
async fn a_tool_that_repeats_the_password_alone_does_not_give_it_away() {
    // The password, its base64, that of the pair, and as part of an address.
    let said = "hush-0123 aHVzaC0wMTIz dXNlcjpodXNoLTAxMjM= https://user:hush-0123@h/";
    for acts in [answer("200 OK", "", said), answer("500 No", "", said), answer("403 No", "", said)] {
        let seen = repeated(AuthForm::Basic, acts).await;
        assert!(seen.contains("[REDACTED]"), "{seen}");
        for part in ["hush-0123", "aHVzaC0wMTI", "dXNlcjpodXNo", "odXNoLTAxMjM"] {
            assert!(!seen.contains(part), "{part} in {seen}");
        }
    }
    let seen = repeated(AuthForm::Bearer, answer("200 OK", "", "user: hush-0123")).await;
    assert_eq!(seen, "user: hush-0123", "a bearer has no parts");
}

#[tokio::test]
async fn of_a_secret_that_an_excerpt_is_cut_in_nothing_is_left() {
    let said = |before: usize| format!("{} {KEY}", "x".repeat(before));
    let envelope = |before: usize| json!({"status": "error", "error": {"message": said(before)}}).to_string();
    for before in 290..300 {
        for acts in [answer("500 No", "", &said(before)), answer("200 OK", "", &envelope(before))] {
            let seen = repeated(AuthForm::Bearer, acts).await;
            assert!(seen.contains("xxx ") && !seen.contains("use"), "{before}: {seen}");
        }
    }
    let whole = said(10);
    let cut = &whole[..whole.len() - 2];
    assert_eq!(repeated(AuthForm::Bearer, answer("200 OK", "", cut)).await, "xxxxxxxxxx [REDACTED]");
}

#[tokio::test]
async fn a_long_redirect_shows_nothing_of_a_secret_that_it_repeats() {
    for before in 185..200 {
        let location = format!("location: http://example.com/{}/hush-0123\r\n", "x".repeat(before - 20));
        let seen = repeated(AuthForm::Basic, answer("302 Elsewhere", &location, "")).await;
        assert!(seen.contains("http://example.com/") && !seen.contains("hush"), "{before}: {seen}");
    }
}

#[tokio::test]
async fn without_its_secret_a_tool_is_not_called() {
    let server = Server::start([answer("200 OK", "", "fine")]).await;
    let failure = show(&server, "other", AuthForm::Bearer).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.is_retryable()), ("secret_resolution_failed", false));
    assert!(failure.message.contains("OSTLER_SECRET_OTHER"), "{failure}");
    for header in ["Host", "content-length", "not a header"] {
        let failure =
            show(&server, "lookup", AuthForm::Header { header: header.to_owned() }).await.unwrap_err();
        assert_eq!(failure.code, "runtime_policy_invalid");
        assert!(!failure.message.contains("hush"), "{failure}");
    }
}

async fn call(server: &Server) -> Result<String, Failure> {
    registry().call(request(server.url("/tool"))).await
}

#[tokio::test]
async fn the_arguments_are_posted_and_the_answer_is_the_result() {
    let mut server = Server::start([answer("200 OK", "", " 21 degrees\n")]).await;
    assert_eq!(call(&server).await.unwrap(), "21 degrees");
    let (_, head, body) = server.request().await;
    assert!(head.starts_with("POST /tool HTTP/1.1\r\n"), "{head}");
    for line in ["content-type: application/json", "x-request-id: run_1-2", "idempotency-key: run_1-2"] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} in {head}");
    }
    assert_eq!(body, r#"{"city":"Oslo"}"#);
}

#[tokio::test]
async fn a_tool_without_a_schema_gets_the_bare_input() {
    let generic = json!({"input": "say \"hi\""});
    let cases: [(Option<Value>, Value, &str); 4] = [
        (None, generic.clone(), "say \"hi\""),
        (None, json!({"input": 7}), r#"{"input":7}"#),
        (None, json!({"input": "x", "more": 1}), r#"{"input":"x","more":1}"#),
        (Some(json!({"type": "object"})), generic, r#"{"input":"say \"hi\""}"#),
    ];
    for (schema, arguments, expected) in cases {
        let mut server = Server::start([answer("200 OK", "", "")]).await;
        let mut request = request(server.url("/"));
        request.tool.input_schema = schema;
        request.arguments = arguments;
        assert_eq!(registry().call(request).await.unwrap(), "");
        assert_eq!(server.request().await.2, expected);
    }
}

#[tokio::test]
async fn an_envelope_is_opened_and_other_json_is_a_result() {
    let json = "content-type: application/json\r\n";
    let server = Server::start([
        answer("200 OK", json, r#"{"tool_contract_version":"v1","status":"ok","output":{"result":"42"}}"#),
        answer("200 OK", json, r#"{"status":"shipped"}"#),
        answer("200 OK", json, r#"{"status":"denied","error":{"message":"not you"}}"#),
    ])
    .await;
    assert_eq!(call(&server).await.unwrap(), "42");
    assert_eq!(call(&server).await.unwrap(), r#"{"status":"shipped"}"#);
    let failure = call(&server).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("permission_denied", "not you"));
}

#[track_caller]
fn check(failure: &Failure, class: ErrorClass, code: &str) {
    assert_eq!((failure.class, failure.code.as_str()), (class, code), "{failure}");
}

#[tokio::test]
async fn every_error_status_has_its_code() {
    use ErrorClass::{OutcomeUnknown, Permanent, Transient};
    let cases = [
        ("400 Bad Request", Permanent, "execution_failed"),
        ("401 Unauthorized", Permanent, "auth_invalid"),
        ("403 Forbidden", Permanent, "auth_forbidden"),
        ("404 Not Found", Permanent, "execution_failed"),
        ("408 Request Timeout", Transient, "timeout"),
        ("429 Too Many", Transient, "execution_failed"),
        ("500 Oops", Transient, "execution_failed"),
        ("503 Unavailable", Transient, "execution_failed"),
        ("504 Gateway Timeout", OutcomeUnknown, "outcome_unknown"),
        ("302 Elsewhere", Permanent, "execution_failed"),
    ];
    for (status, class, code) in cases {
        let server = Server::start([answer(status, "", "the token=hush is wrong")]).await;
        let failure = call(&server).await.unwrap_err();
        check(&failure, class, code);
        assert!(!failure.message.contains("hush"), "{failure}");
    }
}

/// Ways for a call to break: before it was sent, and behind that.
fn interruptions() -> [Vec<Act>; 4] {
    [
        vec![Act::Close],
        vec![Act::Hang],
        vec![write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"), Act::Close],
        vec![write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"), Act::Hang],
    ]
}

#[tokio::test]
async fn a_call_that_breaks_off_once_sent_has_an_unknown_outcome() {
    for acts in interruptions() {
        let server = Server::start([acts]).await;
        let mut request = request(server.url("/"));
        request.tool.timeout_ms = 60;
        check(&registry().call(request).await.unwrap_err(), ErrorClass::OutcomeUnknown, "outcome_unknown");
    }
}

#[tokio::test]
async fn an_idempotent_call_that_breaks_off_is_made_again_under_the_same_id() {
    for acts in interruptions() {
        let mut server = Server::start([acts, answer("200 OK", "", "done")]).await;
        let mut request = request(server.url("/"));
        request.tool.timeout_ms = 60;
        request.tool.idempotent = true;
        request.tool.retry.max_attempts = 2;
        assert_eq!(registry().call(request).await.unwrap(), "done");
        let mut ids = Vec::new();
        while ids.len() < 2 {
            if let Seen::Request { head, .. } = server.seen().await {
                ids.extend(head.lines().find(|line| line.starts_with("x-request-id")).map(str::to_owned));
            }
        }
        assert_eq!(ids, ["x-request-id: run_1-2", "x-request-id: run_1-2"]);
    }
}

#[tokio::test]
async fn a_call_that_was_never_sent_is_just_a_failure() {
    let nobody = format!("http://{}/", closed_port().await);
    check(
        &registry().call(request(nobody.clone())).await.unwrap_err(),
        ErrorClass::Transient,
        "execution_failed",
    );
    let mut public = request(nobody);
    public.tool.allow_private = false;
    let refused = registry().call(public).await.unwrap_err();
    check(&refused, ErrorClass::Permanent, "runtime_policy_invalid");
    let metadata = registry().call(request("http://169.254.169.254/".into())).await.unwrap_err();
    check(&metadata, ErrorClass::Permanent, "runtime_policy_invalid");
}

#[tokio::test]
async fn a_result_has_a_bound() {
    let server = Server::start([answer("200 OK", "", &"x".repeat(4 * 1024 * 1024 + 1))]).await;
    check(&call(&server).await.unwrap_err(), ErrorClass::Permanent, "execution_failed");
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let mut server = Server::start([vec![Act::Hang]]).await;
    let registry = registry();
    let mut call = Box::pin(registry.call(request(server.url("/"))));
    tokio::select! {
        _ = &mut call => panic!("nobody answered"),
        _ = server.request() => {}
    }
    drop(call);
    assert_eq!(server.seen().await, Seen::Closed { connection: 0 });
}

#[tokio::test]
async fn a_redirect_is_followed_where_the_call_stays_whole() {
    let to = |status: &str| answer(status, "location: /moved\r\n", "");
    let mut server = Server::start([to("307 Moved"), answer("200 OK", "", "there")]).await;
    assert_eq!(call(&server).await.unwrap(), "there");
    server.request().await;
    let again = loop {
        if let Seen::Request { head, body, .. } = server.seen().await {
            break (head.starts_with("POST /moved "), body);
        }
    };
    assert_eq!(again, (true, r#"{"city":"Oslo"}"#.to_owned()));

    let server = Server::start([to("302 Found")]).await;
    let failure = call(&server).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert!(failure.message.contains("/moved") && failure.message.contains("without its body"), "{failure}");
}

#[tokio::test]
async fn a_redirect_reaches_nothing_private() {
    let elsewhere = Server::start([]).await;
    let location = format!("location: {}\r\n", elsewhere.url("/"));
    let server = Server::start([answer("307 Moved", &location, "")]).await;
    let failure = call(&server).await.unwrap_err();
    assert!(failure.code.ends_with("runtime_policy_invalid"), "{failure}");
    assert!(failure.message.contains("a loopback address"), "{failure}");
}
