//! Selecting by labels: full pages in the order of the list, nothing lost, nothing twice, and a bound on what is
//! looked at. And what is told of resources in the log.

use std::collections::BTreeMap;

use ostler_kernel::{
    EventBody, Selector, TaskId, Timestamp,
    event::{Change, ResourceChanged},
    resource::{self, CHAPTER, ResourceKey, StoredResource},
};
use serde_json::json;

use super::world::World;
use crate::{ResourceFilter, StoreExt, TaskFilter, TaskPage};

pub async fn resources_are_selected_before_they_are_paged(world: World) {
    for number in 0..30 {
        let labels = json!({"n": number.to_string(), "third": (number % 3 == 0).to_string()});
        let labels = if number % 2 == 0 { labels } else { json!({"odd": ""}) };
        world.must(resource::put(stored(&format!("a{number:02}"), 1, labels), None)).await;
    }
    world.must(resource::put(stored("none", 1, json!(null)), None)).await;
    let list = async |selector: &str, limit: usize| -> Vec<String> {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let labels = selector_of(selector);
            let filter = ResourceFilter { kind: "Agent".to_owned(), labels, after, limit, namespace: None };
            let page = world.store.resources(filter).await.expect("the store answers");
            assert!(page.len() <= limit);
            let is_last = page.len() < limit;
            after = page.last().map(|last| (last.key.namespace.clone(), last.key.name.clone()));
            seen.extend(page.into_iter().map(|resource| resource.key.name));
            if is_last {
                return seen;
            }
        }
    };
    let names = |wanted: &dyn Fn(u32) -> bool| -> Vec<String> {
        (0..30).filter(|number| wanted(*number)).map(|number| format!("a{number:02}")).collect()
    };
    for limit in [1, 2, 5, 7, 100] {
        assert_eq!(list("odd", limit).await, names(&|number| number % 2 == 1));
        assert_eq!(list("third=true", limit).await, names(&|number| number % 6 == 0));
        assert_eq!(list("third=true,n!=12", limit).await, names(&|number| number % 6 == 0 && number != 12));
        assert_eq!(list("!odd,!n", limit).await, ["none"]);
        assert_eq!(list("n=31", limit).await, Vec::<String>::new());
        assert_eq!(list("", limit).await.len(), 31);
    }
}

pub async fn tasks_are_selected_before_they_are_paged(world: World) {
    let mut blue = Vec::new();
    for number in 0..12 {
        let color = if number % 3 == 0 { "blue" } else { "red" };
        let id = world.ask().labelled("color", color).accept().await.id;
        if color == "blue" {
            blue.insert(0, id);
        }
        world.pass(1);
    }
    let filter = |selector: &str| TaskFilter { labels: selector_of(selector), ..TaskFilter::default() };
    for limit in [1, 2, 3, 50] {
        for look_at in [None, Some(1), Some(2), Some(5), Some(1000)] {
            let seen = all(&world, TaskFilter { limit, look_at, ..filter("color=blue") }).await;
            assert_eq!(seen, blue, "pages of {limit}, looking at {look_at:?}");
        }
    }
    let none = all(&world, TaskFilter { limit: 5, look_at: Some(4), ..filter("color=green") }).await;
    assert_eq!(none, []);
    let agent = Some("helper".to_owned());
    assert_eq!(all(&world, TaskFilter { limit: 5, agent, ..TaskFilter::default() }).await.len(), 12);
    let agent = Some("other".to_owned());
    assert_eq!(all(&world, TaskFilter { limit: 5, agent, ..TaskFilter::default() }).await, []);
}

/// Every page of a list, wherever each ends.
async fn all(world: &World, mut filter: TaskFilter) -> Vec<TaskId> {
    let mut seen = Vec::new();
    for _ in 0..100 {
        let TaskPage { rows, stopped_at } =
            world.store.task_page(filter.clone()).await.expect("the store answers");
        assert!(rows.len() <= filter.limit);
        let is_full = rows.len() == filter.limit;
        assert!(!(is_full && stopped_at.is_some()), "a full page goes on behind its last");
        seen.extend(rows.iter().map(|row| row.task.id));
        let last = if is_full { rows.last().map(|row| row.task.id) } else { stopped_at };
        let Some(last) = last else { return seen };
        filter.before = Some(last);
    }
    panic!("the list does not end");
}

pub async fn namespaces_are_those_that_something_lives_in(world: World) {
    assert_eq!(world.store.namespaces().await, Ok(vec![]));
    world.ask().in_namespace("b").accept().await;
    world.ask().in_namespace("b").accept().await;
    world.ask().in_namespace("a").accept().await;
    for namespace in ["c", "a"] {
        let mut agent = stored("x", 1, json!({}));
        agent.key.namespace = namespace.to_owned();
        world.must(resource::put(agent, None)).await;
    }
    let expected = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(world.store.namespaces().await, Ok(expected));
}

pub async fn changes_of_resources_are_told_in_the_log(world: World) {
    let first = stored("x", 1, json!({"color": "blue"}));
    let second = stored("x", 2, json!({"color": "red"}));
    let now = world.now();
    world.must(resource::put_and_tell(first.clone(), None, Change::Created, now)).await;
    world.must(resource::put_and_tell(second.clone(), Some(&first), Change::Updated, now)).await;
    world.refused(resource::put_and_tell(second.clone(), Some(&first), Change::Updated, now)).await;
    let renamed = stored("y", 1, json!({"color": "red"}));
    world.must(resource::rename_and_tell(renamed.clone(), &second, now)).await;
    world.refused(resource::rename_and_tell(renamed.clone(), &second, now)).await;
    world.must(resource::delete_and_tell(&renamed, now)).await;
    world.refused(resource::delete_and_tell(&renamed, now)).await;
    let log = world.store.log(0, 100).await.expect("the store answers");
    let seen: Vec<_> = log.iter().map(|event| told(&event.body)).collect();
    let (blue, red) = (Some("blue".to_owned()), Some("red".to_owned()));
    let expected = [
        ("x", Change::Created, blue.clone(), None),
        ("x", Change::Updated, red.clone(), blue),
        ("y", Change::Created, red.clone(), None),
        ("x", Change::Deleted, None, red.clone()),
        ("y", Change::Deleted, None, red),
    ];
    assert_eq!(seen, expected.map(|(name, change, now, before)| (name.to_owned(), change, now, before)));
    let own = world.store.events(resource::log_of(&first.key, 1), 0, 10).await.expect("the store answers");
    assert_eq!(own.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3], "a log without a gap");
}

pub async fn what_was_told_long_ago_is_forgotten_in_chapters(world: World) {
    let mut former: Option<StoredResource> = None;
    for version in 1..=2 * CHAPTER {
        let next = stored("x", version, json!({}));
        let change = if former.is_some() { Change::Updated } else { Change::Created };
        world.must(resource::put_and_tell(next.clone(), former.as_ref(), change, world.now())).await;
        if let Some(bundle) = resource::forget_chapter(&next.key, version) {
            world.must(bundle).await;
        }
        former = Some(next);
    }
    let log = world.store.log(0, 1000).await.expect("the store answers");
    let told: Vec<u64> = log.iter().filter_map(|event| version(&event.body)).collect();
    assert_eq!(told, (CHAPTER..=2 * CHAPTER).collect::<Vec<_>>(), "the last ones stay");
    assert!(log.is_sorted_by_key(|event| event.position));
}

type Told = (String, Change, Option<String>, Option<String>);

fn told(body: &EventBody) -> Told {
    let EventBody::ResourceChanged(ResourceChanged { name, change, labels, former_labels, .. }) = body else {
        panic!("{body:?} tells of no resource");
    };
    let color = |labels: &BTreeMap<String, String>| labels.get("color").cloned();
    (name.clone(), *change, color(labels), color(former_labels))
}

fn version(body: &EventBody) -> Option<u64> {
    match body {
        EventBody::ResourceChanged(changed) => Some(changed.version),
        _ => None,
    }
}

fn selector_of(text: &str) -> Selector {
    text.parse().expect("a selector")
}

fn stored(name: &str, version: u64, labels: serde_json::Value) -> StoredResource {
    let (kind, namespace, name) = ("Agent".to_owned(), "default".to_owned(), name.to_owned());
    StoredResource {
        document: json!({"metadata": {"name": name, "labels": labels}}),
        key: ResourceKey { kind, namespace, name },
        version,
        generation: 1,
        created_at: Timestamp::from_millis(1_800_000_000_000),
    }
}
