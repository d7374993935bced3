//! Claims at several servers at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use ostler_kernel::RunId;
use ostler_store::{StoreExt, conformance::world::World};
use tokio::task::JoinSet;

use super::House;
use crate::postgres::Place;

/// Twenty workers on two servers, one class with room for five.
pub async fn a_class_never_holds_one_more_than_it_may(place: Place) {
    const LIMIT: usize = 5;
    const TASKS: usize = 120;
    let House { worlds, .. } = House::at(&place, 2).await;
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

/// One server stands still between counting and giving; the other must not count meanwhile.
pub async fn two_servers_do_not_both_give_the_last_place(place: Place) {
    let house = House::at(&place, 2).await;
    let first = house.worlds[0].ask().in_class("narrow", Some(1)).accept().await;
    house.worlds[0].ask().in_class("narrow", Some(1)).accept().await;
    house.visitor.hold("tasks", first.id.as_bytes()).await.expect("PostgreSQL");
    let mut claiming = JoinSet::new();
    claiming.spawn(claim_one(Arc::clone(&house.worlds[0]), "one"));
    house.stand_still(1).await;
    let other = claiming.spawn(claim_one(Arc::clone(&house.worlds[1]), "two"));
    house.ended_or_waiting(&other, 2).await;
    house.visitor.let_go().await.expect("PostgreSQL");
    let given = claiming.join_all().await.concat();
    assert_eq!(given, [first.run], "and nothing to the other");
    assert_eq!(house.servers[0].leased(None).await.expect("the store answers").len(), 1);
}

/// One server stands still with a run in its hand; the other passes it over, and gives the next.
pub async fn a_server_that_stands_still_holds_up_no_claim_of_another(place: Place) {
    let house = House::at(&place, 2).await;
    let world = &house.worlds[0];
    // One that began before: nothing it wrote then is in the way of giving it twice.
    let first = world.running().await;
    world.must(world.give_back(&first)).await;
    let second = world.ask().accept().await;
    house.visitor.hold_next_event(first.task.id.as_bytes()).await.expect("PostgreSQL");
    let mut claiming = JoinSet::new();
    claiming.spawn(claim_one(Arc::clone(world), "one"));
    house.stand_still(1).await;
    let mut other = JoinSet::new();
    let task = other.spawn(claim_one(Arc::clone(&house.worlds[1]), "two"));
    house.ended_or_waiting(&task, 2).await;
    let passed_over = task.is_finished();
    house.visitor.let_go().await.expect("PostgreSQL");
    assert_eq!(claiming.join_all().await.concat(), [first.run.id]);
    assert_eq!(other.join_all().await.concat(), [second.run], "each run goes to one");
    assert!(passed_over, "it did not wait");
}

async fn claim_one(world: Arc<World>, name: &str) -> Vec<RunId> {
    let worker = world.worker(name).await;
    worker.claim_runs(1).await
}
