//! Claims that come along with what they are to get. A store may write both at once; whoever claims can't tell.

use ostler_kernel::{
    Bundle, RunId, RunTag, Task, Write,
    queue::{Share, Shares},
    worker::{Offer, Standing},
};

use super::world::World;
use crate::{Claim, Claimed};

const ROUNDS: u64 = 12;

pub async fn what_comes_with_a_claim_goes_to_it(world: World) {
    let worker = world.worker("w").await;
    for round in 1..=ROUNDS {
        let (task, bundle) = world.ask().saying("what is up?").bundle();
        let claim = Claim::new(worker.lease(round), 3, world.now());
        let claimed = along(&world, vec![bundle], claim).await;
        assert_eq!(ids(&claimed), [task.run]);
        let view = world.view(task.run).await;
        let Claimed { task: seen, run, session } = claimed[0].clone();
        assert_eq!(run.lease(), Some(&worker.lease(round)));
        assert_eq!(
            (view.task, view.run, view.session),
            (seen, run, session),
            "the answer is what was written"
        );
        assert_eq!(view.open_steps.len(), 1, "the first model call is intended");
        assert_eq!(world.said(task.session).await, ["what is up?"]);
        assert_eq!(world.story(task.id).await, ["task_accepted", "attempt_started"]);
        assert_eq!(worker.row().await.claims, round, "it is the last claim that got something");
    }
}

pub async fn several_that_come_are_shared_out(world: World) {
    let (one, other) = (world.worker("one").await, world.worker("other").await);
    for round in 1..=ROUNDS {
        let asks: Vec<(Task, Bundle)> = (0..3).map(|_| world.ask().bundle()).collect();
        let mut runs: Vec<RunId> = asks.iter().map(|(task, _)| task.run).collect();
        let claim = |hand: &super::world::Hand<'_>| Claim::new(hand.lease(round), 2, world.now());
        let bundles = asks.into_iter().map(|(_, bundle)| bundle).collect();
        let (committed, ..) = tokio::join!(
            biased;
            world.commit_all(bundles),
            world.store.claim(claim(&one)),
            world.store.claim(claim(&other)),
        );
        assert!(committed.iter().all(Result::is_ok));
        // Whoever came too early asks again; whoever got something is told the same.
        let mut given = Vec::new();
        for hand in [&one, &other] {
            given.extend(ids(&world.store.claim(claim(hand)).await.expect("the store answers")));
        }
        given.sort();
        runs.sort();
        assert_eq!(given, runs, "each goes to one of them");
    }
}

pub async fn who_waits_already_goes_first(world: World) {
    let worker = world.worker("w").await;
    let waits = world.ask().accept().await;
    world.pass(10);
    let (comes, bundle) = world.ask().bundle();
    let claimed = along(&world, vec![bundle], Claim::new(worker.lease(1), 1, world.now())).await;
    assert_eq!(ids(&claimed), [waits.run]);
    assert_eq!(worker.claim_number(2, 1).await[0].run.id, comes.run);
}

pub async fn limits_hold_for_what_comes_along(world: World) {
    let worker = world.worker("w").await;
    world.ask().in_class("narrow", Some(1)).accept().await;
    world.ask().in_namespace("tight").accept().await;
    let limit = Share { weight: 1, limit: Some(1) };
    let shares: Shares = [("tight".to_owned(), limit)].into_iter().collect();
    assert_eq!(worker.claim_number(1, 9).await.len(), 2);
    let bundles = vec![
        world.ask().in_class("narrow", Some(1)).bundle().1,
        world.ask().in_namespace("tight").bundle().1,
    ];
    let claim = Claim { shares, ..Claim::new(worker.lease(2), 9, world.now()) };
    assert_eq!(along(&world, bundles, claim).await, []);
}

pub async fn only_whom_it_fits_gets_what_comes_along(world: World) {
    let somewhere = world.worker("somewhere").await;
    let offer = Offer { region: "eu".into(), ..Offer::default() };
    let there = world.worker_offering("there", offer).await;
    let (task, bundle) = world.ask().requiring("eu").bundle();
    let claim = Claim::new(somewhere.lease(1), 1, world.now());
    assert_eq!(along(&world, vec![bundle], claim).await, []);
    assert_eq!(there.claim_runs(1).await, [task.run]);
}

pub async fn what_is_refused_goes_to_nobody(world: World) {
    let worker = world.worker("w").await;
    let first = world.ask().named("one").bundle();
    world.must(first.1).await;
    assert_eq!(worker.claim_number(1, 1).await.len(), 1);
    let bundle = world.ask().named("one").bundle().1;
    let claim = Claim::new(worker.lease(2), 1, world.now());
    let (committed, claimed) = tokio::join!(biased; world.commit(bundle), world.store.claim(claim));
    assert!(committed.is_err());
    assert_eq!(claimed, Ok(Vec::new()));
}

pub async fn a_lost_answer_is_not_made_up_for_by_what_comes(world: World) {
    let worker = world.worker("w").await;
    let first = world.ask().accept().await;
    assert_eq!(worker.claim_number(1, 2).await[0].run.id, first.run);
    let (second, bundle) = world.ask().bundle();
    let again = Claim::new(worker.lease(1), 2, world.now());
    assert_eq!(ids(&along(&world, vec![bundle], again).await), [first.run]);
    assert_eq!(worker.claim_number(2, 2).await[0].run.id, second.run);
}

pub async fn who_may_not_claim_gets_nothing_that_comes(world: World) {
    let (former, cordoned) = (world.worker("w").await, world.worker("c").await);
    world.worker("w").await;
    cordoned.stand(Standing::Cordoned).await;
    for hand in [&former, &cordoned] {
        let (task, bundle) = world.ask().bundle();
        let claim = Claim::new(hand.lease(1), 1, world.now());
        assert_eq!(along(&world, vec![bundle], claim).await, []);
        assert_eq!(world.run(task.run).await.tag(), RunTag::Queued);
    }
}

/// Whoever took it along was cut off, and it is made again while the first is still on its way.
pub async fn the_same_claim_twice_at_once_gets_the_same(world: World) {
    let worker = world.worker("w").await;
    for round in 1..=ROUNDS {
        let asks: Vec<(Task, Bundle)> = (0..2).map(|_| world.ask().bundle()).collect();
        let claim = Claim::new(worker.lease(2 * round), 1, world.now());
        let (committed, one, other) = tokio::join!(
            biased;
            world.commit_all(asks.into_iter().map(|(_, bundle)| bundle).collect()),
            world.store.claim(claim.clone()),
            world.store.claim(claim.clone()),
        );
        assert!(committed.iter().all(Result::is_ok));
        let given = ids(&world.store.claim(claim).await.expect("the store answers"));
        assert_eq!(given.len(), 1);
        for early in [one, other] {
            let early = ids(&early.expect("the store answers"));
            assert!(early.is_empty() || early == given, "{early:?} and {given:?}");
        }
        let left = worker.claim_number(2 * round + 1, 9).await;
        assert_eq!(left.len(), 1, "and no more than it asked for");
    }
}

/// The second one changes the session that the first one is given with.
pub async fn two_of_one_session_come_along(world: World) {
    let worker = world.worker("w").await;
    for round in 1..=ROUNDS {
        let (first, one) = world.ask().in_new_session(&format!("key {round}")).bundle();
        let session = one.writes.iter().find_map(|write| match write {
            Write::Session(session) => Some(session.clone()),
            _ => None,
        });
        let (second, other) = world.ask().in_session(session.expect("it is begun")).bundle();
        let claim = Claim::new(worker.lease(round), 5, world.now());
        let claimed = along(&world, vec![one, other], claim).await;
        assert_eq!(ids(&claimed), [first.run]);
        assert_eq!(claimed[0].session, world.session(first.session).await, "as it is with both");
        assert_eq!(world.run(second.run).await.rank(), None);
    }
}

/// Commits and claims at once. A claim that came too early is made again.
async fn along(world: &World, bundles: Vec<Bundle>, claim: Claim) -> Vec<Claimed> {
    let (committed, claimed) =
        tokio::join!(biased; world.commit_all(bundles), world.store.claim(claim.clone()));
    assert!(committed.iter().all(Result::is_ok), "all of them count");
    match claimed.expect("the store answers") {
        claimed if claimed.is_empty() => world.store.claim(claim).await.expect("the store answers"),
        claimed => claimed,
    }
}

fn ids(claimed: &[Claimed]) -> Vec<RunId> {
    claimed.iter().map(|claimed| claimed.run.id).collect()
}
