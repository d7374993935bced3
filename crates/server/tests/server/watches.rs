//! Watches: what is there, then every change, over a restart too.

use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{
        Hasty, Place, agent, bearer, config, runtime,
        sse::{Listener, Message},
        start_in, task,
        worker::Worker,
    },
};

fn labelled(name: &str, color: &str) -> Value {
    let mut agent = agent(name);
    agent["metadata"]["labels"] = json!({"color": color});
    agent
}

/// What it says: the type, the name, and the version.
fn said(message: &Message) -> (String, String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &message.data["resource"]["metadata"];
    (text(&message.data["type"]), text(&metadata["name"]), text(&metadata["resourceVersion"]))
}

/// The next message that is no comment.
async fn next(listener: &mut Listener) -> Message {
    let message = said_next(listener).await;
    assert_eq!(message.event, "resource");
    message
}

/// Of whatever kind, but for comments.
async fn said_next(listener: &mut Listener) -> Message {
    loop {
        let message = listener.next().await.expect("the stream goes on");
        if message.event != "comment" {
            return message;
        }
    }
}

async fn expect(listener: &mut Listener, expected: &[(&str, &str, &str)]) -> Option<u64> {
    let mut last = None;
    for (kind, name, version) in expected {
        let message = next(listener).await;
        assert_eq!(said(&message), ((*kind).to_owned(), (*name).to_owned(), (*version).to_owned()));
        last = message.id.or(last);
    }
    last
}

#[tokio::test]
async fn first_what_is_there_then_every_change() {
    let place = Place::new().await;
    for name in ["a", "b"] {
        place.post("/v1/agents", &agent(name)).await;
    }
    let mut elsewhere = agent("z");
    elsewhere["metadata"]["namespace"] = json!("other");
    place.post("/v1/agents", &elsewhere).await;
    let mut watch = Listener::at(&place, "/v1/agents/watch", None).await;
    assert_eq!(watch.status, 200);
    expect(&mut watch, &[("added", "a", "1"), ("added", "b", "1")]).await;
    let complete = watch.next().await.unwrap();
    assert!(complete.event == "comment" && complete.id.is_some(), "from here one can go on: {complete:?}");
    place.post("/v1/agents", &agent("c")).await;
    elsewhere["metadata"]["labels"] = json!({ "team": "sales" });
    place.post("/v1/agents", &elsewhere).await;
    place
        .post(
            "/v1/tools",
            &json!({"kind": "Tool", "metadata": {"name": "t"}, "spec": {"endpoint": "http://localhost:1/"}}),
        )
        .await;
    let report = json!({"status": {"phase": "Error"}});
    place.put("/v1/agents/a/status", "if-match: 1\r\n", &report).await;
    place.put("/v1/agents/b", "if-match: 1\r\n", &agent("renamed")).await;
    place.delete("/v1/agents/c").await;
    let expected = [
        ("added", "c", "1"),
        ("updated", "a", "2"),
        ("added", "renamed", "2"),
        ("deleted", "b", "1"),
        ("deleted", "c", "1"),
    ];
    // What was deleted a moment later may not be told of at all.
    let mut seen = Vec::new();
    while seen.last().is_none_or(|(kind, name, _): &(String, String, String)| {
        (kind.as_str(), name.as_str()) != ("deleted", "c")
    }) {
        let message = next(&mut watch).await;
        assert!(message.data["resource"]["spec"].is_object(), "some read it with every frame: {message:?}");
        seen.push(said(&message));
    }
    let expected: Vec<_> = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())).to_vec();
    assert!(seen == expected || seen == expected[1..], "{seen:?}");
    let mut everywhere = Listener::at(&place, "/v1/agents/watch?namespace=*&name=z", None).await;
    expect(&mut everywhere, &[("added", "z", "2")]).await;
    let mut newer = Listener::at(&place, "/v1/agents/watch?resourceVersion=1", None).await;
    expect(&mut newer, &[("added", "a", "2")]).await;
}

#[tokio::test]
async fn who_selects_is_told_when_something_no_longer_counts() {
    let place = Place::new().await;
    place.post("/v1/agents", &labelled("a", "blue")).await;
    place.post("/v1/agents", &labelled("b", "red")).await;
    let mut watch = Listener::at(&place, "/v1/agents/watch?labelSelector=color=blue", None).await;
    expect(&mut watch, &[("added", "a", "1")]).await;
    place.post("/v1/agents", &labelled("b", "blue")).await;
    expect(&mut watch, &[("added", "b", "2")]).await;
    place.post("/v1/agents", &labelled("a", "red")).await;
    expect(&mut watch, &[("deleted", "a", "2")]).await;
    // Of what does not count, nothing is told.
    place.post("/v1/agents", &labelled("a", "green")).await;
    place.delete("/v1/agents/a").await;
    place.delete("/v1/agents/b").await;
    expect(&mut watch, &[("deleted", "b", "2")]).await;
}

#[tokio::test]
async fn a_watch_goes_on_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place { server: start_in(folder.path()).await.unwrap(), folder };
    for name in ["a", "b", "c"] {
        place.post("/v1/agents", &agent(name)).await;
    }
    let mut watch = Listener::at(&place, "/v1/agents/watch", None).await;
    expect(&mut watch, &[("added", "a", "1"), ("added", "b", "1"), ("added", "c", "1")]).await;
    place.post("/v1/agents", &agent("d")).await;
    let last = expect(&mut watch, &[("added", "d", "1")]).await;
    assert!(last.is_some());
    drop(watch);
    // While nobody watches, and again after a restart.
    place.delete("/v1/agents/a").await;
    place.post("/v1/agents", &agent("e")).await;
    let Place { server, folder } = place;
    server.shutdown().await;
    place = Place { server: start_in(folder.path()).await.unwrap(), folder };
    let mut changed = agent("b");
    changed["metadata"]["labels"] = json!({ "team": "sales" });
    place.post("/v1/agents", &changed).await;
    let mut watch = Listener::at(&place, "/v1/agents/watch", last).await;
    expect(&mut watch, &[("deleted", "a", "1"), ("added", "e", "1"), ("updated", "b", "2")]).await;
    place.post("/v1/agents", &agent("f")).await;
    expect(&mut watch, &[("added", "f", "1")]).await;
    // An id that this store never gave: all that is there is told anew.
    let mut lost = Listener::at(&place, "/v1/agents/watch", Some(1 << 40)).await;
    expect(&mut lost, &[("added", "b", "2"), ("added", "c", "1")]).await;
}

#[tokio::test]
async fn nothing_is_lost_while_many_change() {
    let place = Place::new().await;
    let mut watch = Listener::at(&place, "/v1/agents/watch", None).await;
    let control = place.server.control();
    for round in 0..3 {
        for number in 0..400 {
            let mut manifest = labelled(&format!("n{number:03}"), "blue");
            manifest["spec"]["prompt"] = json!(format!("{round}"));
            control.apply(ostler_spec::from_json(&manifest).unwrap()).await.unwrap();
        }
    }
    let mut versions = std::collections::BTreeMap::new();
    while versions.len() < 400 || versions.values().any(|version| version != "3") {
        let (kind, name, version) = said(&next(&mut watch).await);
        assert_ne!(kind, "deleted");
        let before: Option<String> = versions.insert(name, version.clone());
        assert!(before.is_none_or(|before| before <= version), "versions go back");
    }
}

#[tokio::test]
async fn tasks_are_watched_too() {
    let place = Place::with_agent().await;
    let first = place.task().await;
    let mut watch = Listener::at(&place, "/v1/tasks/watch", None).await;
    let message = next(&mut watch).await;
    assert_eq!(said(&message).1, first);
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    worker.finish(held, "done").await;
    let mut phases = Vec::new();
    while phases.last() != Some(&json!("Succeeded")) {
        let message = next(&mut watch).await;
        assert_eq!(message.data["type"], "updated");
        phases.push(message.data["resource"]["status"]["phase"].clone());
    }
    assert_eq!(place.delete(&format!("/v1/tasks/{first}")).await.status, 204);
    let gone = next(&mut watch).await;
    assert_eq!((said(&gone).0, said(&gone).1), ("deleted".to_owned(), first));
    let second = place.task().await;
    let added = next(&mut watch).await;
    assert_eq!((said(&added).0, said(&added).1), ("added".to_owned(), second));
}

#[tokio::test]
async fn everything_that_happens_can_be_watched() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    worker.finish(held, "done").await;
    place.delete("/v1/agents/helper").await;
    let types = async |query: &str, last: Option<u64>, count: usize| {
        let mut watch = Listener::at(&place, &format!("/v1/events/watch?{query}"), last).await;
        let mut seen = Vec::new();
        for _ in 0..count {
            let message = said_next(&mut watch).await;
            // Some clients see no more than the data.
            assert_eq!((message.event.as_str(), message.data["id"].as_u64()), ("event", message.id));
            seen.push((message.data["type"].as_str().unwrap().to_owned(), message.id, message.data));
        }
        seen
    };
    let all = types("since=0", None, 9).await;
    let names: Vec<&str> = all.iter().map(|(name, _, _)| name.as_str()).collect();
    let expected = [
        "resource.created",
        "resource.created",
        "resource.created",
        "task.assigned",
        "task.claimed",
        "task.running",
        "task.trace",
        "task.succeeded",
        "resource.deleted",
    ];
    assert_eq!(names, expected);
    assert_eq!((&all[7].2["name"], &all[7].2["kind"]), (&json!(name), &json!("Task")));
    // What is told in several words has its id with the last: whoever is cut off in between is told all of them again.
    let ids: Vec<bool> = all.iter().map(|(_, id, _)| id.is_some()).collect();
    assert_eq!(ids, [true, true, true, false, false, true, true, true, true]);
    assert_eq!(types("since=0", all[2].1, 6).await, all[3..]);
    assert_eq!(types("since=0", all[5].1, 3).await, all[6..]);
    assert_eq!(types("since=0&type=task.succeeded", None, 1).await, all[7..8]);
    let running = types("since=0&type=task.running", None, 1).await;
    assert_eq!((&running[0].2, running[0].1), (&all[5].2, all[5].1));
    let claimed = types("since=0&type=task.claimed", None, 1).await;
    assert_eq!(claimed[0].1, all[5].1, "alone, it has the id");
    assert_eq!(types("since=0&kind=agent", None, 2).await.len(), 2);
    assert_eq!(types(&format!("since=0&name={name}&source=task-controller"), None, 5).await, all[3..8]);
    let mut live = Listener::at(&place, "/v1/events/watch", None).await;
    let began = live.next().await.unwrap();
    assert_eq!(began.event, "comment", "who is cut off before anything happens has to know where it began");
    place.post("/v1/agents", &agent("new")).await;
    let message = said_next(&mut live).await;
    assert_eq!((&message.data["type"], &message.data["name"]), (&json!("resource.created"), &json!("new")));
    assert_eq!(types("", began.id, 1).await[0].1, message.id);
}

#[tokio::test]
async fn without_a_namespace_one_sees_all_that_one_is_let_into() {
    let place = Place::new().await;
    for namespace in ["red", "blue", "green"] {
        let mut agent = agent(namespace);
        agent["metadata"]["namespace"] = json!(namespace);
        assert_eq!(place.post("/v1/agents", &agent).await.status, 201);
    }
    place.post("/v1/agents", &agent("last")).await;
    let seen = async |credential: &str, query: &str, count: usize| {
        let path = format!("/v1/events/watch?since=0{query}");
        let mut watch = Listener::at_as(&place, credential, &path, "").await;
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(said_next(&mut watch).await.data["name"].as_str().unwrap().to_owned());
        }
        names
    };
    let server = bearer(place.server.token());
    assert_eq!(seen(&server, "", 4).await, ["red", "blue", "green", "last"]);
    assert_eq!(seen(&server, "&namespace=*", 4).await, ["red", "blue", "green", "last"]);
    assert_eq!(seen(&server, "&namespace=green", 1).await, ["green"]);
    let some = place.token("some", "reader", &["blue", "default"]).await;
    assert_eq!(seen(&some, "", 2).await, ["blue", "last"]);
    let refused = place.send_as(&some, "GET", "/v1/events/watch?namespace=red", None).await;
    check(&refused, 403, "forbidden", "red");
}

#[tokio::test]
async fn what_is_gone_is_told_in_the_words_it_was_declared_in() {
    let place = Place::with_agent().await;
    let theirs = |mut manifest: Value| {
        manifest["apiVersion"] = json!("orloj.dev/v1");
        manifest
    };
    for (plural, mut manifest, expected) in [
        ("agents", theirs(agent("a")), "orloj.dev/v1"),
        ("agents", agent("a"), "ostler.dev/v1"),
        ("tasks", theirs(task()), "orloj.dev/v1"),
        ("tasks", task(), "ostler.dev/v1"),
    ] {
        manifest["metadata"] = json!({"name": "gone"});
        let made = place.post(&format!("/v1/{plural}"), &manifest).await;
        assert_eq!((made.status, &made.json()["apiVersion"]), (201, &json!(expected)), "{made:?}");
        let mut watch = Listener::at(&place, &format!("/v1/{plural}/watch?name=gone"), None).await;
        assert_eq!(next(&mut watch).await.data["resource"]["apiVersion"], expected);
        place.send("POST", "/v1/tasks/gone/cancel", "", b"").await;
        assert_eq!(place.delete(&format!("/v1/{plural}/gone")).await.status, 204);
        let gone = loop {
            let message = next(&mut watch).await;
            if message.data["type"] == "deleted" {
                break message;
            }
        };
        assert_eq!(gone.data["resource"]["apiVersion"], expected, "{plural}");
    }
}

#[tokio::test]
async fn workers_are_watched() {
    let place = Place::with_agent().await;
    let mut watch = Listener::at(&place, "/v1/workers/watch", None).await;
    let worker = Worker::new(&place).await;
    place.task().await;
    let message = next(&mut watch).await;
    assert_eq!(
        (&message.data["type"], &message.data["resource"]["kind"]),
        (&json!("added"), &json!("Worker"))
    );
    place.send("POST", &format!("/v1/workers/{}/cordon", worker.caller().worker), "", b"").await;
    loop {
        let message = next(&mut watch).await;
        if message.data["resource"]["status"]["standing"] == "cordoned" {
            break assert_eq!(message.data["type"], "updated");
        }
    }
}

#[tokio::test]
async fn a_watch_says_that_it_lives_and_ends_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = ostler_server::start(config(folder.path()), Hasty::new()).await.unwrap();
    let place = Place { server, folder };
    let mut watch = Listener::at(&place, "/v1/agents/watch", None).await;
    for _ in 0..3 {
        assert_eq!(watch.next().await.unwrap().event, "comment");
    }
    let Place { server, folder: _folder } = place;
    let (_, rest) = tokio::join!(server.shutdown(), watch.rest());
    assert!(rest.iter().all(|message| message.event == "comment"));
    let _ = runtime();
}

#[tokio::test]
async fn what_a_watch_does_not_know_is_refused() {
    let place = Place::new().await;
    for (path, words) in [
        ("/v1/agents/watch?limit=3", "unknown parameter"),
        ("/v1/agents/watch?resourceVersion=x", "resourceVersion"),
        ("/v1/events/watch?since=-1", "since"),
        ("/v1/tasks/watch?namespace=a/b", "namespace"),
    ] {
        check(&place.get(path).await, 400, "bad_parameter", words);
    }
}

/// A browser that is refused never comes back.
#[tokio::test]
async fn an_id_that_was_never_given_begins_anew() {
    let place = Place::with_agent().await;
    for id in ["x", "-1", "null", "99999999999", "18446744073709551616"] {
        let (credential, last) = (bearer(place.server.token()), format!("last-event-id: {id}\r\n"));
        let mut watch = Listener::at_as(&place, &credential, "/v1/agents/watch", &last).await;
        assert_eq!(said(&next(&mut watch).await).0, "added", "{id}");
    }
}

#[tokio::test]
async fn that_a_task_is_archived_is_told() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    place.post(&format!("/v1/tasks/{name}/cancel"), &json!({})).await;
    let version =
        async || place.get(&format!("/v1/tasks/{name}")).await.json()["metadata"]["resourceVersion"].clone();
    let before = version().await;
    let mut tasks = Listener::at(&place, "/v1/tasks/watch", None).await;
    assert_eq!(
        said(&next(&mut tasks).await),
        ("added".to_owned(), name.clone(), before.as_str().unwrap().to_owned())
    );
    let mut agents = Listener::at(&place, "/v1/agents/watch", None).await;
    next(&mut agents).await;
    let mut events = Listener::at(&place, &format!("/v1/events/watch?name={name}"), None).await;
    assert_eq!(place.post(&format!("/v1/tasks/{name}/archive"), &json!({})).await.status, 200);
    let message = next(&mut tasks).await;
    let after = version().await;
    assert_eq!(said(&message), ("updated".to_owned(), name.clone(), after.as_str().unwrap().to_owned()));
    assert!(message.data["resource"]["status"]["archivedAt"].is_string(), "{message:?}");
    assert_ne!(after, before, "whoever compares versions sees it too");
    let event = said_next(&mut events).await;
    assert_eq!((&event.data["type"], &event.data["kind"]), (&json!("resource.status"), &json!("Task")));
    let log = place.get(&format!("/v1/tasks/{name}/events")).await.json();
    assert_eq!(
        log["items"].as_array().unwrap().last().unwrap()["body"]["type"],
        "task_ended",
        "nothing follows the end"
    );
    place.post("/v1/agents", &agent("new")).await;
    assert_eq!(said(&next(&mut agents).await).1, "new", "who watches agents is not told of it");
}
