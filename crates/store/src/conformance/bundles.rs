//! Bundles: all of one or nothing, each judged alone, each applied once. And the rows that can't be written
//! whatever a bundle expects.

use ostler_kernel::{
    Bundle, Command, Entry, Expect, Run, RunState, RunTag, Step, StepId, Task, Write,
    bundle::{Clash, Reason, WriteKey},
    run::take_over::Cause,
};

use super::world::{World, answers, asks_for_tools, next_write};
use crate::{StoreExt, TaskFilter, TaskRef};

pub async fn nothing_to_commit_is_fine(world: World) {
    assert_eq!(world.store.commit(Vec::new()).await, Ok(Vec::new()));
}

pub async fn a_refused_bundle_leaves_nothing_behind(world: World) {
    world.ask().named("taken").accept().await;
    let before = world.store.log(0, 100).await.expect("the store answers");
    let (task, refused) = world.ask().named("taken").in_new_session("chat").bundle();
    world.refused(refused).await;
    assert_eq!(world.store.task(TaskRef::Id(task.id)).await, Ok(None));
    assert_eq!(world.store.run(task.run).await, Ok(None));
    assert_eq!(world.store.session(task.session).await, Ok(None));
    assert_eq!(world.store.log(0, 100).await, Ok(before));
}

pub async fn what_a_constraint_keeps_out_leaves_nothing_behind(world: World) {
    world.ask().named("taken").accept().await;
    let (task, mut careless) = world.ask().named("taken").in_new_session("chat").bundle();
    careless.expect.clear();
    // Behind all its other rows, so that a store has written them when it comes to this one.
    let is_task = |write: &Write| matches!(write, Write::NewTask(_));
    let (new_task, mut others): (Vec<_>, Vec<_>) = careless.writes.into_iter().partition(is_task);
    others.extend(new_task);
    careless.writes = others;
    world.kept_out(careless, Clash::Task { id: task.id }).await;
    assert_eq!(world.store.run(task.run).await, Ok(None));
    assert_eq!(world.store.session(task.session).await, Ok(None));
    assert_eq!(world.events(task.id).await, []);
    world.ask().in_new_session("chat").accept().await;
}

pub async fn a_refused_bundle_takes_no_number(world: World) {
    let view = world.running().await;
    let late = world.cancel(&view);
    let journal = world.journal(&view, &asks_for_tools(&view, &["search"]));
    world.must(journal).await;
    let input = world.input(&world.view(view.run.id).await, "more");
    let results = world.commit_all(vec![late, input]).await;
    assert!(results[0].is_err() && results[1].is_ok(), "{results:?}");
    let places: Vec<u64> = world.events(view.task.id).await.iter().map(|event| event.seq).collect();
    assert_eq!(places, [1, 2, 3, 4], "what was refused leaves no gap in the log");
}

pub async fn the_neighbours_of_a_refused_bundle_apply(world: World) {
    world.ask().named("taken").accept().await;
    let asks = ["first", "taken", "third"].map(|name| world.ask().named(name).bundle());
    let (tasks, bundles): (Vec<_>, Vec<_>) = asks.into_iter().unzip();
    let results = world.commit_all(bundles).await;
    let counted: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(counted, [true, false, true], "answers come in the order of the bundles");
    for (task, counted) in tasks.iter().zip(counted) {
        let row = world.store.task(TaskRef::Id(task.id)).await.expect("the store answers");
        assert_eq!(row.is_some(), counted, "{}", task.name);
    }
}

pub async fn a_bundle_is_judged_behind_the_one_before_it(world: World) {
    let (_, first) = world.ask().named("same").bundle();
    let (_, second) = world.ask().named("same").bundle();
    let results = world.commit_all(vec![first, second]).await;
    assert!(results[0].is_ok() && results[1].is_err(), "{results:?}");

    let view = world.claimed_by_anyone(world.ready_run().await).await;
    let [one, two] = [(), ()].map(|()| world.ask().in_session(view.session.clone()).bundle().1);
    let results = world.commit_all(vec![one, two]).await;
    assert!(results[0].is_ok() && results[1].is_err(), "both would be the second: {results:?}");

    let journal = world.journal(&view, &asks_for_tools(&view, &["search"]));
    let cancel = world.cancel(&view);
    let results = world.commit_all(vec![journal, cancel]).await;
    assert!(results[0].is_ok() && results[1].is_err(), "it was decided without that write: {results:?}");
}

pub async fn a_log_is_dense_and_positions_follow_commits(world: World) {
    let (one, two) = (world.ask().accept().await, world.ask().accept().await);
    let worker = world.worker("w").await;
    worker.claim(2).await;
    for task in [&two, &one, &two] {
        let view = world.view(task.run).await;
        world.must(world.input(&view, "more")).await;
    }
    for task in [&one, &two] {
        let events = world.events(task.id).await;
        let places: Vec<u64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(places, (1..=events.len() as u64).collect::<Vec<_>>());
        assert!(events.is_sorted_by(|left, right| left.position < right.position));
        assert_eq!(world.task(task.id).await.last_seq, events.len() as u64);
    }
    let log = world.store.log(0, 100).await.expect("the store answers");
    let positions: Vec<u64> = log.iter().map(|event| event.position).collect();
    assert!(positions.is_sorted_by(|left, right| left < right), "each has a place of its own");
    let inputs: Vec<_> = log.iter().rev().take(3).map(|event| event.task).collect();
    assert_eq!(inputs, [two.id, one.id, two.id], "in the order of commits");
}

pub async fn an_answer_tells_the_position_of_its_events(world: World) {
    let (first, one) = world.ask().bundle();
    let (second, two) = world.ask().bundle();
    let results = world.commit_all(vec![one, two]).await;
    for (task, result) in [first, second].iter().zip(results) {
        let committed = result.expect("it counts");
        let events = world.events(task.id).await;
        assert!(events.iter().all(|event| event.position <= committed.position));
    }
}

pub async fn a_bundle_sent_again_gets_its_first_answer(world: World) {
    let view = world.running().await;
    let bundle = world.journal(&view, &asks_for_tools(&view, &["search"]));
    let first = world.must(bundle.clone()).await;
    let (story, said) = (world.story(view.task.id).await, world.said(view.session.id).await);
    let again = world.commit(bundle).await.expect("it was taken");
    assert!(again.duplicate && again.position >= first.position, "{again:?} after {first:?}");
    assert_eq!(world.story(view.task.id).await, story, "nothing is written twice");
    assert_eq!(world.said(view.session.id).await, said);
}

pub async fn a_finish_sent_again_gets_its_first_answer(world: World) {
    let view = world.running().await;
    let bundle = world.finish(&view, "done");
    world.must(bundle.clone()).await;
    let again = world.commit(bundle).await.expect("it was taken");
    assert!(again.duplicate);
    assert_eq!(world.story(view.task.id).await.iter().filter(|name| **name == "task_ended").count(), 1);
}

pub async fn a_bundle_twice_in_one_commit_is_applied_once(world: World) {
    let view = world.running().await;
    let bundle = world.journal(&view, &answers(&view, "hi"));
    let results = world.commit_all(vec![bundle.clone(), bundle]).await;
    let duplicates: Vec<bool> =
        results.into_iter().map(|result| result.expect("it was taken").duplicate).collect();
    assert_eq!(duplicates, [false, true]);
    assert_eq!(world.said(view.session.id).await, ["hello", "hi"]);
}

pub async fn an_older_write_sent_again_is_refused(world: World) {
    let view = world.running().await;
    let first = world.journal(&view, &asks_for_tools(&view, &["search"]));
    world.must(first.clone()).await;
    let view = world.view(view.run.id).await;
    world.must(world.journal(&view, &answers(&view, "hi"))).await;
    world.refused(first).await;
}

pub async fn a_write_taken_before_a_take_over_is_still_known(world: World) {
    let view = world.running().await;
    let bundle = world.journal(&view, &answers(&view, "hi"));
    world.must(bundle.clone()).await;
    world.must(world.lose(&world.view(view.run.id).await, Cause::Silent)).await;
    let again = world.commit(bundle).await.expect("it was taken");
    assert!(again.duplicate, "its sender learns that it counts, though it can't write any more");
    let key = WriteKey { number: 2, ..next_write(&view) };
    let next = ostler_kernel::run::journal::journal(&view.run, key, &answers(&view, "more"), world.now());
    world.refused(next).await;
}

pub async fn an_entry_is_written_once(world: World) {
    let view = world.running().await;
    let entry = Entry::user(view.run.id, "something else");
    let over = unfenced(&view.run).write(Write::Entry { session: view.session.id, seq: 0, entry });
    world.kept_out(over, Clash::Entry { session: view.session.id, seq: 0 }).await;
    assert_eq!(world.said(view.session.id).await, ["hello"]);
}

pub async fn a_step_is_opened_once_and_done_once(world: World) {
    let view = world.running().await;
    let open = view.open_steps[0].clone();
    let id = open.id;
    let opened = Clash::StepOpened { id };
    world.kept_out(unfenced(&view.run).write(Write::Step(open.clone())), opened.clone()).await;
    let progress = answers(&view, "hi");
    let done = progress.done[0].step.clone();
    world.must(world.journal(&view, &progress)).await;
    let reopened = Step { attempt: 9, ..open };
    world.kept_out(unfenced(&view.run).write(Write::Step(reopened)), opened).await;
    let done_again = Step { attempt: 9, ..done.clone() };
    world.kept_out(unfenced(&view.run).write(Write::Step(done_again)), Clash::StepNotOpen { id }).await;
    assert_eq!(world.store.steps(view.run.id).await, Ok(vec![done]));
}

pub async fn entries_and_steps_leave_no_gap(world: World) {
    let view = world.running().await;
    let entry = Entry::user(view.run.id, "far ahead");
    let ahead = unfenced(&view.run).write(Write::Entry { session: view.session.id, seq: 2, entry });
    world.kept_out(ahead, Clash::Entry { session: view.session.id, seq: 2 }).await;
    let open = view.open_steps[0].clone();
    let id = StepId { index: open.id.index + 2, ..open.id };
    let ahead = unfenced(&view.run).write(Write::Step(Step { id, ..open }));
    world.kept_out(ahead, Clash::StepOpened { id }).await;
}

pub async fn a_session_has_one_live_run_whatever_a_bundle_says(world: World) {
    let first = world.running().await;
    let second = world.ask().in_session(first.session.clone()).accept().await;
    let run = world.run(second.run).await;
    let lease = first.run.lease().expect("it is running").clone();
    let live = Run { state: RunState::Running { lease }, attempt: 1, epoch: run.epoch + 1, ..run.clone() };
    let clash = Clash::LiveRun { session: run.session, run: run.id };
    world.kept_out(unfenced(&run).write(Write::Run(live)), clash).await;
    assert_eq!(world.run(second.run).await, run);
}

pub async fn what_is_there_is_not_made_again(world: World) {
    let (first, bundle) = world.ask().named("one").under_key("once").in_new_session("chat").bundle();
    world.must(bundle.clone()).await;
    let row = |wanted: fn(&Write) -> bool| bundle.writes.iter().find(|write| wanted(write)).cloned();
    let new_task = row(|write| matches!(write, Write::NewTask(_))).expect("it makes a task");
    let new_run = row(|write| matches!(write, Write::NewRun(_))).expect("it makes a run");
    let new_session = row(|write| matches!(write, Write::Session(_))).expect("it makes a session");
    world.kept_out(alone(new_task), Clash::Task { id: first.id }).await;
    world.kept_out(alone(new_run), Clash::Run { id: first.run }).await;
    world.kept_out(alone(new_session), Clash::Session { id: first.session }).await;
}

pub async fn names_and_keys_are_kept_for_one_whatever_a_bundle_says(world: World) {
    world.ask().named("one").under_key("once").in_new_session("chat").accept().await;
    let careless = |(task, mut bundle): (Task, Bundle)| {
        bundle.expect.clear();
        (task, bundle)
    };
    let (task, same_name) = careless(world.ask().named("one").bundle());
    world.kept_out(same_name, Clash::Task { id: task.id }).await;
    let (task, same_key) = careless(world.ask().under_key("once").bundle());
    world.kept_out(same_key, Clash::Task { id: task.id }).await;
    let (task, same_session) = careless(world.ask().in_new_session("chat").bundle());
    world.kept_out(same_session, Clash::Session { id: task.session }).await;
}

pub async fn the_first_row_that_is_in_the_way_is_named(world: World) {
    let view = world.running().await;
    let entry = |seq| {
        let entry = Entry::user(view.run.id, "something else");
        Write::Entry { session: view.session.id, seq, entry }
    };
    let step = Write::Step(view.open_steps[0].clone());
    let clash = Clash::Entry { session: view.session.id, seq: 1 };
    let twice = unfenced(&view.run).write(entry(1)).write(entry(1)).write(step.clone());
    world.kept_out(twice, clash).await;
    let clash = Clash::StepOpened { id: view.open_steps[0].id };
    world.kept_out(unfenced(&view.run).write(entry(1)).write(step).write(entry(0)), clash).await;
    assert_eq!(world.said(view.session.id).await, ["hello"], "nothing of it is left");
}

pub async fn a_request_never_changes(world: World) {
    let task = world.ask().saying("what I asked").accept().await;
    let mut other = task.clone();
    other.request.message = "what I did not ask".to_owned();
    other.version += 1;
    world.must(unfenced(&world.run(task.run).await).write(Write::Task(other))).await;
    let row = world.task(task.id).await;
    assert_eq!((row.task.request.message.as_str(), row.task.version), ("what I asked", 2));
}

impl World {
    async fn ready_run(&self) -> ostler_kernel::RunId {
        let filter = TaskFilter { limit: 10, ..TaskFilter::default() };
        self.store.tasks(filter).await.expect("the store answers")[0].task.run
    }

    /// Commits, between two neighbours that count, a bundle that a constraint keeps out.
    async fn kept_out(&self, bundle: Bundle, clash: Clash) {
        let neighbours = [self.ask().bundle(), self.ask().bundle()];
        let [(one, before), (two, after)] = neighbours;
        let results = self.commit_all(vec![before, bundle, after]).await;
        let refusal = results[1].clone().expect_err("the bundle is kept out");
        assert_eq!(refusal.reason, Reason::Clash { clash }, "it says what was in the way");
        assert!(results[0].is_ok() && results[2].is_ok(), "its neighbours count: {results:?}");
        for task in [one, two] {
            let view = self.view(task.run).await;
            self.must(self.cancel(&view)).await;
        }
    }
}

/// A bundle of one row that expects nothing.
fn alone(write: Write) -> Bundle {
    Bundle::new(Command::Apply).write(write)
}

/// A bundle that expects of the run only what is true.
fn unfenced(run: &Run) -> Bundle {
    let (id, state, epoch) = (run.id, run.tag(), run.epoch);
    debug_assert!(matches!(state, RunTag::Queued | RunTag::Running));
    Bundle::new(Command::Journal).expect(Expect::Run { id, state, epoch, journal: None })
}
