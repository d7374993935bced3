//! Endings and pauses: cancel in every state, retries, sleeps, waits, deadlines, workers lost again and again.

use std::time::Duration;

use ostler_kernel::{
    Bundle, Command, Failure, RunState, RunTag, StepOutcome, TaskState, Timestamp, Write,
    event::EventBody,
    retry::{Jitter, RetryPolicy},
    run::{
        RunView,
        blocker::{BlockerKind, BlockerState},
        cancel,
        end::Leave,
        journal::Progress,
        take_over::{Cause, QUARANTINE_AFTER},
        wake,
    },
    step::StepState,
};

use super::world::{World, answers, asks_for_tools};
use crate::{StoreExt, TaskFilter};

pub async fn cancel_closes_open_steps_and_answers_their_calls(world: World) {
    let view = world.running().await;
    world.must(world.journal(&view, &asks_for_tools(&view, &["search", "fetch"]))).await;
    let view = world.view(view.run.id).await;
    world.must(world.cancel(&view)).await;
    let steps = world.store.steps(view.run.id).await.expect("the store answers");
    let interrupted = |outcome: &StepOutcome| matches!(outcome, StepOutcome::Interrupted);
    let closed = steps
        .iter()
        .filter(|step| matches!(&step.state, StepState::Done { outcome, .. } if interrupted(outcome)));
    assert_eq!(closed.count(), 2);
    let said = world.said(view.session.id).await;
    assert_eq!(said.len(), 4, "each open call has its result: {said:?}");
    let after = world.view(view.run.id).await;
    assert_eq!(
        (after.run.tag(), after.task.state, after.open_steps),
        (RunTag::Cancelled, TaskState::Cancelled, vec![])
    );
    assert_eq!((after.session.head, after.session.next_entry), (None, 4));
    assert!(world.events(view.task.id).await.last().expect("a log").body.is_last());
}

pub async fn a_cancelled_run_can_not_be_written_by_its_worker(world: World) {
    let view = world.running().await;
    world.must(world.cancel(&view)).await;
    world.refused(world.journal(&view, &answers(&view, "too late"))).await;
    world.refused(world.finish(&view, "too late")).await;
    assert_eq!(world.said(view.session.id).await, ["hello"]);
    assert_eq!(world.store.leased(None).await, Ok(vec![]));
}

pub async fn a_cancel_decided_before_the_last_write_is_refused(world: World) {
    let view = world.running().await;
    world.must(world.journal(&view, &asks_for_tools(&view, &["search"]))).await;
    world.refused(world.cancel(&view)).await;
    world.must(world.cancel(&world.view(view.run.id).await)).await;
    assert_eq!(world.view(view.run.id).await.open_steps, []);
}

pub async fn whoever_has_not_ended_can_be_cancelled(world: World) {
    let queued = world.view(world.ask().accept().await.run).await;
    world.cancel_and_check(queued).await;
    let waiting = world.running().await;
    world.must(world.wait_for(&waiting, BlockerKind::Approval)).await;
    world.cancel_and_check(waiting).await;
    let sleeping = world.running().await;
    world.must(world.sleep(&sleeping, later(&world, 60))).await;
    world.cancel_and_check(sleeping).await;
    let delayed = world.running_with_retries(3).await;
    world.must(world.fail(&delayed, Failure::transient("overloaded", "try later"))).await;
    world.cancel_and_check(delayed).await;
    assert_eq!(world.store.next_due().await, Ok(None), "nobody wakes who was cancelled");
}

pub async fn whoever_ends_while_it_waits_leaves_no_open_blocker(world: World) {
    for kind in [BlockerKind::Input, BlockerKind::Approval] {
        let cancelled = world.waiting(kind).await;
        world.end_and_check(&cancelled, world.cancel(&cancelled), "Cancelled").await;
        let expired = world.waiting(kind).await;
        let expire = cancel::expire(&expired, world.now()).expect("it has not ended");
        world.end_and_check(&expired, expire, "Timeout").await;
    }
    let quarantined = world.quarantined().await;
    world.end_and_check(&quarantined, world.cancel(&quarantined), "Cancelled").await;
}

pub async fn what_was_answered_stays_answered_when_its_run_ends(world: World) {
    let view = world.waiting(BlockerKind::Approval).await;
    let blocker = view.blocker.clone().expect("it waits for something");
    world.must(wake::resolve(&view, "yes", world.now()).expect("it waits")).await;
    let view = world.view(view.run.id).await;
    assert_eq!(view.blocker, None, "it waits no more");
    world.must(world.cancel(&view)).await;
    let resolved = BlockerState::Resolved { resolution: "yes".to_owned(), at: world.now() };
    assert_eq!(world.blocker(blocker.id).await.state, resolved);
}

pub async fn terminal_is_terminal(world: World) {
    let view = world.running().await;
    let (cancel, finish) = (world.cancel(&view), world.finish(&view, "done"));
    let results = world.commit_all(vec![finish, cancel]).await;
    assert!(results[0].is_ok() && results[1].is_err(), "{results:?}");
    let row = world.task(view.task.id).await.task;
    assert_eq!((row.state, row.output.as_deref(), row.failure), (TaskState::Succeeded, Some("done"), None));
    assert_eq!(row.ended_at, Some(world.now()));
    world.refused(world.input(&view, "too late")).await;
    assert_eq!(world.worker("w").await.claim(9).await, []);
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

pub async fn used_up_retries_end_as_a_dead_letter(world: World) {
    let mut view = world.running_with_retries(2).await;
    world.must(world.fail(&view, Failure::transient("overloaded", "try later"))).await;
    world.pass(1000);
    world.must(world.wake(&world.view(view.run.id).await)).await;
    view = world.claimed_by_anyone(view.run.id).await;
    world.must(world.fail(&view, Failure::transient("overloaded", "again"))).await;
    let row = world.task(view.task.id).await.task;
    assert_eq!(row.state, TaskState::DeadLetter);
    assert_eq!(row.failure.expect("why").message, "again");
    assert_eq!(world.view(view.run.id).await.open_steps, []);
}

pub async fn a_permanent_failure_is_not_retried(world: World) {
    let view = world.running_with_retries(5).await;
    world.must(world.fail(&view, Failure::permanent("no_such_model", "nobody knows it"))).await;
    assert_eq!(world.task(view.task.id).await.task.state, TaskState::Failed);
    assert_eq!(world.run(view.run.id).await.tag(), RunTag::Error);
}

pub async fn a_sleeper_wakes_for_an_input(world: World) {
    let view = world.running().await;
    world.must(world.sleep(&view, later(&world, 3600))).await;
    let view = world.view(view.run.id).await;
    assert_eq!(view.task.state, TaskState::Sleeping { until: later(&world, 3600) });
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
}

pub async fn a_deadline_counts_until_the_end(world: World) {
    let deadline = later(&world, 5);
    let task = world.ask().by(deadline).accept().await;
    let view = world.claimed_by_anyone(task.run).await;
    world.must(world.sleep(&view, later(&world, 60))).await;
    assert_eq!(world.store.next_due().await, Ok(Some(deadline)), "the earlier of the two");
    world.pass(5000);
    let view = world.view(task.run).await;
    world.must(cancel::expire(&view, world.now()).expect("it has not ended")).await;
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
    assert_eq!(world.run(view.run.id).await.lost_in_row, 0, "a finished step starts the count anew");
}

pub async fn a_lost_attempt_is_told_in_the_log(world: World) {
    let view = world.running().await;
    world.must(world.lose(&view, Cause::Silent)).await;
    let story = world.story(view.task.id).await;
    assert_eq!(story, ["task_accepted", "attempt_started", "attempt_ended"]);
    let events = world.events(view.task.id).await;
    assert!(matches!(events[2].body, EventBody::AttemptEnded { attempt: 1, .. }));
}

pub async fn an_archived_task_is_out_of_sight_and_still_there(world: World) {
    let view = world.running().await;
    world.must(world.finish(&view, "done")).await;
    let at = world.pass(10);
    world.must(Bundle::new(Command::Archive).write(Write::Archive { task: view.task.id, at })).await;
    let list = async |archived| {
        let filter = TaskFilter { archived, limit: 9, ..TaskFilter::default() };
        world.store.tasks(filter).await.expect("the store answers").len()
    };
    assert_eq!((list(false).await, list(true).await), (0, 1));
    let row = world.task(view.task.id).await;
    assert_eq!((row.archived_at, row.task.state), (Some(at), TaskState::Succeeded));
}

impl World {
    async fn running_with_retries(&self, max_attempts: u32) -> RunView {
        let retry =
            RetryPolicy { max_attempts, backoff_ms: 1000, jitter: Jitter::None, ..RetryPolicy::default() };
        let task = self.ask().retried(retry).accept().await;
        self.claimed_by_anyone(task.run).await
    }

    /// A run that waits for something of this kind.
    async fn waiting(&self, kind: BlockerKind) -> RunView {
        let view = self.running().await;
        self.must(self.wait_for(&view, kind)).await;
        self.view(view.run.id).await
    }

    /// A run that lost its workers again and again.
    async fn quarantined(&self) -> RunView {
        let mut view = self.running().await;
        for lost in 1..QUARANTINE_AFTER {
            self.must(self.lose(&view, Cause::Silent)).await;
            view = self.claimed_by_anyone(view.run.id).await;
            assert_eq!((view.run.lost_in_row, view.run.failures), (lost, 0), "it uses no retry");
        }
        self.must(self.lose(&view, Cause::Silent)).await;
        self.view(view.run.id).await
    }

    /// Ends a run that waits: its blocker is void from then on, and whoever answers it hears why not.
    async fn end_and_check(&self, waiting: &RunView, end: Bundle, state: &str) {
        let answer = wake::resolve(waiting, "yes", self.now()).expect("it waits");
        let at = self.now();
        self.must(end).await;
        let RunState::Waiting { on } = waiting.run.state else { panic!("{:?}", waiting.run.state) };
        assert_eq!(self.blocker(on).await.state, BlockerState::Void { at });
        self.pass(1);
        let refusal = self.refused(answer).await;
        assert!(refusal.to_string().contains(state), "{refusal}");
        assert_eq!(self.blocker(on).await.state, BlockerState::Void { at }, "and it stays so");
        let after = self.view(waiting.run.id).await;
        assert_eq!(after.blocker, None);
        let late = wake::resolve(&after, "yes", self.now()).expect_err("it has ended");
        assert!(late.to_string().contains(state), "{late}");
    }

    fn fail(&self, view: &RunView, failure: Failure) -> Bundle {
        self.leave(view, &Progress::default(), Leave::Failed { failure })
    }

    /// The run moved since `view` was read; cancels it as it is now.
    async fn cancel_and_check(&self, view: RunView) {
        let before = self.view(view.run.id).await;
        self.must(self.cancel(&before)).await;
        let after = self.view(view.run.id).await;
        assert_eq!((after.run.tag(), after.task.state), (RunTag::Cancelled, TaskState::Cancelled));
        assert_eq!(after.run.epoch, before.run.epoch + 1, "nobody who knew it before can write");
        assert_eq!((after.open_steps, after.session.head), (vec![], None));
        assert_eq!(self.worker("w").await.claim(9).await, []);
    }
}

fn later(world: &World, seconds: u64) -> Timestamp {
    world.now().after(Duration::from_secs(seconds))
}
