//! Many at once: a reader sees what was answered, a watcher hears of it, and of several who want one thing
//! one gets it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ostler_kernel::{
    RunId,
    resource::{ResourceKey, StoredResource, delete, put},
    worker::{Offer, register},
};
use tokio::task::JoinSet;

use super::world::{World, answers};
use crate::{Claim, Hint, StoreExt, TaskFilter, TaskRef};

pub async fn what_was_answered_can_be_read(world: World) {
    for _ in 0..50 {
        let (task, bundle) = world.ask().bundle();
        let committed = world.must(bundle).await;
        let row = world.store.task(TaskRef::Id(task.id)).await.expect("the store answers");
        assert_eq!(row.map(|row| row.last_seq), Some(1));
        let log = world.store.log(committed.position - 1, 9).await.expect("the store answers");
        assert_eq!(log.len(), 1);
    }
}

pub async fn a_watcher_hears_of_events(world: World) {
    let mut watch = world.store.watch();
    let before = *watch.borrow_and_update();
    let committed = world.must(world.ask().bundle().1).await;
    let hint = heard(&mut watch, |hint| hint.position >= committed.position).await;
    assert!(hint.position > before.position);
    let worker = world.worker("w").await;
    worker.claim(1).await;
    heard(&mut watch, |hint| hint.position > committed.position).await;
}

pub async fn a_watcher_hears_of_what_became_ready(world: World) {
    let mut watch = world.store.watch();
    let view = world.running().await;
    let joined = world.ask().in_session(view.session.clone()).accept().await;
    let committed = world.must(world.input(&world.view(view.run.id).await, "x")).await;
    let before = heard(&mut watch, |hint| hint.position >= committed.position).await;
    let view = world.view(view.run.id).await;
    world.must(world.cancel(&view)).await;
    heard(&mut watch, |hint| hint.ready > before.ready).await;
    assert!(world.run(joined.run).await.rank().is_some());
}

pub async fn a_watcher_hears_of_what_will_be_due(world: World) {
    let mut watch = world.store.watch();
    let view = world.running().await;
    let before = *watch.borrow_and_update();
    world.must(world.sleep(&view, world.now())).await;
    let before = heard(&mut watch, |hint| hint.due > before.due).await;
    world.ask().by(world.now()).accept().await;
    heard(&mut watch, |hint| hint.due > before.due).await;
}

/// Whoever was told that a resource is written can rely on everybody here knowing.
pub async fn a_watcher_hears_of_resources_before_their_writer_does(world: World) {
    let watch = world.store.watch();
    let resource = |name: &str| {
        let key = ResourceKey { kind: "Agent".into(), namespace: "default".into(), name: name.into() };
        let (created_at, document) = (world.now(), serde_json::json!({}));
        StoredResource { key, version: 1, generation: 1, created_at, document }
    };
    for round in 0..20 {
        let written = resource(&format!("agent-{round}"));
        let before = watch.borrow().resources;
        world.must(put(written.clone(), None)).await;
        let between = watch.borrow().resources;
        assert!(between > before, "it is written");
        world.must(delete(written.key, Some(1))).await;
        assert!(watch.borrow().resources > between, "it is deleted");
    }
}

pub async fn a_watcher_who_comes_late_is_told_where_things_stand(world: World) {
    let committed = world.must(world.ask().bundle().1).await;
    let mut watch = world.store.watch();
    heard(&mut watch, |hint| hint.position >= committed.position).await;
}

pub async fn commits_of_many_all_land_once(world: World) {
    let asks: Vec<_> = (0..200).map(|_| world.ask().bundle()).collect();
    let tasks: Vec<_> = asks.iter().map(|(task, _)| task.id).collect();
    let mut senders = JoinSet::new();
    for (_, bundle) in asks {
        let store = Arc::clone(&world.store);
        senders.spawn(async move { store.commit(vec![bundle]).await });
    }
    for result in senders.join_all().await {
        assert!(result.expect("the store answers")[0].is_ok());
    }
    for task in &tasks {
        assert_eq!(world.story(*task).await, ["task_accepted"]);
    }
    let log = world.store.log(0, 1000).await.expect("the store answers");
    let positions: Vec<u64> = log.iter().map(|event| event.position).collect();
    assert_eq!(positions.len(), 200);
    assert!(positions.is_sorted_by(|left, right| left < right), "each has a place of its own");
}

pub async fn one_of_many_gets_the_name(world: World) {
    let mut senders = JoinSet::new();
    for _ in 0..50 {
        let store = Arc::clone(&world.store);
        let (_, bundle) = world.ask().named("the one").bundle();
        senders.spawn(async move { store.commit(vec![bundle]).await });
    }
    let results = senders.join_all().await;
    let counted = results.into_iter().filter(|result| result.as_ref().expect("the store answers")[0].is_ok());
    assert_eq!(counted.count(), 1);
    let filter = TaskFilter { limit: 99, ..TaskFilter::default() };
    assert_eq!(world.store.tasks(filter).await.expect("the store answers").len(), 1);
}

pub async fn one_of_many_resends_is_applied(world: World) {
    let view = world.running().await;
    let bundle = world.journal(&view, &answers(&view, "once"));
    let mut senders = JoinSet::new();
    for _ in 0..20 {
        let (store, bundle) = (Arc::clone(&world.store), bundle.clone());
        senders.spawn(async move { store.commit(vec![bundle]).await });
    }
    let results = senders.join_all().await;
    let first = results.into_iter().filter(|result| {
        let committed = result.as_ref().expect("the store answers")[0].as_ref().expect("it was taken");
        !committed.duplicate
    });
    assert_eq!(first.count(), 1);
    assert_eq!(world.said(view.session.id).await, ["hello", "once"]);
}

pub async fn no_run_is_given_to_two(world: World) {
    for n in 0..60 {
        let class = if n % 2 == 0 { ("small", Some(7)) } else { ("large", None) };
        world.ask().in_class(class.0, class.1).accept().await;
    }
    let mut workers = JoinSet::new();
    for n in 0..12 {
        let (worker, bundle) = register(&format!("worker-{n}"), n, Offer::default(), None, world.now());
        world.must(bundle).await;
        let (store, now) = (Arc::clone(&world.store), world.now());
        workers.spawn(async move {
            let mut runs = Vec::new();
            for claim in 1..=5 {
                let (worker, incarnation) = (worker.name.clone(), worker.incarnation);
                let lease = ostler_kernel::Lease { worker, incarnation, claim };
                let claimed = store.claim(Claim::new(lease, 3, now)).await.expect("the store answers");
                runs.extend(claimed.into_iter().map(|claimed| (claimed.run.id, claimed.run.lane.class)));
            }
            runs
        });
    }
    let given: Vec<(RunId, String)> = workers.join_all().await.concat();
    let distinct: BTreeSet<RunId> = given.iter().map(|(run, _)| *run).collect();
    assert_eq!(distinct.len(), given.len(), "each run was given once");
    let small = given.iter().filter(|(_, class)| class == "small").count();
    assert_eq!((small, given.len() - small), (7, 30), "and no lane is over its limit");
}

/// So that a store that keeps silent fails a test instead of stopping it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits for a hint that `holds`; hints are coalesced, so there may be others or none in between.
async fn heard(watch: &mut tokio::sync::watch::Receiver<Hint>, holds: impl FnMut(&Hint) -> bool) -> Hint {
    let hint = tokio::time::timeout(PATIENCE, watch.wait_for(holds)).await;
    *hint.expect("a hint comes").expect("the store goes on")
}
