//! Several servers on one store: what one of them alone can't show.

#![allow(clippy::expect_used, reason = "these are tests: one fails by panicking")]

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ostler_store::{Store, StoreExt, TaskRef, conformance::world::World};
use ostler_testing::postgres::Postgres;
use tokio::{sync::watch, task::JoinSet, time::timeout};

const SOON: Duration = Duration::from_secs(30);

async fn servers(count: usize) -> Vec<Arc<dyn Store>> {
    Postgres::shared_store(count).await.expect("PostgreSQL")
}

/// Worlds that don't make the same ids.
fn worlds(servers: &[Arc<dyn Store>]) -> Vec<Arc<World>> {
    (0..).zip(servers).map(|(number, store)| Arc::new(World::beside(Arc::clone(store), number))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_server_commits_the_other_hears_of() {
    let servers = servers(2).await;
    let worlds = worlds(&servers);
    let mut watch = servers[1].watch();
    let before = *watch.borrow_and_update();
    let committed = worlds[0].must(worlds[0].ask().bundle().1).await;
    let heard = watch.wait_for(|hint| hint.position >= committed.position && hint.ready > before.ready);
    timeout(SOON, heard).await.expect("it hears").expect("the store is open");
    let log = servers[1].log(committed.position - 1, 10).await.expect("the store answers");
    assert_eq!(log.len(), 1);
}

/// Positions are given when a transaction begins to write, not when it is committed: who follows must not pass by one
/// that is committed late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_skips_nobody_while_many_write() {
    const TASKS: usize = 150;
    let servers = servers(3).await;
    let worlds = worlds(&servers);
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
            let events = follower.log(last, 40).await.expect("the store answers");
            last = events.last().map_or(last, |event| event.position);
            seen.extend(events.iter().map(|event| event.position));
        }
        seen
    });
    while let Some(wrote) = writing.join_next().await {
        wrote.expect("nobody panics");
    }
    end.send_replace(servers[..2].iter().map(|server| server.watch().borrow().position).max());
    let seen = timeout(SOON, following.join_next()).await.expect("it comes to the end");
    let seen = seen.expect("someone follows").expect("nobody panics");
    let all = servers[0].log(0, usize::MAX).await.expect("the store answers");
    assert_eq!(all.len(), 2 * 4 * (TASKS / 4) * 3);
    let all: Vec<u64> = all.iter().map(|event| event.position).collect();
    let missed: Vec<&u64> = all.iter().filter(|position| !seen.contains(position)).collect();
    assert!(missed.is_empty(), "passed by {missed:?}");
    assert_eq!(seen, all, "in one order, each once");
}

/// Twenty workers on two servers, one class with room for five.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_never_holds_one_more_than_it_may() {
    const LIMIT: usize = 5;
    const TASKS: usize = 120;
    let servers = servers(2).await;
    let worlds = worlds(&servers);
    for _ in 0..TASKS {
        worlds[0].ask().in_class("narrow", Some(LIMIT as u32)).accept().await;
    }
    let (busy, most, done) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut working = JoinSet::new();
    for number in 0..20 {
        let world = Arc::clone(&worlds[number % 2]);
        let (busy, most, done) = (Arc::clone(&busy), Arc::clone(&most), Arc::clone(&done));
        working.spawn(async move {
            let worker = world.worker(&format!("worker-{number}")).await;
            while done.load(Ordering::SeqCst) < TASKS {
                for claimed in worker.claim(3).await {
                    most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let view = world.view(claimed.run.id).await;
                    // Counted out before it is: whoever gets the slot behind it comes later.
                    busy.fetch_sub(1, Ordering::SeqCst);
                    world.must(world.finish(&view, "done")).await;
                    done.fetch_add(1, Ordering::SeqCst);
                }
                let leased = world.store.leased(None).await.expect("the store answers");
                assert!(leased.len() <= LIMIT, "{} leases", leased.len());
            }
        });
    }
    while let Some(worked) = working.join_next().await {
        worked.expect("nobody panics");
    }
    assert!((1..=LIMIT).contains(&most.load(Ordering::SeqCst)));
    assert_eq!(done.load(Ordering::SeqCst), TASKS);
}

/// The same name, asked for at two servers at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_servers_gives_the_name() {
    let servers = servers(2).await;
    let worlds = worlds(&servers);
    for round in 0..30 {
        let name = format!("the one {round}");
        let [(_, left), (_, right)] = [0, 1].map(|server: usize| worlds[server].ask().named(&name).bundle());
        let (left, right) = tokio::join!(worlds[0].commit(left), worlds[1].commit(right));
        assert_eq!(
            [left.is_ok(), right.is_ok()].into_iter().filter(|counts| *counts).count(),
            1,
            "round {round}"
        );
    }
    let all = servers[0].log(0, usize::MAX).await.expect("the store answers");
    assert_eq!(all.iter().map(|event| event.task).collect::<BTreeSet<_>>().len(), 30);
}

/// The database refuses a text with a NUL. Whoever comes along in the same batch has nothing to do with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_database_can_not_hold_harms_nobody_else() {
    let servers = servers(1).await;
    let world = &worlds(&servers)[0];
    let mut committing = JoinSet::new();
    for number in 0..40 {
        let key = if number % 10 == 5 { format!("key\u{0}{number}") } else { format!("key {number}") };
        let bundle = world.ask().under_key(&key).bundle().1;
        let store = Arc::clone(&servers[0]);
        committing.spawn(async move { (number, store.commit(vec![bundle]).await) });
    }
    for (number, result) in committing.join_all().await {
        let counts = matches!(result.as_deref(), Ok([Ok(_)]));
        assert_eq!(counts, number % 10 != 5, "{number}: {result:?}");
    }
    let key = |key: &str| TaskRef::Key { namespace: "default".into(), key: key.into() };
    assert_eq!(servers[0].task(key("key\u{0}5")).await, Ok(None), "it is not there, and one may ask");
    assert!(servers[0].task(key("key 4")).await.expect("the store answers").is_some());
}
