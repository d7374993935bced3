//! Journals: steps, entries and inputs of a run, written only by who holds it.

use ostler_kernel::{
    Command, Refusal, StepOutcome,
    bundle::{Clash, Reason},
    run::{blocker::BlockerKind, end::Leave, journal::Progress, take_over::Cause},
    step::StepState,
};

use super::world::{World, answers, asks_for_tools, tools_answer};
use crate::StoreExt;

pub async fn a_journal_write_leaves_step_entry_and_event(world: World) {
    let view = world.running().await;
    world.must(world.journal(&view, &asks_for_tools(&view, &["search", "fetch"]))).await;
    let after = world.view(view.run.id).await;
    let open: Vec<_> = after.open_steps.iter().map(|step| (step.id.index, step.kind.name())).collect();
    assert_eq!(open, [(1, "search"), (2, "fetch")], "what is under way, in order");
    let steps = world.store.steps(view.run.id).await.expect("the store answers");
    assert_eq!(steps.iter().map(|step| step.is_open()).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(world.said(view.session.id).await, ["hello", "call search, call fetch"]);
    assert_eq!(world.story(view.task.id).await, ["task_accepted", "attempt_started", "step_finished"]);
    assert_eq!((after.run.journal, after.run.next_step, after.run.next_entry), (1, 3, 2));
    assert_eq!((after.run.model_calls, after.run.usage.total()), (1, 13));
}

pub async fn a_journal_write_leaves_lease_and_state_alone(world: World) {
    let view = world.running().await;
    world.must(world.journal(&view, &answers(&view, "hi"))).await;
    let after = world.view(view.run.id).await;
    assert_eq!((after.run.state, after.run.epoch), (view.run.state, view.run.epoch));
    assert_eq!(after.task, view.task, "a step is not yet news for the caller's row");
    assert_eq!(after.session, view.session, "the run counts on while it is live");
    assert_eq!(world.store.leased(None).await.expect("the store answers").len(), 1);
}

pub async fn a_loop_of_many_steps_reads_back_in_order(world: World) {
    let mut view = world.running().await;
    for _ in 0..3 {
        world.must(world.journal(&view, &asks_for_tools(&view, &["look"]))).await;
        view = world.view(view.run.id).await;
        world.must(world.journal(&view, &tools_answer(&view))).await;
        view = world.view(view.run.id).await;
    }
    world.must(world.finish(&view, "found it")).await;
    let steps = world.store.steps(view.run.id).await.expect("the store answers");
    assert_eq!(steps.iter().map(|step| step.id.index).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    assert!(steps.iter().all(|step| matches!(step.state, StepState::Done { outcome: StepOutcome::Ok, .. })));
    assert_eq!(world.said(view.session.id).await.len(), 8);
    let middle = world.store.entries(view.session.id, 2, Some(5)).await.expect("the store answers");
    assert_eq!(
        middle.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(),
        [2, 3, 4],
        "a range ends before its end"
    );
}

/// Long enough that a store may look for a part of it in another way than for all.
pub async fn a_long_log_is_read_from_anywhere(world: World) {
    let mut view = world.running().await;
    for _ in 0..70 {
        world.must(world.journal(&view, &asks_for_tools(&view, &["look"]))).await;
        view = world.view(view.run.id).await;
        world.must(world.journal(&view, &tools_answer(&view))).await;
        view = world.view(view.run.id).await;
    }
    let (task, session) = (view.task.id, view.session.id);
    let all = world.store.events(task, 0, usize::MAX).await.expect("the store answers");
    let said = world.store.entries(session, 0, None).await.expect("the store answers");
    assert_eq!((all.len(), said.len()), (142, 141));
    for from in [0, 1, 62, 63, 64, 65, 100, 128, 140, 141, 142, 500] {
        for most in [0, 1, 2, 63, 64, 65, 500] {
            let events = world.store.events(task, from as u64, most).await.expect("the store answers");
            assert_eq!(events, all.iter().skip(from).take(most).cloned().collect::<Vec<_>>());
            let to = Some((from + most) as u64);
            let entries = world.store.entries(session, from as u64, to).await.expect("the store answers");
            assert_eq!(entries, said.iter().skip(from).take(most).cloned().collect::<Vec<_>>());
        }
    }
}

pub async fn a_stale_epoch_can_not_journal(world: World) {
    let stale = world.running().await;
    world.must(world.lose(&stale, Cause::Silent)).await;
    world.refused(world.journal(&stale, &answers(&stale, "from the dead"))).await;
    let present = world.claimed_by_anyone(stale.run.id).await;
    world.refused(world.journal(&stale, &answers(&stale, "from the dead"))).await;
    world.must(world.journal(&present, &answers(&present, "alive"))).await;
    assert_eq!(world.said(stale.session.id).await, ["hello", "alive"]);
}

pub async fn a_stale_epoch_can_not_leave(world: World) {
    let stale = world.running().await;
    world.must(world.lose(&stale, Cause::Silent)).await;
    let present = world.claimed_by_anyone(stale.run.id).await;
    world.refused(world.finish(&stale, "from the dead")).await;
    world.refused(world.give_back(&stale)).await;
    world.refused(world.sleep(&stale, world.now())).await;
    world.refused(world.wait_for(&stale, BlockerKind::Input)).await;
    assert_eq!(world.run(stale.run.id).await, present.run, "nothing of it was written");
    world.must(world.finish(&present, "done")).await;
}

pub async fn writes_go_on_counting_over_attempts(world: World) {
    let view = world.running().await;
    world.must(world.journal(&view, &asks_for_tools(&view, &["search"]))).await;
    let view = world.view(view.run.id).await;
    world.must(world.give_back(&view)).await;
    let second = world.claimed_by_anyone(view.run.id).await;
    assert_eq!((second.run.journal, second.run.next_step, second.run.next_entry), (2, 2, 2));
    assert_eq!(second.open_steps.len(), 1, "the call that was open is the next one's to make");
    world.must(world.journal(&second, &tools_answer(&second))).await;
    assert_eq!(world.view(view.run.id).await.run.journal, 3);
}

pub async fn inputs_are_numbered_and_wait_to_be_taken(world: World) {
    let view = world.running().await;
    for text in ["one", "two", "three"] {
        let view = world.view(view.run.id).await;
        world.must(world.input(&view, text)).await;
    }
    let inputs = world.store.inputs(view.task.id, 0).await.expect("the store answers");
    let seen: Vec<_> = inputs.iter().map(|input| (input.number, input.text.as_str())).collect();
    assert_eq!(seen, [(1, "one"), (2, "two"), (3, "three")]);
    assert!(inputs.iter().all(|input| input.consumed_by.is_none()));
    let behind = world.store.inputs(view.task.id, 2).await.expect("the store answers");
    assert_eq!(behind, inputs[2..]);
    let row = world.task(view.task.id).await;
    assert_eq!((row.last_input, row.consumed_input), (3, 0));
}

pub async fn two_inputs_at_once_do_not_share_a_number(world: World) {
    let view = world.running().await;
    let (first, second) = (world.input(&view, "mine"), world.input(&view, "no, mine"));
    let results = world.commit_all(vec![first, second]).await;
    assert!(results[0].is_ok(), "{results:?}");
    let clash = Clash::Input { task: view.task.id, number: 1 };
    let refusal = Refusal { command: Command::AcceptInput, reason: Reason::Clash { clash } };
    assert_eq!(results[1], Err(refusal));
    world.must(world.input(&world.view(view.run.id).await, "then I am second")).await;
    let inputs = world.store.inputs(view.task.id, 0).await.expect("the store answers");
    let seen: Vec<_> = inputs.iter().map(|input| (input.number, input.text.as_str())).collect();
    assert_eq!(seen, [(1, "mine"), (2, "then I am second")]);
}

pub async fn inputs_are_consumed_with_the_step_that_used_them(world: World) {
    let view = world.running().await;
    for text in ["one", "two", "three"] {
        world.must(world.input(&world.view(view.run.id).await, text)).await;
    }
    let view = world.view(view.run.id).await;
    let progress = Progress { consumed: Some(2), ..answers(&view, "taken") };
    world.must(world.journal(&view, &progress)).await;
    let inputs = world.store.inputs(view.task.id, 0).await.expect("the store answers");
    let takers: Vec<_> = inputs.iter().map(|input| input.consumed_by).collect();
    assert_eq!(takers, [Some(view.run.id), Some(view.run.id), None]);
    let after = world.view(view.run.id).await;
    assert_eq!((after.last_input, after.consumed_input), (3, 2));
}

pub async fn a_refused_step_consumes_nothing(world: World) {
    let stale = world.running().await;
    world.must(world.input(&stale, "one")).await;
    world.must(world.lose(&world.view(stale.run.id).await, Cause::Silent)).await;
    let progress = Progress { consumed: Some(1), ..answers(&stale, "taken") };
    world.refused(world.journal(&stale, &progress)).await;
    let inputs = world.store.inputs(stale.task.id, 0).await.expect("the store answers");
    assert_eq!(inputs[0].consumed_by, None, "the next attempt will take it");
    assert_eq!(world.task(stale.task.id).await.consumed_input, 0);
}

pub async fn nobody_takes_an_input_that_was_not_sent(world: World) {
    let view = world.running().await;
    world.must(world.input(&view, "one")).await;
    let (task, last) = (view.task.id, 1);
    let beyond = Progress { consumed: Some(2), ..answers(&view, "taken") };
    let reason = Reason::Inputs { task, upto: 2, taken: 0, last };
    assert_eq!(world.refused(world.journal(&view, &beyond)).await.reason, reason);
    let ok = Leave::Ok { output: "taken".to_owned() };
    for leave in [ok, Leave::GiveBack, Leave::Sleep { until: world.now(), delay_ms: None, why: None }] {
        let refusal = world.refused(world.leave(&view, &beyond, leave)).await;
        assert_eq!(refusal.reason, reason, "not that an input came meanwhile");
    }
    let row = world.task(task).await;
    assert_eq!((row.last_input, row.consumed_input), (1, 0));
    world.must(world.journal(&view, &Progress { consumed: Some(1), ..answers(&view, "taken") })).await;
}

pub async fn nobody_gives_back_an_input_that_was_taken(world: World) {
    let view = world.running().await;
    for text in ["one", "two"] {
        world.must(world.input(&world.view(view.run.id).await, text)).await;
    }
    let taking = |upto| Progress { consumed: Some(upto), ..Progress::default() };
    world.must(world.journal(&view, &taking(2))).await;
    let view = world.view(view.run.id).await;
    let refusal = world.refused(world.journal(&view, &taking(1))).await;
    assert_eq!(refusal.reason, Reason::Inputs { task: view.task.id, upto: 1, taken: 2, last: 2 });
    world.must(world.journal(&view, &taking(2))).await;
    let stale = world.view(view.run.id).await;
    world.must(world.lose(&stale, Cause::Silent)).await;
    let refusal = world.refused(world.journal(&stale, &taking(1))).await;
    assert!(refusal.unmet().is_some(), "who does not hold the run hears that first: {refusal}");
}

pub async fn nobody_finishes_past_an_input_that_came_meanwhile(world: World) {
    let view = world.running().await;
    world.must(world.input(&view, "wait, also this")).await;
    world.refused(world.finish(&view, "done")).await;
    let view = world.view(view.run.id).await;
    world.refused(world.finish(&view, "done")).await;
    let progress = Progress { consumed: Some(1), ..answers(&view, "that too") };
    world.must(world.leave(&view, &progress, Leave::Ok { output: "that too".to_owned() })).await;
    assert_eq!(world.task(view.task.id).await.task.output.as_deref(), Some("that too"));
}

pub async fn nobody_goes_to_wait_or_sleep_past_an_input(world: World) {
    let view = world.running().await;
    world.must(world.input(&view, "wait, also this")).await;
    world.refused(world.wait_for(&view, BlockerKind::Input)).await;
    world.refused(world.sleep(&view, world.now())).await;
    world.must(world.give_back(&view)).await;
}
