//! How much is served, and what those hear who ask for more.

use std::time::Duration;

use ostler_server::Limits;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    bad_input::check,
    support::{Place, bearer, runtime, sse::Listener},
};

async fn limited(limits: Limits) -> Place {
    let place = Place::configured(runtime(), |config| {
        config.limits = Limits { read_within: config.limits.read_within, ..limits };
    })
    .await;
    place.apply_agent().await;
    place
}

/// Asks until it is refused; how often it was answered before.
async fn ask_until_refused(place: &Place, credential: &str) -> (usize, super::support::Reply) {
    let mut answered = 0;
    loop {
        let reply = place.send_as(credential, "GET", "/v1/version", None).await;
        if reply.status != 200 {
            return (answered, reply);
        }
        answered += 1;
    }
}

#[tokio::test]
async fn a_caller_that_asks_too_often_is_told_when_to_come_back() {
    let place = limited(Limits { requests_per_caller: 20, ..Limits::default() }).await;
    let (one, two) = (place.token("one", "reader", &["*"]).await, place.token("two", "reader", &["*"]).await);
    let (answered, refused) = ask_until_refused(&place, &one).await;
    assert!(answered >= 40, "there is room for {answered} in a row");
    check(&refused, 429, "too_many_requests", "this caller");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(place.send_as(&two, "GET", "/v1/version", None).await.status, 200, "others are not held up");
    let health = place.send_as(&one, "GET", "/healthz", None).await;
    assert_eq!(health.status, 200, "whoever looks after it is answered");
    while place.send_as(&one, "GET", "/v1/version", None).await.status != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_answers_so_many_in_all() {
    let place = limited(Limits { requests_per_second: 20, ..Limits::default() }).await;
    let (_, refused) = ask_until_refused(&place, &bearer(place.server.token())).await;
    check(&refused, 429, "too_many_requests", "the server");
    assert_eq!(refused.header("retry-after"), Some("1"));
    for path in ["/healthz", "/readyz"] {
        for _ in 0..50 {
            assert_eq!(place.send_as("", "GET", path, None).await.status, 200, "{path}");
        }
    }
}

/// Who is not known is counted by where they come from, and takes nothing from those who are.
#[tokio::test]
async fn strangers_do_not_use_up_what_callers_have() {
    let place = limited(Limits { requests_per_caller: 20, ..Limits::default() }).await;
    let mut refused = 0;
    for _ in 0..200 {
        refused += u32::from(place.send_as(&bearer("wrong"), "GET", "/v1/version", None).await.status == 429);
    }
    assert!(refused > 0, "nobody was held up");
    assert_eq!(place.get("/v1/version").await.status, 200);
}

#[tokio::test]
async fn there_are_so_many_streams_at_once() {
    let place = limited(Limits { streams: 3, streams_per_caller: 2, ..Limits::default() }).await;
    let task = place.task().await;
    let (one, two) = (place.token("one", "reader", &["*"]).await, place.token("two", "reader", &["*"]).await);
    let open = async |credential: &str| Listener::open_as(&place, credential, &task, "").await;
    let (first, second) = (open(&one).await, open(&one).await);
    assert_eq!((first.status, second.status), (200, 200));
    assert_eq!(open(&one).await.status, 429, "it has two");
    let third = open(&two).await;
    assert_eq!(third.status, 200);
    assert_eq!(open(&two).await.status, 429, "there are three");
    let path = format!("/v1/tasks/{task}/events");
    let head = place.send("GET", &path, "accept: text/event-stream\r\n", b"").await;
    check(&head, 429, "too_many_requests", "as many follow");
    assert_eq!(head.header("retry-after"), Some("5"));
    assert_eq!(place.get(&path).await.status, 200, "what does not go on is answered");
    drop((first, second));
    while open(&one).await.status != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn one_account_has_its_share_of_watches() {
    let place = limited(Limits { watches: 4, watches_per_caller: 2, ..Limits::default() }).await;
    let (one, two) = (place.token("one", "reader", &["*"]).await, place.token("two", "reader", &["*"]).await);
    let open = async |credential: &str, path: &str| Listener::at_as(&place, credential, path, "").await;
    let (first, second) = (open(&one, "/v1/agents/watch").await, open(&one, "/v1/events/watch").await);
    assert_eq!((first.status, second.status), (200, 200));
    let refused = place.send_as(&one, "GET", "/v1/workers/watch", None).await;
    check(&refused, 429, "too_many_watches", "this caller");
    assert_eq!(refused.header("retry-after"), Some("5"));
    let (third, fourth) = (open(&two, "/v1/tasks/watch").await, open(&two, "/v1/tools/watch").await);
    assert_eq!((third.status, fourth.status), (200, 200), "others find room");
    check(&place.get("/v1/agents/watch").await, 429, "too_many_watches", "as many");
    drop((first, second));
    while open(&one, "/v1/agents/watch").await.status != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_waits_too_long_is_told_and_what_was_asked_for_is_done() {
    // No time at all: whatever has to wait for the disk is late.
    let limits = Limits { write_within: Duration::ZERO, ..Limits::default() };
    let place = Place::new().await;
    place.apply_agent().await;
    let Place { server, folder } = place;
    server.shutdown().await;
    let mut config = super::support::config(folder.path());
    config.limits = Limits { read_within: config.limits.read_within, ..limits };
    let server = ostler_server::start(config, runtime()).await.unwrap();
    let place = Place { server, folder };
    let reply = place.post("/v1/tasks", &super::support::task()).await;
    let document = check(&reply, 504, "too_late", "0 seconds");
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert!(document["remedy"].as_str().unwrap().contains("may yet be done"), "{document}");
    while place.get("/v1/tasks").await.json()["items"].as_array().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_finds_no_room_waits_for_a_connection() {
    let place = Place::configured(runtime(), |config| config.limits.connections = 1).await;
    let mut first = TcpStream::connect(place.address()).await.unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", place.address());
    let asking = place.send_as("", "GET", "/healthz", None);
    tokio::pin!(asking);
    for round in 0..100 {
        first.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"{\"status\":\"ok\"}") {
            assert_ne!(first.read_buf(&mut answer).await.unwrap(), 0, "it was cut off");
        }
        // The first answer tells that the one connection is ours.
        assert!(futures_util::poll!(&mut asking).is_pending(), "there were two connections, round {round}");
    }
    drop(first);
    assert_eq!(asking.await.status, 200, "it was only waiting");
}
