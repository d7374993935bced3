//! Claims: who gets which runs, in what order, and never one too many.

use std::collections::BTreeSet;

use ostler_kernel::{
    RunId, RunTag, StepKind, TaskState,
    event::EventBody,
    queue::{self, Priority},
    run::{blocker::BlockerKind, take_over::Cause},
    worker::Offer,
};

use super::world::World;
use crate::{Claim, Claimed, StoreExt};

pub async fn the_first_claim_begins_the_run(world: World) {
    let task = world.ask().saying("what is up?").accept().await;
    let worker = world.worker("w").await;
    world.pass(5);
    let claimed = worker.claim(3).await;
    assert_eq!(claimed.len(), 1);
    let Claimed { task: seen, run, session } = claimed[0].clone();
    assert_eq!(run.tag(), RunTag::Running);
    assert_eq!((run.attempt, run.epoch, run.lease()), (1, 1, Some(&worker.lease(1))));
    assert_eq!((seen.state.clone(), seen.started_at), (TaskState::Running, Some(world.now())));
    let view = world.view(task.run).await;
    assert_eq!((view.task, view.run, view.session), (seen, run, session), "the answer is what was written");
    assert_eq!(world.said(task.session).await, ["what is up?"]);
    assert_eq!(view.open_steps.len(), 1, "the first model call is intended");
    assert!(matches!(view.open_steps[0].kind, StepKind::Model { .. }));
    assert_eq!(world.story(task.id).await, ["task_accepted", "attempt_started"]);
}

pub async fn a_later_claim_goes_on(world: World) {
    let view = world.running().await;
    world.must(world.give_back(&view)).await;
    let again = world.claimed_by_anyone(view.run.id).await;
    assert_eq!((again.run.attempt, again.run.epoch), (2, 3));
    assert_eq!(again.open_steps, view.open_steps, "the step that was open still is");
    assert_eq!(world.said(view.session.id).await, ["hello"], "the message is not said twice");
    let events = world.events(view.task.id).await;
    assert!(matches!(
        events.last().expect("a log").body,
        EventBody::AttemptStarted { attempt: 2, step: 0, .. }
    ));
}

pub async fn the_longest_waiting_goes_first(world: World) {
    let mut tasks = Vec::new();
    for _ in 0..4 {
        tasks.push(world.ask().accept().await.run);
        world.pass(10);
    }
    let worker = world.worker("w").await;
    assert_eq!(worker.claim_runs(3).await, tasks[..3]);
    assert_eq!(worker.claim_runs(3).await, tasks[3..]);
    assert_eq!(worker.claim_runs(3).await, []);
}

pub async fn runs_of_one_rank_go_in_the_order_of_their_ids(world: World) {
    let mut asks = Vec::new();
    for _ in 0..3 {
        asks.push(world.ask().bundle());
    }
    let runs: Vec<RunId> = asks.iter().map(|(task, _)| task.run).collect();
    for (_, bundle) in asks.into_iter().rev() {
        world.must(bundle).await;
    }
    assert_eq!(world.worker("w").await.claim_runs(3).await, runs);
}

pub async fn priority_is_worth_waiting_time(world: World) {
    let waits_long = world.ask().accept().await.run;
    world.pass(61_000);
    let low = world.ask().of_priority(Priority::Low).accept().await.run;
    let normal = world.ask().accept().await.run;
    let high = world.ask().of_priority(Priority::High).accept().await.run;
    let urgent = world.ask().of_priority(Priority::Urgent).accept().await.run;
    let order = world.worker("w").await.claim_runs(9).await;
    assert_eq!(order, [urgent, waits_long, high, normal, low], "waiting overtakes in the end");
}

pub async fn namespaces_share_a_claim(world: World) {
    for _ in 0..5 {
        world.ask().in_namespace("flood").accept().await;
    }
    world.pass(1000);
    let small = world.ask().in_namespace("small").accept().await.run;
    let given = world.worker("w").await.claim_runs(2).await;
    assert!(given.contains(&small), "a flood in one namespace does not keep another waiting");
    assert_eq!(given.len(), 2);
}

pub async fn turns_are_remembered_between_claims(world: World) {
    let worker = world.worker("w").await;
    for namespace in ["a", "b", "a", "b", "a", "b"] {
        world.ask().in_namespace(namespace).accept().await;
    }
    let mut served = Vec::new();
    for _ in 0..6 {
        served.extend(worker.claim(1).await.into_iter().map(|claimed| claimed.task.namespace));
    }
    assert_eq!(served, ["a", "b", "a", "b", "a", "b"]);
}

pub async fn a_lane_holds_its_limit_exactly(world: World) {
    for _ in 0..5 {
        world.ask().in_class("small", Some(2)).accept().await;
    }
    let (one, two) = (world.worker("one").await, world.worker("two").await);
    let first = one.claim_runs(1).await;
    assert_eq!(two.claim(9).await.len(), 1, "the limit holds for all workers together");
    assert_eq!(one.claim(9).await.len(), 0);
    let view = world.view(first[0]).await;
    world.must(world.finish(&view, "done")).await;
    assert_eq!(one.claim(9).await.len(), 1, "whoever ends makes room for one");
}

pub async fn who_waits_or_sleeps_makes_room_in_its_lane(world: World) {
    for _ in 0..3 {
        world.ask().in_class("small", Some(1)).accept().await;
        world.pass(1);
    }
    let worker = world.worker("w").await;
    let first = world.view(worker.claim_runs(9).await[0]).await;
    world.must(world.wait_for(&first, BlockerKind::Approval)).await;
    let second = world.view(worker.claim_runs(9).await[0]).await;
    world.must(world.sleep(&second, world.now())).await;
    assert_eq!(worker.claim(9).await.len(), 1);
    world.must(world.wake(&world.view(second.run.id).await)).await;
    assert_eq!(worker.claim(9).await.len(), 0, "it waits for room like everyone");
}

pub async fn the_last_limit_of_a_lane_counts(world: World) {
    for limit in [Some(1), Some(1), Some(3)] {
        world.ask().in_class("small", limit).accept().await;
    }
    let worker = world.worker("w").await;
    assert_eq!(worker.claim(9).await.len(), 3);
    world.ask().in_class("small", Some(3)).accept().await;
    assert_eq!(worker.claim(9).await.len(), 0);
    world.ask().in_class("small", None).accept().await;
    assert_eq!(worker.claim(9).await.len(), 2);
}

pub async fn a_limit_counts_for_what_waits_already(world: World) {
    for _ in 0..3 {
        world.ask().in_class("small", None).accept().await;
        world.ask().in_class("small", None).requiring("eu").accept().await;
    }
    world.ask().in_class("large", None).accept().await;
    let offer = Offer { region: "eu".into(), ..Offer::default() };
    let worker = world.worker_offering("w", offer).await;
    let mut ready = world.store.watch().borrow().ready;
    for (limit, n_more) in [(Some(2), 3), (Some(3), 1), (Some(1), 0), (None, 3)] {
        world.must(queue::limit("default", "small", limit)).await;
        let hint = world.store.watch().borrow().ready;
        assert!(hint > ready, "whoever waits for a run looks again");
        ready = hint;
        assert_eq!(worker.claim(9).await.len(), n_more, "{limit:?}");
    }
}

pub async fn of_limits_that_come_together_the_last_one_counts(world: World) {
    let asks = || world.ask().in_class("small", Some(1)).bundle().1;
    let limit = || queue::limit("default", "small", Some(3));
    let worker = world.worker("w").await;
    for result in world.store.commit(vec![asks(), limit(), asks()]).await.expect("the store answers") {
        result.expect("nothing is in the way");
    }
    assert_eq!(worker.claim(9).await.len(), 1);
    for result in world.store.commit(vec![asks(), asks(), limit()]).await.expect("the store answers") {
        result.expect("nothing is in the way");
    }
    assert_eq!(worker.claim(9).await.len(), 2);
}

pub async fn a_full_lane_holds_up_nobody_else(world: World) {
    for _ in 0..20 {
        world.ask().in_class("small", Some(1)).accept().await;
    }
    world.pass(1000);
    let other_class = world.ask().in_class("large", Some(1)).accept().await.run;
    let other_space = world.ask().in_namespace("other").in_class("small", Some(1)).accept().await.run;
    let worker = world.worker("w").await;
    let given: BTreeSet<RunId> = worker.claim_runs(9).await.into_iter().collect();
    assert_eq!(given.len(), 3);
    assert!(given.contains(&other_class) && given.contains(&other_space));
}

pub async fn a_lane_without_room_at_all_gets_nothing(world: World) {
    world.ask().in_class("closed", Some(0)).accept().await;
    assert_eq!(world.worker("w").await.claim(9).await.len(), 0);
}

pub async fn the_same_claim_gets_the_same_runs(world: World) {
    for _ in 0..4 {
        world.ask().accept().await;
    }
    let worker = world.worker("w").await;
    let first = worker.claim(2).await;
    let again = worker.claim_again(2).await;
    assert_eq!(again, first, "its answer was lost, not its runs");
    assert_eq!(world.store.leased(None).await.expect("the store answers").len(), 2);
    let more = worker.claim(2).await;
    assert!(more.len() == 2 && more.iter().all(|claimed| !first.contains(claimed)));
}

pub async fn the_same_claim_gets_only_what_it_still_holds(world: World) {
    for _ in 0..3 {
        world.ask().accept().await;
    }
    let worker = world.worker("w").await;
    let first = worker.claim_runs(2).await;
    let (gone, kept) = (first[0], first[1]);
    world.must(world.finish(&world.view(gone).await, "done")).await;
    let again: Vec<RunId> = worker.claim_again(2).await.into_iter().map(|claimed| claimed.run.id).collect();
    assert_eq!(again, [kept], "and nothing new beside it");
}

pub async fn an_overtaken_claim_gets_nothing(world: World) {
    world.ask().accept().await;
    let worker = world.worker("w").await;
    let claimed = worker.claim_number(5, 1).await;
    world.ask().accept().await;
    assert_eq!(worker.claim_number(4, 1).await, []);
    assert_eq!(worker.row().await.claims, 5);
    assert_eq!(claimed.len() + worker.claim_number(6, 1).await.len(), 2);
}

pub async fn a_claim_overtaken_by_one_that_got_nothing_gets_nothing(world: World) {
    let worker = world.worker("w").await;
    assert_eq!((worker.claim_number(1, 1).await, worker.claim_number(2, 1).await), (vec![], vec![]));
    assert_eq!(worker.row().await.claims, 0, "what gave nothing is not written down");
    let task = world.ask().accept().await;
    assert_eq!(worker.claim_number(1, 1).await, [], "its worker would never hear of it");
    assert_eq!(worker.claim_number(2, 1).await[0].run.id, task.run);
    assert_eq!(worker.row().await.claims, 2);
}

pub async fn a_claim_that_got_nothing_may_be_made_again(world: World) {
    let worker = world.worker("w").await;
    assert_eq!(worker.claim(1).await, []);
    let task = world.ask().accept().await;
    assert_eq!(worker.claim_again(1).await[0].run.id, task.run, "it waits until there is something");
    world.must(world.finish(&world.view(task.run).await, "done")).await;
    let restarted = world.worker("w").await;
    let next = world.ask().accept().await;
    assert_eq!(restarted.claim_number(1, 1).await[0].run.id, next.run, "a new incarnation counts from 1");
}

pub async fn a_former_incarnation_gets_nothing(world: World) {
    let former = world.worker("w").await;
    let present = world.worker("w").await;
    world.ask().accept().await;
    assert_eq!(former.claim(1).await, []);
    let future = ostler_kernel::Lease { incarnation: 3, ..present.lease(1) };
    let claim = Claim::new(future, 1, world.now());
    assert_eq!(world.store.claim(claim).await, Ok(Vec::new()));
    assert_eq!(present.claim(1).await.len(), 1);
}

pub async fn a_restarted_worker_does_not_get_its_old_claim_back(world: World) {
    world.ask().accept().await;
    let former = world.worker("w").await;
    let held = former.claim_runs(1).await;
    let present = world.worker("w").await;
    assert_eq!(present.claim(1).await, [], "claim 1 of another incarnation is another claim");
    world.must(world.lose(&world.view(held[0]).await, Cause::Restarted)).await;
    assert_eq!(present.claim_runs(1).await, held);
}

pub async fn a_worker_nobody_knows_gets_nothing(world: World) {
    world.ask().accept().await;
    let lease = ostler_kernel::Lease { worker: "nobody".to_owned(), incarnation: 1, claim: 1 };
    let claim = Claim::new(lease, 1, world.now());
    assert_eq!(world.store.claim(claim).await, Ok(Vec::new()));
}

pub async fn no_slots_get_nothing(world: World) {
    world.ask().accept().await;
    let worker = world.worker("w").await;
    assert_eq!(worker.claim(0).await, []);
    assert_eq!(worker.claim(usize::MAX).await.len(), 1);
}

pub async fn only_ready_runs_are_given(world: World) {
    let sleeping = world.running().await;
    world.must(world.sleep(&sleeping, world.pass(0).after(std::time::Duration::from_secs(1)))).await;
    let waiting = world.running().await;
    world.must(world.wait_for(&waiting, BlockerKind::Input)).await;
    let ended = world.running().await;
    world.must(world.finish(&ended, "done")).await;
    let busy = world.running().await;
    world.ask().in_session(busy.session.clone()).accept().await;
    world.pass(5000);
    assert_eq!(world.worker("w").await.claim(9).await, [], "time alone makes nobody ready");
}

pub async fn who_lost_its_worker_keeps_its_place(world: World) {
    let first = world.running().await;
    world.pass(100);
    world.ask().accept().await;
    world.pass(100);
    world.must(world.lose(&first, Cause::Silent)).await;
    assert_eq!(world.worker("w").await.claim_runs(1).await, [first.run.id]);
}
