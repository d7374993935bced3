//! Following a task over connections that drop.

use crate::support::{Scripted, answer, events};
use futures_util::StreamExt;
use ostler_client::{Client, ClientError, Followed};

fn event(seq: u64, kind: &str) -> String {
    let body = match kind {
        "task_ended" => {
            r#"{"type":"task_ended","state":{"state":"succeeded"},"usage":{"input_tokens":0,"output_tokens":0}}"#
        }
        _ => r#"{"type":"run_ready","run":"run_1","reason":"due"}"#,
    };
    let data = format!(r#"{{"seq":{seq},"position":{seq},"task":"task_1","at":0,"body":{body}}}"#);
    format!("id: {seq}\nevent: {kind}\ndata: {data}\n\n")
}

const DELTA: &str = "event: delta\ndata: {\"run\":\"run_1\",\"step\":0,\"offset\":0,\"text\":\"hi\"}\n\n";

async fn follow(server: &Scripted, after: u64) -> (Vec<String>, Option<ClientError>) {
    let client = Client::new(&server.url, "t").unwrap();
    let mut stream = client.follow("t-1", after);
    let mut seen = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(Followed::Event(event)) => seen.push(format!("{} {}", event.seq, event.name())),
            Ok(Followed::Delta(delta)) => seen.push(delta.text),
            Ok(Followed::Reconnecting { attempt, .. }) => seen.push(format!("reconnecting {attempt}")),
            Err(error) => return (seen, Some(error)),
        }
    }
    (seen, None)
}

fn last_event_id(server: &Scripted) -> String {
    let head = server.asked.recv().unwrap().head;
    let line = head.lines().find(|line| line.starts_with("last-event-id: ")).unwrap();
    line.split_once(": ").unwrap().1.to_owned()
}

#[tokio::test]
async fn ends_with_the_task() {
    let text = format!(": alive\n\n{}{DELTA}{}", event(1, "run_ready"), event(2, "task_ended"));
    let server = Scripted::start(vec![events(&text)]);
    let (seen, error) = follow(&server, 0).await;
    assert_eq!(seen, ["1 run_ready", "hi", "2 task_ended"]);
    assert!(error.is_none());
    assert_eq!(last_event_id(&server), "0");
}

#[tokio::test]
async fn a_connection_that_drops_is_made_again_behind_the_last_event() {
    let third = event(3, "run_ready");
    let server = Scripted::start(vec![
        events(&format!("{}{}", event(1, "run_ready"), event(2, "run_ready"))),
        // Cut in the middle of an event, which therefore did not come.
        events(&third[..third.len() / 2]),
        answer("503 Service Unavailable", "text/plain", "starting"),
        // A server that sends one again is not believed twice.
        events(&format!("{}{third}{}", event(2, "run_ready"), event(4, "task_ended"))),
    ]);
    let (seen, error) = follow(&server, 0).await;
    let expected = [
        "1 run_ready",
        "2 run_ready",
        "reconnecting 1",
        "reconnecting 2",
        "reconnecting 3",
        "3 run_ready",
        "4 task_ended",
    ];
    assert_eq!(seen, expected);
    assert!(error.is_none());
    let ids: Vec<_> = (0..4).map(|_| last_event_id(&server)).collect();
    assert_eq!(ids, ["0", "2", "2", "2"]);
}

#[tokio::test]
async fn behind_the_last_event_there_is_nothing() {
    let server = Scripted::start(vec!["HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_owned()]);
    let (seen, error) = follow(&server, 9).await;
    assert!(seen.is_empty() && error.is_none(), "{seen:?} {error:?}");
}

#[tokio::test]
async fn who_is_refused_is_told_and_does_not_try_again() {
    let problem =
        r#"{"title":"Not Found","status":404,"code":"not_found","detail":"there is no task \"t-1\""}"#;
    let refusal = answer("404 Not Found", "application/problem+json", problem);
    let server = Scripted::start(vec![events(&event(1, "run_ready")), refusal]);
    let (seen, error) = follow(&server, 0).await;
    assert_eq!(seen, ["1 run_ready", "reconnecting 1"]);
    assert_eq!(error.unwrap().code(), Some("not_found"));
}

#[tokio::test]
async fn what_is_no_stream_of_events_is_not_followed() {
    let page = answer("200 OK", "text/html; charset=utf-8", "<html>\nSign in\n\n</html>");
    // Whether it answers from the beginning, or has come in between.
    for before in [vec![], vec![events(&event(1, "run_ready"))]] {
        let server = Scripted::start([before, vec![page.clone()]].concat());
        let (_, error) = follow(&server, 0).await;
        let Some(ClientError::Unexpected { status: 200, body }) = error else { panic!("{error:?}") };
        assert!(body.starts_with("<html>"), "{body}");
    }
}

#[tokio::test]
async fn who_ends_at_once_again_and_again_is_asked_less_and_less() {
    let server = Scripted::start(vec![
        events(": alive\n\n"),
        events(&event(1, "run_ready")),
        events(": alive\n\n"),
        events(&format!(": alive\n\n{}", event(1, "run_ready"))),
        events(&event(2, "task_ended")),
    ]);
    let (seen, error) = follow(&server, 0).await;
    let expected = [
        "reconnecting 1",
        "1 run_ready",
        "reconnecting 1",
        "reconnecting 2",
        "reconnecting 3",
        "2 task_ended",
    ];
    assert_eq!(seen, expected);
    assert!(error.is_none());
}

#[tokio::test]
async fn nobody_there_from_the_start_is_an_error() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = Client::new(&crate::support::url(closed), "t").unwrap();
    let first = client.follow("t-1", 0).next().await;
    assert!(matches!(first, Some(Err(ClientError::ConnectionRefused { .. }))), "{first:?}");
}
