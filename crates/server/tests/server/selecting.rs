//! Lists by label: full pages, nothing lost and nothing twice, whatever happens meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use ostler_control::store::StoreExt;
use ostler_kernel::{
    ContextId, RunId, Session, SessionId, Task, TaskId,
    conversation::Context,
    task::{
        TaskRequest,
        accept::{Acceptance, accept},
    },
};
use ostler_spec::Resource;
use serde_json::{Value, json};

use super::{
    bad_input::check,
    support::{Place, agent, runtime, task, worker::Worker},
};

fn labelled(name: &str, labels: Value) -> Value {
    let mut agent = agent(name);
    agent["metadata"]["labels"] = labels;
    agent
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn selectors_mean_what_they_say() {
    let place = Place::new().await;
    for (name, labels) in [
        ("a", json!({"team": "blue", "tier": "1"})),
        ("b", json!({"team": "red"})),
        ("c", json!({"team": "blue"})),
        ("d", json!({})),
    ] {
        assert_eq!(place.post("/v1/agents", &labelled(name, labels)).await.status, 201);
    }
    let cases: [(&str, &[&str]); 9] = [
        ("team=blue", &["a", "c"]),
        ("team==blue", &["a", "c"]),
        ("team%3Dblue,tier", &["a"]),
        ("team!=blue", &["b", "d"]),
        ("team", &["a", "b", "c"]),
        ("!team", &["d"]),
        ("team=blue,!tier", &["c"]),
        ("team=green", &[]),
        ("", &["a", "b", "c", "d"]),
    ];
    for (selector, expected) in cases {
        for spelling in ["labelSelector", "labels"] {
            let list = place.get(&format!("/v1/agents?{spelling}={selector}")).await.json();
            assert_eq!(names(&list), expected, "{selector}");
        }
    }
    for bad in ["=", "a=b=c", "a,,b", "a%20in%20(b)"] {
        for path in ["/v1/agents", "/v1/tasks", "/v1/workers", "/v1/agents/watch"] {
            let reply = place.get(&format!("{path}?labelSelector={bad}")).await;
            check(&reply, 400, "bad_parameter", "labelSelector");
        }
    }
    check(&place.get("/v1/agents?labels=a&labelSelector=a").await, 400, "bad_parameter", "two names");
    let page = place.get("/v1/agents?labels=team=blue&limit=1").await.json();
    assert_eq!((names(&page), &page["continue"]), (vec!["a".to_owned()], &json!("default/a")));
    let rest = place.get("/v1/agents?labels=team=blue&limit=1&after=default/a").await.json();
    assert_eq!((names(&rest), rest.get("continue")), (vec!["c".to_owned()], None));
}

/// Ten thousand, paged while others come and go: those that were there all the time are seen once each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_are_paged_while_others_come_and_go() {
    const COUNT: usize = 10_000;
    let place = Place::new().await;
    let control = place.server.control();
    let resource =
        |name: &str, labels: Value| -> Resource { ostler_spec::from_json(&labelled(name, labels)).unwrap() };
    let mut expected = BTreeSet::new();
    for chunk in (0..COUNT).collect::<Vec<_>>().chunks(250) {
        let put = chunk.iter().map(|number| {
            let name = format!("stays-{number:05}");
            let is_blue = number % 7 == 0;
            if is_blue {
                expected.insert(name.clone());
            }
            let color = if is_blue { "blue" } else { "red" };
            control.apply(resource(&name, json!({ "color": color })))
        });
        for applied in futures_util::future::join_all(put.collect::<Vec<_>>()).await {
            applied.unwrap();
        }
    }
    let (mut seen, mut after, mut round) = (Vec::new(), "default/".to_owned(), 0);
    loop {
        let page =
            place.get(&format!("/v1/agents?labelSelector=color=blue&limit=100&after={after}")).await.json();
        let page_names = names(&page);
        seen.extend(page_names.iter().filter(|name| expected.contains(*name)).cloned());
        // Some come in front of the page and behind it, and some of those go again.
        for place_of in ["aaa", "stays-05000x", "zzz"] {
            control.apply(resource(&format!("{place_of}-{round}"), json!({"color": "blue"}))).await.unwrap();
            if round > 0 {
                let gone = format!("{place_of}-{}", round - 1);
                control.delete(ostler_spec::Kind::Agent, "default", &gone).await.unwrap();
            }
        }
        round += 1;
        match page.get("continue") {
            Some(next) => {
                assert_eq!(page_names.len(), 100, "a page is full as long as it goes on");
                after = next.as_str().unwrap().to_owned();
            }
            None => break,
        }
    }
    let distinct: BTreeSet<String> = seen.iter().cloned().collect();
    assert_eq!(distinct.len(), seen.len(), "something came twice");
    assert_eq!(distinct, expected);
}

/// As a command would accept them, and without a look at anything: ten thousand are there in a moment.
async fn accept_many(place: &Place, like: &Task, tasks: &[(String, bool)]) -> Vec<TaskId> {
    let (store, runtime) = (place.server.control().store(), runtime());
    let run = store.run(like.run).await.unwrap().unwrap();
    let (mut ids, mut bundles) = (Vec::new(), Vec::new());
    for (name, is_blue) in tasks {
        let color = if *is_blue { "blue" } else { "red" };
        let labels = BTreeMap::from([("color".to_owned(), color.to_owned())]);
        let context = Context::whole(ContextId::new(&*runtime));
        let acceptance = Acceptance {
            task: TaskId::new(&*runtime),
            run: RunId::new(&*runtime),
            namespace: "default".to_owned(),
            name: name.clone(),
            request: TaskRequest { labels, ..like.request.clone() },
            model: run.model.clone(),
            lane: run.lane.clone(),
            session: Session::new(SessionId::new(&*runtime), "default", "helper", None, context),
        };
        ids.push(acceptance.task);
        bundles.push(accept(acceptance, runtime.now()).1);
    }
    for bundles in bundles.chunks(500) {
        for answer in store.commit(bundles.to_vec()).await.unwrap() {
            answer.unwrap();
        }
    }
    ids
}

/// More than one page looks at, while others come and go: those that were there all the time are seen once each, though a
/// page may end before it is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_beyond_what_one_page_looks_at_are_paged_while_others_come_and_go() {
    const COUNT: usize = 10_200;
    let place = Place::with_agent().await;
    let control = place.server.control();
    let like = control.task("default", &place.task().await).await.unwrap().task;
    let stays: Vec<(String, bool)> =
        (0..COUNT).map(|number| (format!("stays-{number:05}"), number % 1500 == 0)).collect();
    accept_many(&place, &like, &stays).await;
    let expected: BTreeSet<&str> =
        stays.iter().filter(|(_, is_blue)| *is_blue).map(|(name, _)| name.as_str()).collect();
    for limit in [100, 2] {
        let (mut seen, mut short, mut after, mut gone) = (Vec::new(), 0, String::new(), Vec::new());
        for round in 0.. {
            let path = format!("/v1/tasks?labelSelector=color=blue&limit={limit}{after}");
            let page = place.get(&path).await.json();
            let page_names = names(&page);
            seen.extend(page_names.iter().filter(|name| name.starts_with("stays")).cloned());
            for task in gone.drain(..) {
                control.cancel(task, "it goes").await.unwrap();
                control.delete_task(task).await.unwrap();
            }
            let comes = ["x", "y"].map(|word| (format!("comes-{limit}-{round}-{word}"), true));
            gone = accept_many(&place, &like, &comes).await;
            let Some(next) = page.get("continue") else { break };
            let next = next.as_str().unwrap();
            after = format!("&after={next}");
            if page_names.len() < limit {
                short += 1;
                // The place where it stopped goes, too.
                let stopped_at = next.parse().unwrap();
                control.cancel(stopped_at, "it goes").await.unwrap();
                control.delete_task(stopped_at).await.unwrap();
            }
        }
        assert_eq!(short, usize::from(limit == 100), "pages that ended because enough had been looked at");
        let distinct: BTreeSet<&str> = seen.iter().map(String::as_str).collect();
        assert_eq!(distinct.len(), seen.len(), "something came twice: {seen:?}");
        assert_eq!(distinct, expected);
    }
}

#[tokio::test]
async fn tasks_are_listed_by_label_phase_and_agent() {
    let place = Place::with_agent().await;
    place.post("/v1/agents", &agent("other")).await;
    for (name, labels, of) in [
        ("a", json!({"team": "blue"}), "helper"),
        ("b", json!({"team": "red"}), "helper"),
        ("c", json!({"team": "blue"}), "other"),
        ("d", json!({}), "helper"),
    ] {
        let mut task = task();
        task["metadata"] = json!({"name": name, "labels": labels});
        task["spec"]["agent"] = json!(of);
        assert_eq!(place.post("/v1/tasks", &task).await.status, 201);
    }
    let list = async |query: &str| names(&place.get(&format!("/v1/tasks?{query}")).await.json());
    assert_eq!(list("labelSelector=team=blue").await, ["c", "a"]);
    assert_eq!(list("labels=!team").await, ["d"]);
    assert_eq!(list("agent=helper").await, ["d", "b", "a"]);
    assert_eq!(list("agent=helper&labels=team").await, ["b", "a"]);
    assert_eq!(list("system=pipeline").await, Vec::<String>::new());
    let first = place.get("/v1/tasks?agent=helper&limit=2").await.json();
    let next = first["continue"].as_str().unwrap();
    assert_eq!(names(&first), ["d", "b"]);
    for spelling in ["before", "after"] {
        assert_eq!(list(&format!("agent=helper&limit=2&{spelling}={next}")).await, ["a"]);
    }
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    worker.finish(held, "done").await;
    assert_eq!(list("phase=Succeeded").await, ["a"]);
    assert_eq!(list("phase=pending,running").await, ["d", "c", "b"]);
    check(&place.get("/v1/tasks?phase=Done").await, 400, "bad_parameter", "unknown phase");
    check(&place.get("/v1/tasks?phase=Failed&state=failed").await, 400, "bad_parameter", "one of the two");
    check(&place.get("/v1/tasks?mode=x").await, 400, "bad_parameter", "template");
}

#[tokio::test]
async fn tasks_are_sorted_as_asked_for_and_go_on_where_the_page_ended() {
    let place = Place::with_agent().await;
    for name in ["b", "c", "a", "d"] {
        let mut asked = super::support::task();
        asked["metadata"] = json!({ "name": name });
        assert_eq!(place.post("/v1/tasks", &asked).await.status, 201);
    }
    place.post("/v1/tasks/c/cancel", &json!({})).await;
    for (query, expected) in [
        ("", "dacb"),
        ("sort=created_at", "dacb"),
        ("order=asc", "bcad"),
        ("sort=created_at&order=asc", "bcad"),
        ("sort=name", "abcd"),
        ("sort=name&order=desc", "dcba"),
        ("sort=name&offset=1", "bcd"),
        ("sort=name&phase=pending", "abd"),
        ("sort=phase", "cbad"),
        ("sort=phase&order=desc", "dabc"),
    ] {
        let whole = place.get(&format!("/v1/tasks?{query}")).await.json();
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        let names = |list: &Value| list["items"].as_array().unwrap().iter().map(name).collect::<String>();
        assert_eq!(names(&whole), expected, "{query}");
        if query.contains("offset") {
            continue;
        }
        let (mut seen, mut after) = (String::new(), String::new());
        loop {
            let page = place.get(&format!("/v1/tasks?limit=1&{query}{after}")).await.json();
            seen.push_str(&names(&page));
            let Some(next) = page["continue"].as_str() else { break };
            let next: String = next.bytes().map(|byte| format!("%{byte:02X}")).collect();
            after = format!("&after={next}");
        }
        assert_eq!(seen, expected, "{query}, page by page");
    }
    for query in ["sort=size", "order=up", "sort=name&after=x"] {
        assert_eq!(place.get(&format!("/v1/tasks?{query}")).await.status, 400, "{query}");
    }
}
