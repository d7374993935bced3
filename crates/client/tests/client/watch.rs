//! Watching resources over connections that drop, and the calls that change them.

use crate::support::{Scripted, answer, events};
use futures_util::StreamExt;
use ostler_client::{ChangeKind, Client, EventQuery, NewToken, UserChange, WatchQuery, Watched, Writing};
use ostler_spec::Kind;
use serde_json::{Value, json};

const JSON: &str = "application/json";

fn client(server: &Scripted) -> Client {
    Client::new(&server.url, "ostler_secret").unwrap()
}

fn change(id: u32, kind: &str, name: &str) -> String {
    let data = json!({ "type": kind, "resource": { "metadata": { "name": name } } });
    format!("id: {id}\nevent: resource\ndata: {data}\n\n")
}

#[tokio::test]
async fn a_watch_goes_on_behind_the_last_change() {
    let cut = change(3, "deleted", "a");
    let server = Scripted::start(vec![
        events(&format!(": alive\n\n{}{}", change(1, "added", "a"), change(2, "updated", "a"))),
        // Cut in the middle of a change, which therefore did not come.
        events(&cut[..cut.len() / 2]),
        events(&format!("{cut}{}", change(4, "renamed", "a"))),
        answer(
            "403 Forbidden",
            "application/problem+json",
            r#"{"title":"Forbidden","status":403,"code":"forbidden"}"#,
        ),
    ]);
    let query = WatchQuery { name: Some("a".into()), selector: Some("x=y".into()), templates: true };
    let mut stream = client(&server).watch(Kind::Tool, &query);
    let (mut seen, mut refused) = (Vec::new(), None);
    while let Some(item) = stream.next().await {
        match item {
            Ok(Watched::Came(change)) => seen.push(change.kind),
            Ok(Watched::Reconnecting { .. }) => {}
            Err(error) => refused = error.code().map(str::to_owned),
        }
    }
    assert_eq!(seen, [ChangeKind::Added, ChangeKind::Updated, ChangeKind::Deleted, ChangeKind::Other]);
    assert_eq!(refused.as_deref(), Some("forbidden"), "who is refused does not try again");
    let heads: Vec<String> = (0..4).map(|_| server.asked.recv().unwrap().head).collect();
    assert!(
        heads[0]
            .starts_with("GET /v1/tools/watch?namespace=default&name=a&labelSelector=x%3Dy&mode=template "),
        "{}",
        heads[0]
    );
    let id =
        |head: &String| head.lines().find_map(|line| Some(line.strip_prefix("last-event-id: ")?.to_owned()));
    let ids: Vec<Option<String>> = heads.iter().map(id).collect();
    assert_eq!(ids, [None, Some("2".into()), Some("2".into()), Some("4".into())]);
}

#[tokio::test]
async fn a_watch_cut_before_anything_happened_goes_on_behind_where_it_began() {
    let server = Scripted::start(vec![
        events(": alive\nid: 41\n\n"),
        events("id: 42\nevent: event\ndata: {\"id\":42}\n\n"),
    ]);
    let mut stream = client(&server).watch_events(&EventQuery::default());
    let Some(Ok(Watched::Reconnecting { .. })) = stream.next().await else { panic!("it was not cut") };
    let Some(Ok(Watched::Came(event))) = stream.next().await else { panic!("nothing came") };
    assert_eq!(event["id"], 42);
    let heads: Vec<String> = (0..2).map(|_| server.asked.recv().unwrap().head).collect();
    assert!(!heads[0].contains("last-event-id"), "{}", heads[0]);
    assert!(heads[1].contains("last-event-id: 41\r\n"), "{}", heads[1]);
}

#[tokio::test]
async fn what_is_no_change_ends_a_watch() {
    let server = Scripted::start(vec![events("id: 1\nevent: resource\ndata: nonsense\n\n")]);
    let mut stream = client(&server).watch(Kind::Tool, &WatchQuery::default());
    assert!(stream.next().await.unwrap().is_err());
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn events_of_the_server_are_asked_for_as_they_should_be() {
    let server = Scripted::start(vec![events("id: 9\nevent: event\ndata: {\"id\":9}\n\n")]);
    let query = EventQuery { since: Some(8), kind: Some("Task".into()), name: None };
    let mut stream = client(&server).in_namespace("*").watch_events(&query);
    let Some(Ok(Watched::Came(event))) = stream.next().await else { panic!("nothing came") };
    assert_eq!(event["id"], 9);
    let head = server.asked.recv().unwrap().head;
    assert!(head.starts_with("GET /v1/events/watch?namespace=*&since=8&kind=Task "), "{head}");
}

#[tokio::test]
async fn a_replacement_names_the_version_it_replaces() {
    let stored = json!({"kind": "Tool", "metadata": {"name": "t"}});
    let server =
        Scripted::start(vec![answer("200 OK", JSON, &stored.to_string()), answer("201 Created", JSON, "{}")]);
    client(&server).replace(Kind::Tool, "t", &stored, "7").await.unwrap();
    let asked = server.asked.recv().unwrap();
    assert!(asked.head.starts_with("PUT /v1/tools/t?namespace=default "), "{}", asked.head);
    assert!(asked.head.contains("if-match: \"7\""), "{}", asked.head);
    assert_eq!(serde_json::from_str::<Value>(&asked.body).unwrap(), stored);
    client(&server).apply_as(&stored, Writing::Dry).await.unwrap();
    assert!(server.asked.recv().unwrap().head.starts_with("POST /v1/tools?dry_run=true "));
}

#[tokio::test]
async fn who_may_come_in_is_read_and_told() {
    let server = Scripted::start(vec![
        answer("200 OK", JSON, r#"{"items":[{"name":"a","role":"reader","newer":1}]}"#),
        answer("200 OK", JSON, r#"{"items":[{"username":"ada","role":"admin","namespaces":["*"]}]}"#),
        answer("201 Created", JSON, r#"{"name":"b","role":"writer","namespaces":["n"],"token":"ostler_b"}"#),
        // As the server says it: the same under both.
        answer("200 OK", JSON, r#"{"name":"ada","username":"ada","role":"reader"}"#),
        answer("200 OK", JSON, r#"{"items":[{"role":"reader"}]}"#),
        "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_owned(),
    ]);
    let client = client(&server);
    assert_eq!(client.tokens().await.unwrap()[0].role, "reader");
    assert_eq!(client.users().await.unwrap()[0].name, "ada");
    let wanted =
        NewToken { name: "b".into(), role: "writer".into(), namespaces: vec!["n".into()], expires_at: None };
    assert_eq!(client.create_token(&wanted).await.unwrap().token.as_deref(), Some("ostler_b"));
    let change = UserChange { role: Some("reader".into()), ..UserChange::default() };
    assert_eq!(client.change_user("ada", &change).await.unwrap().name, "ada");
    assert!(client.users().await.is_err(), "nobody is called nothing");
    client.delete_token("a/b").await.unwrap();
    let asked: Vec<_> = server.asked.try_iter().collect();
    assert_eq!(asked[2].body, r#"{"name":"b","role":"writer","namespaces":["n"]}"#);
    assert_eq!(asked[3].body, r#"{"role":"reader"}"#);
    assert!(asked[5].head.starts_with("DELETE /v1/tokens/a%2Fb "), "{}", asked[5].head);
}

#[tokio::test]
async fn a_task_of_a_system_is_understood_and_so_is_what_is_new_in_its_log() {
    let task = json!({"apiVersion": "ostler.dev/v1", "kind": "Task",
        "metadata": {"name": "t", "namespace": "default", "uid": "u", "resourceVersion": "1", "createdAt": "2026-01-02T03:04:05Z"},
        "spec": {"system": "report"}, "status": {"phase": "Running", "state": "running"}});
    let messages = json!({"name": "t", "total": 1, "messages": [{"from_agent": "system", "to_agent": "writer", "phase": "Running"}]});
    let log = json!({"last": 2, "items": [
        {"seq": 1, "position": 1, "task": "u", "at": 1, "body": {"type": "task_accepted", "system": "report"}},
        {"seq": 2, "position": 2, "task": "u", "at": 2, "body": {"type": "attempt_started", "run": 7, "agent": "writer"}},
    ]});
    let server = Scripted::start(vec![
        answer("200 OK", JSON, &task.to_string()),
        answer("200 OK", JSON, &messages.to_string()),
        answer("200 OK", JSON, &log.to_string()),
    ]);
    let client = client(&server);
    assert_eq!(client.task("t").await.unwrap().subject(), "system/report");
    assert_eq!(client.messages("t").await.unwrap()[0].to_agent, "writer");
    let events = client.events("t", 0, None).await.unwrap().items;
    assert_eq!((events[1].name(), events[1].agent()), ("attempt_started", Some("writer")));
}

#[test]
fn who_vouches_has_to_be_a_certificate() {
    let refused = Client::trusting("https://ostler.example", "t", Some(b"nonsense"));
    assert!(refused.is_err());
    assert!(
        Client::trusting("http://127.0.0.1:1", "t", Some(b"nonsense")).is_ok(),
        "http needs nobody to vouch"
    );
}
