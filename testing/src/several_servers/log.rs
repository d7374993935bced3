//! The log, read at one server while others write.

use std::sync::Arc;

use ostler_store::{FirmLog, Store, StoreExt};
use tokio::{sync::watch, task::JoinSet, time::timeout};

use super::{House, PATIENCE};
use crate::postgres::Place;

pub async fn what_one_server_commits_the_other_hears_of(place: Place) {
    let House { servers, worlds, .. } = House::at(&place, 2).await;
    let mut watch = servers[1].watch();
    let before = *watch.borrow_and_update();
    let committed = worlds[0].must(worlds[0].ask().bundle().1).await;
    let heard = watch.wait_for(|hint| hint.position >= committed.position && hint.ready > before.ready);
    timeout(PATIENCE, heard).await.expect("it hears").expect("the store is open");
    let log = servers[1].log(committed.position - 1, 10).await.expect("the store answers");
    assert_eq!(log.len(), 1);
}

/// Positions are given when a transaction begins to write, not when it is committed: who follows must not pass by one
/// that is committed late.
pub async fn who_follows_skips_nobody_while_many_write(place: Place) {
    const TASKS: usize = 150;
    let House { servers, worlds, .. } = House::at(&place, 3).await;
    let mut writing = JoinSet::new();
    for world in &worlds[..2] {
        for _ in 0..4 {
            let world = Arc::clone(world);
            writing.spawn(async move {
                for _ in 0..TASKS / 4 {
                    let task = world.ask().accept().await;
                    let view = world.view(task.run).await;
                    world.must(world.input(&view, "more")).await;
                    world.must(world.cancel(&world.view(task.run).await)).await;
                }
            });
        }
    }
    let follower = Arc::clone(&servers[2]);
    let (end, told) = watch::channel(None);
    let mut following = JoinSet::new();
    following.spawn(async move {
        let (mut seen, mut last) = (Vec::new(), 0);
        while told.borrow().is_none_or(|end| last < end) {
            last = follow(&*follower, last, &mut seen).await;
        }
        seen
    });
    while let Some(wrote) = writing.join_next().await {
        wrote.expect("nobody panics");
    }
    end.send_replace(servers[..2].iter().map(|server| server.watch().borrow().position).max());
    let seen = timeout(PATIENCE, following.join_next()).await.expect("it comes to the end");
    let seen = seen.expect("someone follows").expect("nobody panics");
    let all = servers[0].log(0, usize::MAX).await.expect("the store answers");
    assert_eq!(all.len(), 2 * 4 * (TASKS / 4) * 3);
    let all: Vec<u64> = all.iter().map(|event| event.position).collect();
    let missed: Vec<&u64> = all.iter().filter(|position| !seen.contains(position)).collect();
    assert!(missed.is_empty(), "passed by {missed:?}");
    assert_eq!(seen, all, "in one order, each once");
}

/// The same, with the one that is late made so.
pub async fn who_follows_waits_for_one_that_began_earlier(place: Place) {
    let house = House::at(&place, 2).await;
    let (early, late) = (&house.worlds[0], &house.worlds[1]);
    let held = early.ask().accept().await;
    let other = late.ask().accept().await;
    house.visitor.hold("tasks", held.id.as_bytes()).await.expect("PostgreSQL");
    let mut committing = JoinSet::new();
    let (store, input) = (Arc::clone(&early.store), early.input(&early.view(held.run).await, "early"));
    committing.spawn(async move { store.commit(vec![input]).await });
    house.stand_still(1).await;
    late.must(late.input(&late.view(other.run).await, "late")).await;
    let (mut seen, mut last) = (Vec::new(), 0);
    last = follow(&*late.store, last, &mut seen).await;
    house.visitor.let_go().await.expect("PostgreSQL");
    let committed = committing.join_next().await.expect("it commits").expect("nobody panics");
    assert!(committed.expect("the store answers")[0].is_ok());
    let all = late.store.log(0, usize::MAX).await.expect("the store answers");
    while last < all.last().map_or(0, |event| event.position) {
        last = follow(&*late.store, last, &mut seen).await;
    }
    assert_eq!(seen, all.iter().map(|event| event.position).collect::<Vec<_>>());
}

/// Looks at what comes behind the last one that was seen, and tells which is the last one now.
async fn follow(store: &dyn Store, last: u64, seen: &mut Vec<u64>) -> u64 {
    let told = store.watch().borrow().position;
    let FirmLog { events, upto } = store.firm_log(last, 40).await.expect("the store answers");
    seen.extend(events.iter().map(|event| event.position));
    events.last().map_or(last, |event| event.position).max(upto.min(told))
}
