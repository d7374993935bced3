//! A task's log: as JSON, and live. Each event comes once and in order, wherever a reader begins.

use futures_util::future::join_all;
use serde_json::json;

use super::support::{
    Hasty, Place,
    sse::{Listener, Message},
    worker::Worker,
};

/// The numbers of the events among these messages.
fn ids(messages: &[Message]) -> Vec<u64> {
    messages.iter().filter_map(|message| message.id).collect()
}

/// A task of so many steps, done.
async fn done_task(place: &Place, steps: usize) -> (String, u64) {
    let name = place.task().await;
    let mut worker = Worker::new(place).await;
    let mut held = worker.claim().await;
    for _ in 1..steps {
        worker.step(&mut held).await;
    }
    worker.finish(held, "done").await;
    let last = place.get(&format!("/v1/tasks/{name}")).await.json()["status"]["lastEvent"].as_u64().unwrap();
    (name, last)
}

#[tokio::test]
async fn resumes_behind_every_position() {
    let place = Place::with_agent().await;
    let (name, last) = done_task(&place, 5).await;
    assert_eq!(last, 8, "accepted, started, five steps, ended");
    for after in 0..last {
        let mut listener = Listener::open(&place, &name, Some(after)).await;
        assert_eq!(listener.status, 200);
        let messages = listener.rest().await;
        assert_eq!(ids(&messages), (after + 1..=last).collect::<Vec<_>>(), "behind {after}");
        assert!(messages.iter().all(|message| message.data["seq"].as_u64() == message.id));
        assert!(messages.iter().all(|message| message.data["body"]["type"] == message.event.as_str()));
        assert_eq!(messages.last().unwrap().event, "task_ended");
    }
    // Behind the end there is nothing, and a browser is told not to come back.
    assert_eq!(Listener::open(&place, &name, Some(last)).await.status, 204);
    // A place that the log does not have is a mistake: to begin elsewhere would skip or repeat.
    assert_eq!(Listener::open(&place, &name, Some(last + 1)).await.status, 400);
}

#[tokio::test]
async fn after_in_the_address_does_the_same_unless_the_header_knows_better() {
    let place = Place::with_agent().await;
    let (name, last) = done_task(&place, 3).await;
    let path = format!("/v1/tasks/{name}/events?after=2");
    for (headers, first) in [("", 3), ("last-event-id: 4\r\n", 5)] {
        let reply = place.send("GET", &path, &format!("accept: text/event-stream\r\n{headers}"), b"").await;
        let text = String::from_utf8(reply.body).unwrap();
        assert!(text.starts_with(&format!("id: {first}\n")), "{text}");
        assert_eq!(text.matches("id: ").count() as u64, last - first + 1);
    }
}

#[tokio::test]
async fn the_log_as_json_is_the_same_log() {
    let place = Place::with_agent().await;
    let (name, last) = done_task(&place, 4).await;
    let path = format!("/v1/tasks/{name}/events");
    let whole = place.get(&path).await.json();
    assert_eq!(whole["last"], last);
    let streamed: Vec<_> = Listener::open(&place, &name, None).await.rest().await;
    let streamed: Vec<_> = streamed.into_iter().map(|message| message.data).collect();
    assert_eq!(whole["items"], json!(streamed));
    let mut after = 0;
    let mut paged = Vec::new();
    loop {
        let page = place.get(&format!("{path}?after={after}&limit=3")).await.json();
        let items = page["items"].as_array().unwrap().clone();
        if items.is_empty() {
            assert_eq!(page["last"], after);
            break;
        }
        paged.extend(items);
        after = page["last"].as_u64().unwrap();
    }
    assert_eq!(json!(paged), whole["items"]);
}

#[tokio::test]
async fn two_readers_see_it_live_with_the_text_beside() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let mut readers = [Listener::open(&place, &name, None).await, Listener::open(&place, &name, None).await];
    let mut worker = Worker::new(&place).await;
    let mut held = worker.claim().await;
    for reader in &mut readers {
        assert_eq!(
            [reader.next().await, reader.next().await].map(|message| message.unwrap().id),
            [Some(1), Some(2)]
        );
    }
    worker.delta(&held, 0, "we").await;
    worker.delta(&held, 2, "ll\nthen").await;
    for reader in &mut readers {
        let deltas = [reader.next().await.unwrap(), reader.next().await.unwrap()];
        let places = deltas
            .clone()
            .map(|delta| (delta.id, delta.event, delta.data["offset"].clone(), delta.data["text"].clone()));
        let expected = [(json!(0), json!("we")), (json!(2), json!("ll\nthen"))];
        assert_eq!(places, expected.map(|(offset, text)| (None, "delta".to_owned(), offset, text)));
        assert!(deltas[0].data["run"].as_str().unwrap().starts_with("run_"));
    }
    worker.step(&mut held).await;
    for reader in &mut readers {
        let step = reader.next().await.unwrap();
        assert_eq!((step.id, step.event.as_str()), (Some(3), "step_finished"), "before the task has ended");
    }
    worker.finish(held, "done").await;
    for reader in &mut readers {
        assert_eq!(ids(&reader.rest().await), [4, 5]);
    }
}

#[tokio::test]
async fn who_comes_after_the_end_gets_the_whole_log() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    place.send("POST", &format!("/v1/tasks/{name}/cancel"), "", b"").await;
    let messages = Listener::open(&place, &name, None).await.rest().await;
    let events: Vec<_> = messages.iter().map(|message| message.event.as_str()).collect();
    assert_eq!(events, ["task_accepted", "task_ended"]);
}

#[tokio::test]
async fn one_who_keeps_going_away_misses_nothing() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let mut worker = Worker::new(&place).await;
    let mut held = worker.claim().await;
    let mut seen = Vec::new();
    let mut last = None;
    for _ in 0..20 {
        let mut listener = Listener::open(&place, &name, last).await;
        worker.step(&mut held).await;
        // One event on each connection, whatever else was on its way.
        let message = listener.next().await.unwrap();
        seen.push(message.id.unwrap());
        last = message.id;
    }
    worker.finish(held, "done").await;
    seen.extend(ids(&Listener::open(&place, &name, last).await.rest().await));
    assert_eq!(seen, (1..=24).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_readers_at_once() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let mut worker = Worker::new(&place).await;
    let mut held = worker.claim().await;
    let open = |_| Listener::open(&place, &name, None);
    let mut readers = join_all((0..100).map(open)).await;
    for _ in 0..20 {
        worker.step(&mut held).await;
    }
    readers.extend(join_all((0..100).map(open)).await);
    let reading = join_all(readers.iter_mut().map(Listener::rest));
    let working = async {
        for _ in 0..20 {
            worker.step(&mut held).await;
        }
        worker.finish(held, "done").await;
    };
    let (logs, ()) = tokio::join!(reading, working);
    assert_eq!(logs.len(), 200);
    for log in logs {
        assert_eq!(ids(&log), (1..=44).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let mut listener = Listener::open(&place, &name, None).await;
    assert_eq!(listener.next().await.unwrap().id, Some(1));
    let (rest, ()) = tokio::join!(listener.rest(), place.server.shutdown());
    assert_eq!(rest, []);
}

#[tokio::test]
async fn a_silent_stream_shows_that_it_is_alive() {
    let place = Place::with(Hasty::new()).await;
    place.apply_agent().await;
    let name = place.task().await;
    let mut listener = Listener::open(&place, &name, None).await;
    let events: Vec<_> = [listener.next().await, listener.next().await, listener.next().await]
        .map(|message| message.unwrap().event)
        .into();
    assert_eq!(events, ["task_accepted", "comment", "comment"]);
}
