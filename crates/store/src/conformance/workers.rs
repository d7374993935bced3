//! Who may take what: what workers offer, what people decided about them, and how namespaces share.

use ostler_kernel::{
    RunId,
    queue::{Share, Shares},
    worker::{Offer, Standing},
};

use super::world::World;

fn in_region(region: &str) -> Offer {
    Offer { region: region.to_owned(), ..Offer::of_slots(4) }
}

pub async fn what_a_worker_offers_is_kept(world: World) {
    let offer = Offer {
        slots: 7,
        version: "1.2.3".to_owned(),
        region: "eu".to_owned(),
        labels: [("disk".to_owned(), "ssd".to_owned())].into(),
        capabilities: ["gpu".to_owned()].into(),
        models: ["large".to_owned()].into(),
        told_lease_ms: Some(30_000),
    };
    let worker = world.worker_offering("w", offer.clone()).await;
    assert_eq!((worker.row().await.offer, worker.row().await.standing), (offer, Standing::Open));
    let again = world.worker_offering("w", in_region("us")).await;
    assert_eq!(again.row().await.offer, in_region("us"), "it may offer something else the next time");
}

pub async fn a_run_goes_only_to_a_worker_that_meets_it(world: World) {
    let demanding = world.ask().requiring("eu").accept().await.run;
    world.pass(1);
    let plain = world.ask().accept().await.run;
    let (us, eu) = (
        world.worker_offering("us", in_region("us")).await,
        world.worker_offering("eu", in_region("eu")).await,
    );
    assert_eq!(us.claim_runs(5).await, [plain], "what it can't do holds it up not");
    assert_eq!(eu.claim_runs(5).await, [demanding]);
}

pub async fn a_class_holds_its_limit_whatever_its_runs_require(world: World) {
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(world.ask().in_class("narrow", Some(2)).accept().await.run);
        runs.push(world.ask().in_class("narrow", Some(2)).requiring("eu").accept().await.run);
        world.pass(1);
    }
    let worker = world.worker_offering("w", in_region("eu")).await;
    assert_eq!(worker.claim_runs(6).await, runs[..2]);
    assert_eq!(worker.claim_runs(6).await, Vec::<RunId>::new());
    let wider = world.ask().in_class("narrow", Some(4)).requiring("eu").accept().await.run;
    assert_eq!(worker.claim_runs(6).await, runs[2..4], "the last limit counts for all of them");
    assert!(!runs.contains(&wider));
}

pub async fn a_namespace_holds_its_limit(world: World) {
    let mut runs = Vec::new();
    for class in ["a", "b", "a", "b"] {
        runs.push(world.ask().in_namespace("tight").in_class(class, None).accept().await.run);
        world.pass(1);
    }
    let free = world.ask().accept().await.run;
    let limit = Share { weight: 1, limit: Some(3) };
    let shares: Shares = [("tight".to_owned(), limit)].into_iter().collect();
    let worker = world.worker("w").await;
    let mut first = worker.claim_sharing(9, &shares).await;
    first.sort();
    let mut expected = [&runs[..3], &[free]].concat();
    expected.sort();
    assert_eq!(first, expected);
    assert_eq!(worker.claim_sharing(9, &shares).await, Vec::<RunId>::new());
    let view = world.view(runs[0]).await;
    world.must(world.finish(&view, "done")).await;
    assert_eq!(worker.claim_sharing(9, &shares).await, runs[3..]);
}

pub async fn namespaces_share_by_weight(world: World) {
    for _ in 0..12 {
        world.ask().in_namespace("heavy").accept().await;
        world.ask().in_namespace("light").accept().await;
    }
    let heavy = Share { weight: 3, limit: None };
    let shares: Shares = [("heavy".to_owned(), heavy)].into_iter().collect();
    let worker = world.worker("w").await;
    let mut of_heavy = 0;
    for run in worker.claim_sharing(12, &shares).await {
        of_heavy += usize::from(world.view(run).await.task.namespace == "heavy");
    }
    assert_eq!(of_heavy, 9, "three of four");
}

pub async fn a_cordoned_worker_gets_nothing_new(world: World) {
    let run = world.ask().accept().await.run;
    let worker = world.worker("w").await;
    for standing in [Standing::Cordoned, Standing::Draining] {
        worker.stand(standing).await;
        assert_eq!(worker.row().await.standing, standing);
        assert_eq!(worker.claim_runs(1).await, Vec::<RunId>::new());
    }
    let worker = world.worker("w").await;
    assert_eq!(worker.row().await.standing, Standing::Draining, "a restart changes nothing about it");
    assert_eq!(worker.claim_runs(1).await, Vec::<RunId>::new());
    worker.stand(Standing::Open).await;
    assert_eq!(worker.claim_runs(1).await, [run]);
    worker.stand(Standing::Cordoned).await;
    let again = worker.claim_again(1).await;
    assert_eq!(again.len(), 1, "what it was given before, it still has");
}

pub async fn who_may_claim_again_is_told(world: World) {
    let worker = world.worker("w").await;
    worker.stand(Standing::Cordoned).await;
    let before = world.store.watch().borrow().ready;
    worker.stand(Standing::Open).await;
    let mut hints = world.store.watch();
    hints.wait_for(|hint| hint.ready > before).await.expect("the store lives");
}

pub async fn who_makes_room_is_told_of(world: World) {
    world.ask().in_class("narrow", Some(1)).accept().await;
    let worker = world.worker("w").await;
    let run = worker.claim_runs(1).await[0];
    let before = world.store.watch().borrow().ready;
    let view = world.view(run).await;
    world.must(world.finish(&view, "done")).await;
    let mut hints = world.store.watch();
    hints.wait_for(|hint| hint.ready > before).await.expect("the store lives");
}
