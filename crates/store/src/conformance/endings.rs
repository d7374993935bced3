//! Endings: cancel in every state, what is closed with a run, failures that are final.

use ostler_kernel::{
    Bundle, Command, Failure, RunState, RunTag, StepKind, StepOutcome, TaskState, Write,
    event::EventBody,
    run::{
        RunView,
        blocker::{BlockerKind, BlockerState},
        end::Leave,
        wake,
    },
    step::StepState,
};

use super::{
    pauses::later,
    world::{World, answers, asks_for_tools},
};
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

pub async fn no_step_is_open_behind_an_end(world: World) {
    let transient = || Failure::transient("overloaded", "try later");
    let ends = [
        Leave::Ok { output: "done".to_owned() },
        Leave::Failed { failure: transient() },
        Leave::Failed { failure: Failure::permanent("no_such_model", "nobody knows it") },
        Leave::Failed { failure: Failure::timeout("too_slow", "it took too long") },
    ];
    for leave in ends {
        let view = world.running().await;
        let leave = world.leave(&view, &asks_for_tools(&view, &["search", "fetch"]), leave);
        world.must(leave).await;
        world.check_all_closed(&view, 2).await;
    }
    for stop in [World::cancel, World::expire] {
        let view = world.running().await;
        world.must(world.journal(&view, &asks_for_tools(&view, &["search", "fetch"]))).await;
        world.must(stop(&world, &world.view(view.run.id).await)).await;
        world.check_all_closed(&view, 2).await;
    }
    let view = world.quarantined().await;
    world.must(world.cancel(&view)).await;
    world.check_all_closed(&view, 1).await;
}

pub async fn who_may_have_called_once_only_is_told_so(world: World) {
    let view = world.running().await;
    let mut progress = asks_for_tools(&view, &["search", "pay"]);
    if let StepKind::Tool { idempotent, .. } = &mut progress.open[1] {
        *idempotent = false;
    }
    world.must(world.journal(&view, &progress)).await;
    world.must(world.cancel(&world.view(view.run.id).await)).await;
    let said = world.said(view.session.id).await;
    let tells = |tool: &str| {
        let result = said.iter().find(|words| words.starts_with(&format!("{tool}: "))).expect("a result");
        result.contains("may or may not have happened")
    };
    assert!(!tells("search") && tells("pay"), "{said:?}");
}

pub async fn of_a_model_call_that_was_stopped_nobody_knows_the_cost(world: World) {
    for stop in [World::cancel, World::expire] {
        let asking = world.running().await;
        world.must(stop(&world, &asking)).await;
        assert!(world.task(asking.task.id).await.task.usage.cost_incomplete, "its model was being asked");
        let calling = world.running().await;
        world.must(world.journal(&calling, &asks_for_tools(&calling, &["search"]))).await;
        world.must(stop(&world, &world.view(calling.run.id).await)).await;
        assert!(!world.task(calling.task.id).await.task.usage.cost_incomplete, "its model had answered");
        let sleeping = world.running().await;
        world.must(world.sleep(&sleeping, later(&world, 60))).await;
        world.must(stop(&world, &world.view(sleeping.run.id).await)).await;
        assert!(!world.task(sleeping.task.id).await.task.usage.cost_incomplete, "nobody was asked");
    }
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
        world.end_and_check(&expired, world.expire(&expired), "Timeout").await;
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
    /// The run has ended, so many of its steps as `interrupted`, and the log and the conversation tell of each.
    async fn check_all_closed(&self, view: &RunView, n_interrupted: usize) {
        let steps = self.store.steps(view.run.id).await.expect("the store answers");
        assert!(steps.iter().all(|step| !step.is_open()), "{steps:?}");
        let interrupted: Vec<u32> = steps
            .iter()
            .filter(|step| {
                matches!(step.state, StepState::Done { outcome: StepOutcome::Interrupted, at, .. } if at == self.now())
            })
            .map(|step| step.id.index)
            .collect();
        assert_eq!(interrupted.len(), n_interrupted, "{steps:?}");
        let told: Vec<u32> = self
            .events(view.task.id)
            .await
            .into_iter()
            .filter_map(|event| match event.body {
                EventBody::StepFinished(step) if step.outcome == StepOutcome::Interrupted => Some(step.step),
                _ => None,
            })
            .collect();
        assert_eq!(told, interrupted);
        let after = self.view(view.run.id).await;
        let said = self.said(view.session.id).await;
        let (calls, results): (Vec<_>, Vec<_>) = (
            steps.iter().filter(|step| matches!(step.kind, StepKind::Tool { .. })).collect(),
            said.iter().filter(|words| words.contains(": interrupted")).collect(),
        );
        assert_eq!(calls.len(), results.len(), "each call has its result: {said:?}");
        assert_eq!(after.session.next_entry, said.len() as u64, "the next run speaks behind them");
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
