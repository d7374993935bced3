//! Reading: lists in their order, page by page, and what is not there.

use ostler_kernel::{
    BlobId, BlockerId, Bundle, RunId, RunTag, SessionId, TaskId,
    resource::{self, ResourceKey, StoredResource},
    worker::{Offer, register},
};
use serde_json::json;

use super::world::World;
use crate::{Accepted, FirmLog, ResourceFilter, SessionPlace, StoreExt, TaskFilter, TaskRef};

pub async fn tasks_are_listed_newest_first_and_page_by_page(world: World) {
    let mut ids = Vec::new();
    for _ in 0..7 {
        ids.insert(0, world.ask().accept().await.id);
        world.pass(1);
    }
    let (mut seen, mut before) = (Vec::new(), None);
    while seen.len() <= ids.len() {
        let filter = TaskFilter { before, limit: 3, ..TaskFilter::default() };
        let page = world.store.tasks(filter).await.expect("the store answers");
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        before = Some(last.task.id);
        seen.extend(page.iter().map(|row| row.task.id));
    }
    assert_eq!(seen, ids);
}

pub async fn tasks_are_listed_by_namespace_and_state(world: World) {
    let view = world.running().await;
    world.must(world.finish(&view, "done")).await;
    let queued = world.ask().accept().await.id;
    let elsewhere = world.ask().in_namespace("other").accept().await.id;
    let list = async |namespace: Option<&str>, states: &[&str]| -> Vec<TaskId> {
        let states = states.iter().map(|state| (*state).to_owned()).collect();
        let filter =
            TaskFilter { namespace: namespace.map(str::to_owned), states, limit: 9, ..TaskFilter::default() };
        let rows = world.store.tasks(filter).await.expect("the store answers");
        rows.into_iter().map(|row| row.task.id).collect()
    };
    assert_eq!(list(None, &[]).await, [elsewhere, queued, view.task.id]);
    assert_eq!(list(Some("default"), &[]).await, [queued, view.task.id]);
    assert_eq!(list(None, &["queued"]).await, [elsewhere, queued]);
    assert_eq!(list(Some("default"), &["succeeded", "failed"]).await, [view.task.id]);
    assert_eq!(list(Some("nowhere"), &[]).await, []);
    assert_eq!(list(None, &["sleeping"]).await, []);
}

pub async fn a_task_is_found_by_id_name_and_key(world: World) {
    let task = world.ask().named("Ünïcode 'quoted' 🐎").under_key("k").accept().await;
    let by_id = world.task(task.id).await;
    assert_eq!(by_id.task, task);
    let find = async |reference| world.store.task(reference).await.expect("the store answers");
    let namespace = || "default".to_owned();
    let name = |name: &str| TaskRef::Name { namespace: namespace(), name: name.to_owned() };
    let key = |key: &str| TaskRef::Key { namespace: namespace(), key: key.to_owned() };
    assert_eq!(find(name(&task.name)).await, Some(by_id.clone()));
    assert_eq!(find(key("k")).await, Some(by_id));
    assert_eq!(find(name("k")).await, None);
    assert_eq!(find(key(&task.name)).await, None);
    assert_eq!(find(TaskRef::Key { namespace: "other".to_owned(), key: "k".to_owned() }).await, None);
}

pub async fn what_is_not_there_is_answered_by_nothing(world: World) {
    let (now, n) = (world.now(), world.fresh());
    let (task, run) = (TaskId::from_parts(now, 0, n), RunId::from_parts(now, 0, n));
    let session = SessionId::from_parts(now, 0, n);
    assert_eq!(world.store.task(TaskRef::Id(task)).await, Ok(None));
    assert_eq!(world.store.run(run).await, Ok(None));
    assert_eq!(world.store.run_view(run).await, Ok(None));
    assert_eq!(world.store.steps(run).await, Ok(vec![]));
    assert_eq!(world.store.session(session).await, Ok(None));
    assert_eq!(world.store.entries(session, 0, None).await, Ok(vec![]));
    assert_eq!(world.store.inputs(task, 0).await, Ok(vec![]));
    assert_eq!(world.store.blocker(BlockerId::from_parts(now, 0, n)).await, Ok(None));
    assert_eq!(world.store.events(task, 0, 9).await, Ok(vec![]));
    assert_eq!(world.store.log(0, 9).await, Ok(vec![]));
    assert_eq!(world.store.leased(None).await, Ok(vec![]));
    assert_eq!(world.store.workers().await, Ok(vec![]));
    assert_eq!(world.store.due(now, 9).await, Ok(vec![]));
    assert_eq!(world.store.next_due().await, Ok(None));
    assert_eq!(world.store.resource(key("Agent", "default", "x")).await, Ok(None));
    assert_eq!(world.store.resources(agents(9)).await, Ok(vec![]));
    assert_eq!(world.store.blob(BlobId::of(b"x")).await, Ok(None));
}

pub async fn resources_are_listed_by_namespace_and_name(world: World) {
    let places = [("b", "x"), ("a", "z"), ("a", "Z"), ("a", "zz"), ("é", "x"), ("a-b", "x")];
    for (namespace, name) in places {
        world.must(resource::put(stored(key("Agent", namespace, name), 1), None)).await;
        world.must(resource::put(stored(key("Tool", namespace, name), 1), None)).await;
    }
    let list = async |namespace: Option<&str>, after: Option<(&str, &str)>, limit| -> Vec<(String, String)> {
        let after = after.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
        let namespace = namespace.map(str::to_owned);
        let found = world.store.resources(ResourceFilter { namespace, after, ..agents(limit) }).await;
        found.expect("the store answers").into_iter().map(|it| (it.key.namespace, it.key.name)).collect()
    };
    let mut sorted = places.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
    sorted.sort();
    assert_eq!(list(None, None, 99).await, sorted);
    assert_eq!(list(None, None, 2).await, sorted[..2]);
    assert_eq!(list(None, Some(("a", "z")), 2).await, sorted[2..4], "a page goes on behind the last");
    assert_eq!(list(Some("a"), Some(("a", "Z")), 99).await, sorted[1..3]);
    assert_eq!(list(Some("nowhere"), None, 99).await, []);
}

pub async fn a_resource_reads_back_as_it_was_written(world: World) {
    let key = key("Agent", "default", "helper");
    let first = stored(key.clone(), 1);
    world.must(resource::put(first.clone(), None)).await;
    assert_eq!(world.store.resource(key.clone()).await, Ok(Some(first.clone())));
    let document = json!({"spec": {"z": 1, "a": [null, true, "é\u{0}\n", {"deep": -7}]}, "status": {}});
    let second = StoredResource { version: 2, generation: 2, document, ..first };
    world.must(resource::put(second.clone(), Some(1))).await;
    assert_eq!(world.store.resource(key.clone()).await, Ok(Some(second)));
    world.must(resource::delete(key.clone(), Some(2))).await;
    assert_eq!(world.store.resource(key).await, Ok(None));
}

pub async fn the_log_is_read_page_by_page(world: World) {
    for _ in 0..3 {
        let view = world.running().await;
        world.must(world.finish(&view, "done")).await;
    }
    let all = world.store.log(0, 1000).await.expect("the store answers");
    assert_eq!(all.len(), 12);
    let (mut seen, mut after) = (Vec::new(), 0);
    while seen.len() <= all.len() {
        let page = world.store.log(after, 5).await.expect("the store answers");
        assert!(page.len() <= 5);
        let Some(last) = page.last() else { break };
        after = last.position;
        seen.extend(page);
    }
    assert_eq!(seen, all);
}

pub async fn the_log_becomes_firm(world: World) {
    let view = world.running().await;
    let committed = world.must(world.finish(&view, "done")).await;
    let all = world.store.log(0, 1000).await.expect("the store answers");
    let (mut seen, mut after) = (Vec::new(), 0);
    while after < committed.position {
        let FirmLog { events, upto } = world.store.firm_log(after, 3).await.expect("the store answers");
        assert!(events.len() <= 3 && events.iter().all(|event| event.position <= upto));
        seen.extend(events);
        after = upto;
    }
    assert_eq!(seen, all, "nothing is passed over, nothing comes twice");
    let FirmLog { events, upto } = world.store.firm_log(0, 0).await.expect("the store answers");
    assert!(events.is_empty() && upto >= committed.position, "how far it is firm can be asked alone");
}

pub async fn a_tasks_log_is_resumed_behind_what_was_seen(world: World) {
    let view = world.running().await;
    world.running().await;
    world.must(world.finish(&view, "done")).await;
    let all = world.events(view.task.id).await;
    assert!(all.len() == 4 && all.iter().all(|event| event.task == view.task.id));
    for seen in 0..=4 {
        let rest = world.store.events(view.task.id, seen, 99).await.expect("the store answers");
        assert_eq!(rest, all[usize::try_from(seen).expect("small")..]);
    }
    assert_eq!(world.store.events(view.task.id, 1, 2).await.expect("the store answers"), all[1..3]);
}

pub async fn as_many_as_there_are_may_be_asked_for(world: World) {
    let view = world.running().await;
    let most = usize::MAX;
    assert_eq!(world.store.events(view.task.id, 0, most).await.expect("the store answers").len(), 2);
    assert_eq!(world.store.log(0, most).await.expect("the store answers").len(), 2);
    let filter = TaskFilter { limit: most, ..TaskFilter::default() };
    assert_eq!(world.store.tasks(filter).await.expect("the store answers").len(), 1);
    assert_eq!(world.store.due(world.now(), most).await, Ok(vec![]));
    assert_eq!(world.store.resources(agents(most)).await, Ok(vec![]));
}

pub async fn a_blob_is_found_by_its_hash(world: World) {
    for bytes in [vec![], b"some plan".to_vec(), vec![0; 1 << 20], (0..=255).collect()] {
        let (id, bundle) = Bundle::blob(bytes.clone(), world.now());
        world.must(bundle.clone()).await;
        world.must(bundle).await;
        assert_eq!(world.store.blob(id).await, Ok(Some(bytes)));
    }
    assert_eq!(world.store.blob(BlobId::of(b"never put")).await, Ok(None));
}

pub async fn a_blob_that_is_put_again_stays(world: World) {
    let (then, now) = (world.now(), world.pass(1000));
    let (old, put_old) = Bundle::blob(b"old".to_vec(), then);
    let (worn, put_worn) = Bundle::blob(b"worn".to_vec(), then);
    let again = Bundle::blob(b"worn".to_vec(), now).1;
    world.commit_all(vec![put_old.clone(), put_worn.clone(), again]).await;
    assert_eq!(world.store.old_blobs(then).await, Ok(vec![old]));
    let mut both = vec![old, worn];
    both.sort_unstable();
    assert_eq!(world.store.old_blobs(now).await, Ok(both));
    // A late one does not make it older.
    world.must(put_worn).await;
    for blob in [old, worn, BlobId::of(b"never put")] {
        world.must(Bundle::forget_blob(blob, then)).await;
    }
    assert_eq!(world.store.blob(old).await, Ok(None));
    assert_eq!(world.store.blob(worn).await, Ok(Some(b"worn".to_vec())));
    world.must(put_old).await;
    assert_eq!(world.store.blob(old).await, Ok(Some(b"old".to_vec())), "it may come back");
}

pub async fn leases_are_listed_by_worker(world: World) {
    for _ in 0..3 {
        world.ask().accept().await;
        world.pass(1);
    }
    let (one, two) = (world.worker("one").await, world.worker("two").await);
    let (of_one, of_two) = (one.claim_runs(2).await, two.claim_runs(2).await);
    let leased = async |worker: Option<&str>| -> Vec<RunId> {
        let runs = world.store.leased(worker.map(str::to_owned)).await.expect("the store answers");
        assert!(runs.iter().all(|run| run.tag() == RunTag::Running));
        runs.into_iter().map(|run| run.id).collect()
    };
    assert_eq!((leased(Some("one")).await, leased(Some("two")).await), (of_one.clone(), of_two.clone()));
    assert_eq!(leased(Some("nobody")).await, []);
    assert_eq!(leased(None).await, [of_one, of_two].concat());
}

pub async fn workers_are_listed_with_their_counters(world: World) {
    let (b, a) = (world.worker("b").await, world.worker("a").await);
    for counter in [1, 2, 1] {
        world.must(b.renew(counter)).await;
    }
    world.ask().accept().await;
    assert_eq!(a.claim(1).await.len(), 1);
    let workers = world.store.workers().await.expect("the store answers");
    let seen: Vec<_> =
        workers.iter().map(|it| (it.name.as_str(), it.incarnation, it.counter, it.claims)).collect();
    assert_eq!(seen, [("a", 1, 0, 1), ("b", 1, 2, 0)], "a renewal that comes late sets nothing back");
    let again = world.worker("b").await;
    let row = again.row().await;
    assert_eq!((row.incarnation, row.counter, row.claims), (2, 0, 0));
}

pub async fn a_worker_reads_back_as_it_was_written(world: World) {
    for instance in [0, 1 << 62, u64::MAX] {
        let (worker, bundle) =
            register(&format!("w{instance}"), instance, Offer::default(), None, world.now());
        world.must(bundle).await;
        let workers = world.store.workers().await.expect("the store answers");
        assert!(workers.contains(&worker), "{worker:?} is not among {workers:?}");
    }
}

pub async fn conversations_with_a_key_are_listed(world: World) {
    world.ask().accept().await;
    for (namespace, key) in [("b", "2"), ("a", "1"), ("b", "1")] {
        world.ask().in_namespace(namespace).in_new_session(key).accept().await;
    }
    let list = async |namespace: Option<&str>, after: Option<SessionPlace>, limit| {
        let namespace = namespace.map(str::to_owned);
        let found = world.store.sessions(namespace, after, limit).await.expect("the store answers");
        let place = |session: ostler_kernel::Session| (session.namespace, session.key.expect("a key"));
        found.into_iter().map(place).collect::<Vec<_>>()
    };
    let place = |namespace: &str, key: &str| (namespace.to_owned(), key.to_owned());
    let all = [place("a", "1"), place("b", "1"), place("b", "2")];
    assert_eq!(list(None, None, 10).await, all);
    assert_eq!(list(None, None, 1).await, all[..1]);
    assert_eq!(list(Some("b"), None, 10).await, all[1..]);
    let (namespace, subject, key) = ("b".to_owned(), "helper".to_owned(), "1".to_owned());
    let behind = SessionPlace { namespace, subject, key };
    assert_eq!(list(None, Some(behind), 10).await, all[2..]);
    let found = world.store.sessions(None, None, 1).await.expect("the store answers");
    assert_eq!((found[0].runs, found[0].used_at), (1, Some(world.now())));
}

pub async fn of_a_system_one_task_was_accepted(world: World) {
    let minute = std::time::Duration::from_secs(60);
    let between = (world.now().before(minute), world.now().after(minute));
    let (task, first) = world.system_at_work().await;
    let (second, bundle) = world.hand_on(&first, "a draft");
    world.must(bundle).await;
    world.claimed_by_anyone(second).await;
    for class in [None, Some(task_class(&world, second).await)] {
        let accepted = world.store.accepted("default".to_owned(), class.clone(), between, 9).await;
        let one = Accepted { count: 1, oldest: Some(task.created_at) };
        assert_eq!(accepted, Ok(one), "{class:?}");
    }
    let accepted = async |between| {
        let accepted = world.store.accepted("default".to_owned(), None, between, 1).await;
        accepted.expect("the store answers").count
    };
    assert_eq!(accepted((between.0, between.0.after(minute / 2))).await, 0, "it came later");
    world.ask().accept().await;
    assert_eq!(accepted(between).await, 1, "of more than are asked for only the last are looked at");
    world.pass(120_000);
    assert_eq!(accepted((world.now().before(minute), world.now())).await, 0);
}

async fn task_class(world: &World, run: ostler_kernel::RunId) -> String {
    world.run(run).await.lane.class
}

fn agents(limit: usize) -> ResourceFilter {
    ResourceFilter { kind: "Agent".to_owned(), limit, ..ResourceFilter::default() }
}

fn key(kind: &str, namespace: &str, name: &str) -> ResourceKey {
    ResourceKey { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

fn stored(key: ResourceKey, version: u64) -> StoredResource {
    let created_at = ostler_kernel::Timestamp::from_millis(1_800_000_000_000);
    StoredResource { document: json!({"name": key.name}), key, version, generation: 1, created_at }
}
