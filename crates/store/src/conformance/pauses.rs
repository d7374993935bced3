//! Pauses: retries, sleeps, waits, deadlines, workers lost again and again.

use std::time::Duration;

use ostler_kernel::{
    Bundle, Failure, RunId, RunState, RunTag, TaskState, Timestamp,
    event::EventBody,
    retry::{Jitter, RetryPolicy},
    run::{
        RunView,
        blocker::{BlockerKind, BlockerState},
        cancel,
        end::Leave,
        journal::Progress,
        take_over::{Cause, QUARANTINE_AFTER, QUARANTINE_AFTER_RESTARTS},
        wake,
    },
};

use super::world::{World, answers, asks_for_tools};
use crate::{DuePlace, StoreExt};

pub async fn who_pauses_keeps_its_open_steps(world: World) {
    let view = world.running().await;
    let progress = asks_for_tools(&view, &["search"]);
    world.must(world.leave(&view, &progress, Leave::GiveBack)).await;
    let open = world.claimed_by_anyone(view.run.id).await.open_steps;
    assert_eq!(open.iter().map(|step| step.kind.name()).collect::<Vec<_>>(), ["search"]);
}

pub async fn a_retry_waits_for_its_time(world: World) {
    let view = world.running_with_retries(3).await;
    world.must(world.fail(&view, Failure::transient("overloaded", "try later"))).await;
    let at = later(&world, 1);
    let after = world.view(view.run.id).await;
    assert_eq!((after.run.wake_at(), after.run.failures), (Some(at), 1));
    assert_eq!(after.task.state, TaskState::Running, "its caller sees work that goes on");
    assert_eq!(world.worker("w").await.claim(9).await, []);
    assert_eq!(world.store.next_due().await, Ok(Some(at)));
    world.pass(999);
    assert_eq!(world.store.due(world.now(), 9).await, Ok(vec![]));
    assert!(wake::wake(&after, world.now()).is_err(), "it is not due");
    world.pass(1);
    assert_eq!(world.store.due(world.now(), 9).await, Ok(vec![after.run.clone()]));
    world.must(world.wake(&after)).await;
    assert_eq!(world.store.next_due().await, Ok(None));
    assert_eq!(world.claimed_by_anyone(view.run.id).await.run.attempt, 2);
}

pub async fn who_is_woken_twice_wakes_once(world: World) {
    let view = world.running().await;
    world.must(world.sleep(&view, world.now())).await;
    let view = world.view(view.run.id).await;
    let results = world.commit_all(vec![world.wake(&view), world.wake(&view)]).await;
    assert!(results[0].is_ok() && results[1].is_err(), "{results:?}");
}

pub async fn a_sleeper_wakes_for_an_input(world: World) {
    let view = world.running().await;
    world.must(world.sleep(&view, later(&world, 3600))).await;
    let view = world.view(view.run.id).await;
    assert_eq!(view.task.state, TaskState::Sleeping { until: later(&world, 3600), why: None });
    world.must(world.input(&view, "wake up")).await;
    assert_eq!(world.store.next_due().await, Ok(None));
    let view = world.claimed_by_anyone(view.run.id).await;
    assert_eq!((view.last_input, view.consumed_input), (1, 0));
}

pub async fn an_input_answers_who_waits_for_one(world: World) {
    let view = world.running().await;
    world.must(world.wait_for(&view, BlockerKind::Input)).await;
    let view = world.view(view.run.id).await;
    let RunState::Waiting { on } = view.run.state else { panic!("{:?}", view.run.state) };
    let blocker = world.blocker(on).await;
    assert_eq!(blocker.state, BlockerState::Open);
    assert_eq!(view.blocker.as_ref(), Some(&blocker), "who looks at the run sees what it waits for");
    world.must(world.input(&view, "here")).await;
    assert!(matches!(world.blocker(on).await.state, BlockerState::Resolved { .. }));
    world.claimed_by_anyone(view.run.id).await;
}

pub async fn an_approval_is_not_answered_by_an_input(world: World) {
    let view = world.running().await;
    world.must(world.wait_for(&view, BlockerKind::Approval)).await;
    let view = world.view(view.run.id).await;
    let RunState::Waiting { on } = view.run.state else { panic!("{:?}", view.run.state) };
    world.must(world.input(&view, "please")).await;
    assert_eq!(world.blocker(on).await.state, BlockerState::Open);
    assert_eq!(world.worker("w").await.claim(9).await, []);
    let resolve = |answer| wake::resolve(&view, answer, world.now()).expect("it waits");
    let results = world.commit_all(vec![resolve("yes"), resolve("no")]).await;
    assert!(results[0].is_ok() && results[1].is_err(), "it is decided once: {results:?}");
    let BlockerState::Resolved { resolution, .. } = world.blocker(on).await.state else { panic!("open") };
    assert_eq!(resolution, "yes");
}

pub async fn what_is_due_comes_in_the_order_of_time(world: World) {
    let mut sleepers = Vec::new();
    for seconds in [30, 10, 20] {
        let view = world.running().await;
        world.must(world.sleep(&view, later(&world, seconds))).await;
        sleepers.push(view.run.id);
    }
    let expiring = world.ask().by(later(&world, 15)).accept().await;
    world.ask().by(later(&world, 99)).accept().await;
    assert_eq!(world.store.next_due().await, Ok(Some(later(&world, 10))));
    let due = async |now: Timestamp, limit| -> Vec<_> {
        let due = world.store.due(now, limit).await.expect("the store answers");
        due.iter().map(|run| run.id).collect()
    };
    let [third, first, fourth] = sleepers[..] else { panic!("three sleep") };
    assert_eq!(due(later(&world, 9), 9).await, []);
    assert_eq!(due(later(&world, 20), 9).await, [first, expiring.run, fourth]);
    assert_eq!(due(later(&world, 30), 9).await, [first, expiring.run, fourth, third]);
    assert_eq!(due(later(&world, 30), 2).await, [first, expiring.run]);
    let behind = async |after: DuePlace| -> Vec<_> {
        let due = world.store.due_behind(after, later(&world, 30), 9).await.expect("the store answers");
        due.iter().map(|run| run.id).collect()
    };
    let place = DuePlace { at: later(&world, 15), run: expiring.run };
    assert_eq!(behind(place).await, [fourth, third], "one page goes on where another ended");
    assert_eq!(behind(DuePlace::behind(later(&world, 20))).await, [third]);
}

pub async fn how_long_is_kept_beside_until_when(world: World) {
    let view = world.running_with_retries(3).await;
    world.must(world.fail(&view, Failure::transient("overloaded", "try later"))).await;
    let delayed = world.view(view.run.id).await;
    assert_eq!(delayed.run.delay(), Some(Duration::from_secs(1)));
    // Whatever the calendar says: who knows that it is over wakes it.
    let again = wake::wake_waited(&delayed, world.now()).expect("it is delayed");
    world.must(again).await;
    let view = world.claimed_by_anyone(view.run.id).await;
    assert!(wake::wake_waited(&view, world.now()).is_err(), "it is at work");
    let sleep = Leave::Sleep { until: later(&world, 7200), delay_ms: Some(5_000), why: None };
    world.must(world.leave(&view, &Progress::default(), sleep)).await;
    let asleep = world.view(view.run.id).await;
    assert_eq!(
        (asleep.run.wake_at(), asleep.run.delay()),
        (Some(later(&world, 5)), Some(Duration::from_secs(5))),
        "dated here, whatever calendar its worker has"
    );
}

pub async fn a_deadline_counts_until_the_end(world: World) {
    let deadline = later(&world, 5);
    let task = world.ask().by(deadline).accept().await;
    let view = world.claimed_by_anyone(task.run).await;
    world.must(world.sleep(&view, later(&world, 60))).await;
    assert_eq!(world.store.next_due().await, Ok(Some(deadline)), "the earlier of the two");
    world.pass(5000);
    let view = world.view(task.run).await;
    world.must(world.expire(&view)).await;
    assert_eq!(world.store.next_due().await, Ok(None));
    assert_eq!(world.run(task.run).await.tag(), RunTag::Timeout);
    let row = world.task(task.id).await.task;
    assert_eq!(
        (row.state, row.failure.expect("why").code.as_str()),
        (TaskState::Failed, "deadline_exceeded")
    );
}

pub async fn losing_workers_again_and_again_quarantines(world: World) {
    let view = world.quarantined().await;
    assert_eq!(view.blocker.as_ref().expect("it waits").kind, BlockerKind::Quarantine);
    assert_eq!(view.open_steps.len(), 1, "the step that was open is the next attempt's");
    assert_eq!(world.worker("w").await.claim(9).await, []);
    world.must(wake::resolve(&view, "let it try", world.now()).expect("it waits")).await;
    let view = world.claimed_by_anyone(view.run.id).await;
    assert_eq!(view.run.lost_in_row, 0);
}

pub async fn restarts_and_finished_steps_do_not_quarantine(world: World) {
    let mut view = world.running().await;
    for _ in 0..QUARANTINE_AFTER + 2 {
        world.must(world.lose(&view, Cause::Restarted)).await;
        view = world.claimed_by_anyone(view.run.id).await;
    }
    assert_eq!(view.run.lost_in_row, 0);
    world.must(world.lose(&view, Cause::Silent)).await;
    view = world.claimed_by_anyone(view.run.id).await;
    world.must(world.journal(&view, &answers(&view, "still working"))).await;
    let run = world.run(view.run.id).await;
    assert_eq!((run.lost_in_row, run.restarted_in_row), (0, 0), "a finished step starts the counts anew");
}

pub async fn crashing_again_and_again_quarantines_in_the_end(world: World) {
    let mut view = world.running().await;
    for crashes in 1..=3 {
        world.must(world.lose(&view, Cause::Restarted)).await;
        view = world.claimed_by_anyone(view.run.id).await;
        world.must(world.lose(&view, Cause::Untold)).await;
        view = world.claimed_by_anyone(view.run.id).await;
        assert_eq!((view.run.restarted_in_row, view.run.lost_in_row), (crashes, 0));
    }
    view.run.restarted_in_row = QUARANTINE_AFTER_RESTARTS - 1;
    world.must(world.lose(&view, Cause::Restarted)).await;
    let view = world.view(view.run.id).await;
    let blocker = view.blocker.as_ref().expect("it waits");
    assert_eq!(blocker.kind, BlockerKind::Quarantine);
    assert!(blocker.summary.contains("100 attempts in a row"), "{}", blocker.summary);
    world.must(wake::resolve(&view, "let it try", world.now()).expect("it waits")).await;
    let view = world.claimed_by_anyone(view.run.id).await;
    assert_eq!(view.run.restarted_in_row, 0, "a person let it go on");
}

pub async fn a_lost_attempt_is_told_in_the_log(world: World) {
    let view = world.running().await;
    world.must(world.lose(&view, Cause::Silent)).await;
    let story = world.story(view.task.id).await;
    assert_eq!(story, ["task_accepted", "attempt_started", "attempt_ended"]);
    let events = world.events(view.task.id).await;
    assert!(matches!(events[2].body, EventBody::AttemptEnded { attempt: 1, .. }));
}

pub async fn the_whole_is_tried_again_after_a_pause_of_its_own(world: World) {
    let task = world.ask().retried(tries(2, 1)).retried_as_a_whole(tries(3, 60)).accept().await;
    for seconds in [1, 60, 1, 120, 1] {
        assert_eq!(world.fails(task.run).await, Some(later(&world, seconds)));
        world.goes_on(task.run, seconds).await;
    }
    assert_eq!(world.fails(task.run).await, None, "three times two tries are used up");
    let after = world.view(task.run).await;
    assert_eq!((after.task.state, after.run.failures), (TaskState::DeadLetter, 6));
}

pub async fn a_line_of_agents_shares_the_tries_at_the_whole(world: World) {
    let ask = world.ask().retried(tries(1, 1)).retried_as_a_whole(tries(3, 60));
    let task = ask.for_system(&["helper", "writer"]).accept().await;
    assert_eq!(world.fails(task.run).await, Some(later(&world, 60)));
    world.goes_on(task.run, 60).await;
    let first = world.claimed_by_anyone(task.run).await;
    let (second, bundle) = world.hand_on(&first, "a draft");
    world.must(bundle).await;
    assert_eq!(world.fails(second).await, Some(later(&world, 120)), "the second of three");
    world.goes_on(second, 120).await;
    assert_eq!(world.fails(second).await, None, "the third was the last");
    assert_eq!(world.view(second).await.task.state, TaskState::DeadLetter);
}

/// So many, with a pause of so many seconds behind the first.
fn tries(max_attempts: u32, seconds: u64) -> RetryPolicy {
    let backoff_ms = seconds * 1000;
    RetryPolicy { max_attempts, backoff_ms, jitter: Jitter::None, ..RetryPolicy::default() }
}

impl World {
    pub(super) async fn running_with_retries(&self, max_attempts: u32) -> RunView {
        let task = self.ask().retried(tries(max_attempts, 1)).accept().await;
        self.claimed_by_anyone(task.run).await
    }

    /// When the run, which is claimed for it, is tried again; none if it isn't.
    async fn fails(&self, run: RunId) -> Option<Timestamp> {
        let view = self.claimed_by_anyone(run).await;
        self.must(self.fail(&view, Failure::transient("overloaded", "try later"))).await;
        self.view(run).await.run.wake_at()
    }

    async fn goes_on(&self, run: RunId, seconds: u64) {
        self.pass(seconds.cast_signed() * 1000);
        self.must(self.wake(&self.view(run).await)).await;
    }

    pub(super) fn expire(&self, view: &RunView) -> Bundle {
        cancel::expire(view, self.now()).expect("it has not ended")
    }

    /// A run that waits for something of this kind.
    pub(super) async fn waiting(&self, kind: BlockerKind) -> RunView {
        let view = self.running().await;
        self.must(self.wait_for(&view, kind)).await;
        self.view(view.run.id).await
    }

    /// A run that lost its workers again and again.
    pub(super) async fn quarantined(&self) -> RunView {
        let mut view = self.running().await;
        for lost in 1..QUARANTINE_AFTER {
            self.must(self.lose(&view, Cause::Silent)).await;
            view = self.claimed_by_anyone(view.run.id).await;
            assert_eq!((view.run.lost_in_row, view.run.failures), (lost, 0), "it uses no retry");
        }
        self.must(self.lose(&view, Cause::Silent)).await;
        self.view(view.run.id).await
    }

    pub(super) fn fail(&self, view: &RunView, failure: Failure) -> Bundle {
        self.leave(view, &Progress::default(), Leave::Failed { failure })
    }
}

pub(super) fn later(world: &World, seconds: u64) -> Timestamp {
    world.now().after(Duration::from_secs(seconds))
}
