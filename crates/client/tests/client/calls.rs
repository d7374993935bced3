//! Calls against a scripted server: what is asked, and what comes of the answer.

use crate::support::{Scripted, answer};
use ostler_client::{Client, ClientError, EventBody, PageRequest, TaskQuery, view::StepOutcome};
use ostler_spec::Kind;
use serde_json::{Value, json};

const JSON: &str = "application/json";

fn client(server: &Scripted) -> Client {
    Client::new(&server.url, "ostler_secret").unwrap()
}

fn task(phase: &str) -> Value {
    json!({
        "apiVersion": "ostler.dev/v1", "kind": "Task",
        "metadata": {"name": "t-1", "namespace": "default", "uid": "task_1", "resourceVersion": "3",
            "createdAt": "2026-01-02T03:04:05.006Z"},
        "spec": {"agent": "a", "input": {"message": "hi"}, "priority": "normal",
            "retry": {"max_attempts": 1, "backoff": "0s"}},
        "status": {"phase": phase, "state": "succeeded", "run": "run_1", "session": "session_1",
            "output": {"last_output": "hello"}, "lastEvent": 4, "newer": true,
            "usage": {"input_tokens": 1, "output_tokens": 2, "estimated": false}},
    })
}

#[tokio::test]
async fn a_token_goes_with_every_request_and_is_not_printed() {
    let server = Scripted::start(vec![answer("200 OK", JSON, r#"{"name":"ostler","version":"0.1.0"}"#)]);
    let client = client(&server);
    assert_eq!(client.version().await.unwrap().version, "0.1.0");
    let asked = server.asked.recv().unwrap();
    assert!(asked.head.starts_with("GET /v1/version HTTP/1.1\r\n"), "{}", asked.head);
    assert!(asked.head.contains("authorization: Bearer ostler_secret"), "{}", asked.head);
    assert!(!format!("{client:?}").contains("secret"));
}

#[tokio::test]
async fn names_and_namespaces_are_escaped() {
    let server = Scripted::start(vec![answer("200 OK", JSON, &task("Succeeded").to_string())]);
    let view = client(&server).in_namespace("a b&c").task("x/y?z").await.unwrap();
    assert!(view.succeeded() && view.is_ended());
    assert_eq!(view.output(), Some("hello"));
    let head = server.asked.recv().unwrap().head;
    assert!(head.starts_with("GET /v1/tasks/x%2Fy%3Fz?namespace=a+b%26c HTTP/1.1"), "{head}");
}

#[tokio::test]
async fn a_name_that_a_url_would_swallow_is_not_sent() {
    let client = Client::new("http://127.0.0.1:1", "").unwrap();
    for name in ["", ".", ".."] {
        let error = client.delete(Kind::Agent, name).await.unwrap_err();
        assert!(matches!(error, ClientError::BadName { .. }), "{name:?}: {error}");
    }
}

#[tokio::test]
async fn a_manifest_goes_to_the_collection_of_its_kind() {
    let stored = json!({"kind": "ModelEndpoint", "metadata": {"name": "m"}});
    let server = Scripted::start(vec![answer("201 Created", JSON, &stored.to_string())]);
    assert_eq!(client(&server).apply(&stored).await.unwrap(), stored);
    let asked = server.asked.recv().unwrap();
    assert!(asked.head.starts_with("POST /v1/model-endpoints HTTP/1.1"), "{}", asked.head);
    assert_eq!(serde_json::from_str::<Value>(&asked.body).unwrap(), stored);
    let error = client(&server).apply(&json!({"kind": "Castle"})).await.unwrap_err();
    assert!(matches!(error, ClientError::UnknownKind));
}

#[tokio::test]
async fn a_task_that_existed_is_told_from_a_new_one() {
    let body = task("Succeeded").to_string();
    let server = Scripted::start(vec![answer("201 Created", JSON, &body), answer("200 OK", JSON, &body)]);
    let manifest = json!({"kind": "Task", "spec": {"agent": "a"}});
    assert!(!client(&server).create_task(&manifest).await.unwrap().existed);
    assert!(client(&server).in_namespace("n").create_task(&manifest).await.unwrap().existed);
    let heads = [server.asked.recv().unwrap().head, server.asked.recv().unwrap().head];
    assert!(heads[0].starts_with("POST /v1/tasks?namespace=default "), "{}", heads[0]);
    assert!(heads[1].starts_with("POST /v1/tasks?namespace=n "), "{}", heads[1]);
}

#[tokio::test]
async fn lists_are_asked_for_by_page() {
    let page = json!({"items": [task("Running")], "continue": "task_0"}).to_string();
    let resources = json!({"items": [{"kind": "Tool"}]}).to_string();
    let server = Scripted::start(vec![answer("200 OK", JSON, &page), answer("200 OK", JSON, &resources)]);
    let query = TaskQuery {
        states: vec!["queued".into(), "running".into()],
        archived: true,
        limit: Some(5),
        before: Some("task_9".into()),
        ..TaskQuery::default()
    };
    assert_eq!(client(&server).tasks(&query).await.unwrap().next.as_deref(), Some("task_0"));
    let page =
        PageRequest { limit: Some(2), after: Some("default/a".into()), selector: Some("team=a,!old".into()) };
    let tools = client(&server).in_namespace("*").list(Kind::Tool, &page).await.unwrap();
    assert_eq!((tools.items.len(), tools.next), (1, None));
    let heads = [server.asked.recv().unwrap().head, server.asked.recv().unwrap().head];
    let expected =
        "GET /v1/tasks?namespace=default&state=queued%2Crunning&archived=true&limit=5&before=task_9 ";
    assert!(heads[0].starts_with(expected), "{}", heads[0]);
    assert!(
        heads[1].starts_with(
            "GET /v1/tools?namespace=*&limit=2&after=default%2Fa&labelSelector=team%3Da%2C%21old "
        ),
        "{}",
        heads[1]
    );
}

#[tokio::test]
async fn what_is_kept_is_told_from_what_goes_on() {
    let items = json!({"items": []}).to_string();
    let made = task("Pending").to_string();
    let answers = vec![
        answer("200 OK", JSON, &items),
        answer("200 OK", JSON, &items),
        answer("200 OK", JSON, &items),
        answer("201 Created", JSON, &made),
    ];
    let server = Scripted::start(answers);
    let page = PageRequest { after: Some("default/a".into()), ..PageRequest::default() };
    client(&server).templates(&page).await.unwrap();
    client(&server).list(Kind::Session, &PageRequest::default()).await.unwrap();
    client(&server).sessions(&PageRequest::default()).await.unwrap();
    client(&server).in_namespace("n").rerun(&json!({"metadata": {"name": "digest"}})).await.unwrap();
    for expected in [
        "GET /v1/tasks?namespace=default&mode=template&after=default%2Fa ",
        "GET /v1/sessions?namespace=default&mode=declared ",
        "GET /v1/sessions?namespace=default&mode=live ",
    ] {
        let asked = server.asked.recv().unwrap();
        assert!(asked.head.starts_with(expected), "{}", asked.head);
    }
    let asked = server.asked.recv().unwrap();
    assert!(asked.head.starts_with("POST /v1/tasks?namespace=n&rerun=true "), "{}", asked.head);
    assert_eq!(serde_json::from_str::<Value>(&asked.body).unwrap()["metadata"], json!({"name": "digest"}));
}

#[tokio::test]
async fn namespaces_are_read_however_they_are_wrapped() {
    let bodies = [json!({"namespaces": ["a", "b"]}), json!(["a", "b"])];
    let server =
        Scripted::start(bodies.iter().map(|body| answer("200 OK", JSON, &body.to_string())).collect());
    for body in &bodies {
        assert_eq!(client(&server).namespaces().await.unwrap(), ["a", "b"], "{body}");
    }
}

#[tokio::test]
async fn a_problem_keeps_what_the_server_said() {
    let problem = json!({
        "type": "about:blank", "title": "Bad Request", "status": 400, "code": "invalid_manifest",
        "detail": "the manifest has 1 problem", "remedy": "fix it", "request_id": "r1",
        "problems": [{"path": "/spec/limts", "message": "unknown field", "suggestion": "limits"}],
    });
    let body = answer("400 Bad Request", "application/problem+json", &problem.to_string());
    let server = Scripted::start(vec![body]);
    let error = client(&server).get(Kind::Agent, "a").await.unwrap_err();
    assert_eq!(error.code(), Some("invalid_manifest"));
    assert_eq!(error.to_string(), "the manifest has 1 problem");
    let problem = error.problem().unwrap();
    assert_eq!(problem.remedy.as_deref(), Some("fix it"));
    assert_eq!(problem.problems[0].to_string(), "spec.limts: unknown field, did you mean \"limits\"?");
    assert!(!error.may_pass());
}

#[tokio::test]
async fn an_answer_of_someone_else_is_shown() {
    let server = Scripted::start(vec![answer("502 Bad Gateway", "text/html", "<h1>Bad gateway</h1>")]);
    let error = client(&server).health().await.unwrap_err();
    assert_eq!(error.to_string(), "an answer that is not ours: status 502: <h1>Bad gateway</h1>");
    assert!(error.may_pass());
}

#[tokio::test]
async fn nobody_there_is_an_error_of_its_own() {
    let server = Scripted::start(vec![answer("200 OK", JSON, r#"{"status":"ok"}"#)]);
    let client = client(&server);
    assert_eq!(client.health().await.unwrap().status, "ok");
    server.asked.recv().unwrap();
    // The script is at its end; the port is closed once the thread is gone.
    let error = loop {
        match client.health().await {
            Err(error @ ClientError::ConnectionRefused { .. }) => break error,
            _ => tokio::task::yield_now().await,
        }
    };
    assert_eq!(error.to_string(), format!("nothing answers at {}", server.url));
}

#[test]
fn an_address_that_is_none_is_refused() {
    for url in ["", "127.0.0.1:7070", "ftp://x", "http://"] {
        assert!(matches!(Client::new(url, ""), Err(ClientError::BadUrl { .. })), "{url:?} was taken");
    }
}

#[tokio::test]
async fn steps_and_events_are_typed() {
    let steps = json!({"items": [{
        "id": {"run": "run_1", "index": 0}, "kind": {"type": "model", "model": "m"}, "attempt": 1,
        "opened_at": 5, "state": {"state": "done", "outcome": {"outcome": "ok"}, "at": 9, "took_ms": 4,
            "usage": {"input_tokens": 1, "output_tokens": 2}},
    }]});
    let events = json!({"last": 2, "items": [
        {"seq": 1, "position": 7, "task": "task_1", "at": 5, "body": {"type": "step_finished", "run": "run_1",
            "step": 0, "attempt": 1, "kind": {"type": "tool", "call": {"id": "c", "name": "lookup"},
            "arguments": "{}", "idempotent": true}, "outcome": "failed",
            "failure": {"code": "c", "class": "transient", "message": "m"}, "started_at": 1, "took_ms": 12,
            "usage": {"input_tokens": 0, "output_tokens": 0, "estimated": false}}},
        {"seq": 2, "position": 8, "task": "task_1", "at": 6, "body": {"type": "from_the_future", "x": 1}},
    ]});
    let server = Scripted::start(vec![
        answer("200 OK", JSON, &steps.to_string()),
        answer("200 OK", JSON, &events.to_string()),
    ]);
    let client = client(&server);
    assert_eq!(client.steps("t").await.unwrap()[0].kind.name(), "m");
    let page = client.events("t", 0, None).await.unwrap();
    let EventBody::StepFinished(step) = &page.items[0].body else { panic!("{:?}", page.items[0]) };
    assert_eq!(step.kind.name(), "lookup");
    assert!(matches!(step.outcome, StepOutcome::Failed { .. }));
    assert_eq!((page.items[1].name(), &page.items[1].body), ("from_the_future", &EventBody::Other));
    assert_eq!(serde_json::to_value(&page.items[1]).unwrap(), events["items"][1], "kept as it came");
}

#[tokio::test]
async fn a_backup_is_there_only_once_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.db");
    let whole = answer("200 OK", "application/octet-stream", "0123456789");
    let cut = whole[..whole.len() - 3].to_owned();
    let server = Scripted::start(vec![cut, whole]);
    assert!(matches!(client(&server).backup(&path).await, Err(ClientError::Connection { .. })));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    assert_eq!(client(&server).backup(&path).await.unwrap(), 10);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "0123456789");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
