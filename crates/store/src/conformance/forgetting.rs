//! Forgetting: of a task that ended nothing is left, and nobody else notices.

use ostler_kernel::{
    Bundle, Expect, TaskId,
    event::Change,
    resource::{self, ResourceKey, StoredResource},
    run::{RunView, blocker::BlockerKind},
    session,
    task::forget::forget,
    worker::{self, Offer},
};

use serde_json::json;

use super::world::{World, answers, asks_for_tools};
use crate::{StoreExt, TaskRef};

pub async fn of_a_forgotten_task_nothing_is_left(world: World) {
    let told = world.running().await;
    world.must(world.journal(&told, &asks_for_tools(&told, &["search"]))).await;
    world.must(world.input(&world.view(told.run.id).await, "and this")).await;
    let waiting = world.running().await;
    world.must(world.wait_for(&waiting, BlockerKind::Approval)).await;
    let blocker = world.view(waiting.run.id).await.blocker.expect("a blocker").id;
    let store = &world.store;
    for run in [told.run.id, waiting.run.id] {
        world.must(world.cancel(&world.view(run).await)).await;
        let view = world.ended(run).await;
        world.must(world.forget(&view)).await;
        let (task, session) = (view.task.id, view.session.id);
        assert_eq!(store.task(TaskRef::Id(task)).await, Ok(None));
        assert_eq!(store.run_view(run).await, Ok(None));
        assert_eq!(store.run(run).await, Ok(None));
        assert_eq!(store.steps(run).await, Ok(vec![]));
        assert_eq!(store.session(session).await, Ok(None));
        assert_eq!(store.entries(session, 0, None).await, Ok(vec![]));
        assert_eq!(store.inputs(task, 0).await, Ok(vec![]));
        assert_eq!(store.events(task, 0, 10).await, Ok(vec![]));
    }
    assert_eq!(store.blocker(blocker).await, Ok(None));
    assert_eq!(store.log(0, 10).await, Ok(vec![]));
}

pub async fn others_stay_as_they_were(world: World) {
    let (before, gone, after) = (world.finished().await, world.finished().await, world.running().await);
    world.must(world.journal(&after, &asks_for_tools(&after, &["search"]))).await;
    let mut logs = Vec::new();
    for view in [&before, &after] {
        logs.push((world.events(view.task.id).await, world.said(view.session.id).await));
    }
    world.must(world.forget(&gone)).await;
    for (view, log) in [&before, &after].into_iter().zip(logs) {
        assert_eq!((world.events(view.task.id).await, world.said(view.session.id).await), log);
    }
    let after = world.view(after.run.id).await;
    assert_eq!(after.open_steps.len(), 1);
    world.must(world.finish(&after, "done")).await;
    let left = world.store.log(0, 100).await.expect("the store answers");
    assert!(left.iter().all(|event| event.task != gone.task.id));
    assert!(left.is_sorted_by_key(|event| event.position));
}

pub async fn what_has_not_ended_is_not_forgotten(world: World) {
    let running = world.running().await;
    let mut ended = running.clone();
    ended.task.ended_at = Some(world.now());
    let refusal = world.refused(world.forget(&ended)).await;
    assert_eq!(refusal.unmet(), Some(&Expect::Ended { run: running.run.id }));
    assert_eq!(world.view(running.run.id).await, running);
}

pub async fn a_task_is_forgotten_once(world: World) {
    let view = world.finished().await;
    let twice = world.commit_all(vec![world.forget(&view), world.forget(&view)]).await;
    assert!(twice[0].is_ok() && twice[1].is_err(), "{twice:?}");
    world.refused(world.forget(&view)).await;
}

pub async fn name_and_key_are_free_again(world: World) {
    let ask = || world.ask().named("report").under_key("once");
    let first = ask().accept().await;
    world.must(world.cancel(&world.view(first.run).await)).await;
    let view = world.ended(first.run).await;
    world.refused(ask().bundle().1).await;
    let both = world.commit_all(vec![world.forget(&view), ask().bundle().1]).await;
    assert!(both.iter().all(Result::is_ok), "{both:?}");
    let by_name = TaskRef::Name { namespace: first.namespace, name: first.name };
    let found = world.store.task(by_name).await.expect("the store answers").expect("a task");
    assert_ne!(found.task.id, first.id);
}

pub async fn a_named_conversation_outlives_its_task(world: World) {
    let task = world.ask().in_new_session("chat").accept().await;
    let view = world.claimed_by_anyone(task.run).await;
    world.must(world.finish(&view, "done")).await;
    let mut view = world.ended(task.run).await;
    view.task.request.session_key = Some("chat".to_owned());
    let said = world.said(view.session.id).await;
    world.must(world.forget(&view)).await;
    assert_eq!(world.said(view.session.id).await, said);
    let session = world.session(view.session.id).await;
    let next = world.ask().in_session(session).accept().await;
    let next = world.claimed_by_anyone(next.run).await;
    world.must(world.journal(&next, &answers(&next, "again"))).await;
}

pub async fn positions_go_on_behind_what_was_forgotten(world: World) {
    let view = world.finished().await;
    let last = world.events(view.task.id).await.last().expect("a log").position;
    world.must(world.forget(&view)).await;
    assert!(world.store.watch().borrow().position >= last);
    let next = world.ask().accept().await;
    let log = world.store.log(last, 10).await.expect("the store answers");
    assert_eq!(log.iter().map(|event| event.task).collect::<Vec<TaskId>>(), [next.id]);
}

pub async fn the_oldest_are_found_first(world: World) {
    let first = world.ask().accept().await;
    world.pass(1000);
    let second = world.ask().accept().await;
    let then = world.pass(1000);
    world.ask().accept().await;
    let old = async |after, limit| {
        let rows = world.store.old_tasks(then, after, limit).await.expect("the store answers");
        rows.into_iter().map(|row| row.task.id).collect::<Vec<_>>()
    };
    assert_eq!(old(None, 10).await, [first.id, second.id]);
    assert_eq!(old(None, 1).await, [first.id]);
    assert_eq!(old(Some(first.id), 10).await, [second.id]);
    assert_eq!(old(Some(second.id), 10).await, []);
}

pub async fn what_was_told_just_before_is_forgotten_with_the_rest(world: World) {
    let key = ResourceKey { kind: "Agent".into(), namespace: "default".into(), name: "x".into() };
    let log = resource::log_of(&key, 1);
    let (created_at, document) = (world.now(), json!({}));
    let first = StoredResource { key, version: 1, generation: 1, created_at, document };
    let second = StoredResource { version: 2, ..first.clone() };
    let told = |stored: &StoredResource, former: Option<&StoredResource>| {
        let change = if former.is_some() { Change::Updated } else { Change::Created };
        resource::put_and_tell(stored.clone(), former, change, created_at)
    };
    let bundles = vec![told(&first, None), resource::forget_log(log), told(&second, Some(&first))];
    let all = world.commit_all(bundles).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    let left = world.store.events(log, 0, 10).await.expect("the store answers");
    let numbers: Vec<u64> = left.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, [1], "{left:?}");
}

pub async fn of_a_forgotten_conversation_nothing_is_left(world: World) {
    let view = world.chat().await;
    let before = world.session(view.session.id).await;
    let bundle = session::forget(&before).expect("nobody is in it");
    world.must(bundle.clone()).await;
    assert_eq!(world.store.session(before.id).await, Ok(None));
    assert_eq!(world.store.entries(before.id, 0, None).await, Ok(vec![]));
    assert_eq!(world.store.run_view(view.run.id).await, Ok(None));
    assert_eq!(world.store.sessions(None, None, 10).await, Ok(vec![]));
    assert!(world.run(view.run.id).await.is_terminal(), "what it was asked for is still there");
    world.refused(bundle).await;
    // Forgotten and begun anew in one go: the key is free.
    let again = world.ask().in_new_session("chat").accept().await;
    let running = world.claimed_by_anyone(again.run).await;
    world.must(world.finish(&running, "done")).await;
    let second = world.session(running.session.id).await;
    let anew = world.ask().in_new_session("chat").bundle().1;
    let both = world.commit_all(vec![session::forget(&second).expect("nobody is in it"), anew]).await;
    assert!(both.iter().all(Result::is_ok), "{both:?}");
}

pub async fn a_conversation_that_goes_on_is_not_forgotten(world: World) {
    let view = world.chat().await;
    let idle = world.session(view.session.id).await;
    let decided = session::forget(&idle).expect("nobody is in it");
    let next = world.ask().in_session(idle).accept().await;
    let refusal = world.refused(decided).await;
    assert!(matches!(refusal.unmet(), Some(Expect::Session { .. })), "{refusal:?}");
    assert!(session::forget(&world.session(view.session.id).await).is_none(), "someone is in it");
    world.claimed_by_anyone(next.run).await;
}

pub async fn a_forgotten_worker_is_gone_and_comes_back_as_another(world: World) {
    let hand = world.worker("w").await;
    let row = hand.row().await;
    world.must(worker::forget(&row)).await;
    assert_eq!(world.store.workers().await, Ok(vec![]));
    world.refused(worker::renew("w", row.incarnation, 5)).await;
    world.ask().accept().await;
    assert_eq!(hand.claim(1).await.len(), 0, "who is forgotten gets nothing");
    let (anew, bundle) =
        worker::register_behind("w", world.fresh(), Offer::default(), row.incarnation, world.now());
    assert_eq!(anew.incarnation, row.incarnation + 1);
    world.must(bundle).await;
    assert_eq!(hand.claim(1).await.len(), 0, "nor does it as the one it was");
    assert_eq!(world.store.workers().await, Ok(vec![anew]));
}

pub async fn a_worker_that_lives_is_not_forgotten(world: World) {
    let row = world.worker("w").await.row().await;
    world.must(worker::renew("w", row.incarnation, 1)).await;
    let refusal = world.refused(worker::forget(&row)).await;
    assert!(matches!(refusal.unmet(), Some(Expect::Counter { .. })), "{refusal:?}");
    assert_eq!(world.store.workers().await.expect("the store answers").len(), 1);
}

impl World {
    /// The end of a run in a conversation with a key.
    async fn chat(&self) -> RunView {
        let task = self.ask().in_new_session("chat").accept().await;
        let view = self.claimed_by_anyone(task.run).await;
        self.must(self.finish(&view, "done")).await;
        view
    }

    async fn finished(&self) -> RunView {
        let view = self.running().await;
        self.must(self.journal(&view, &asks_for_tools(&view, &["search"]))).await;
        let view = self.view(view.run.id).await;
        self.must(self.finish(&view, "done")).await;
        self.ended(view.run.id).await
    }

    async fn ended(&self, run: ostler_kernel::RunId) -> RunView {
        let view = self.view(run).await;
        assert!(view.run.is_terminal());
        view
    }

    fn forget(&self, view: &RunView) -> Bundle {
        forget(&view.task, self.now()).expect("it has ended")
    }
}
