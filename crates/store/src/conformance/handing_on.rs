//! Handing on: where one agent of a system is done another begins, in one commit.

use ostler_kernel::{
    Bundle, ContextId, Expect, RunId, Session, SessionId, Task, TaskState,
    conversation::Context,
    message::MessageKind,
    run::{
        RunView,
        hand_on::{Next, hand_on},
        take_over::Cause,
    },
    task::forget::forget,
};

use super::world::{World, answers, next_write};
use crate::{StoreExt, TaskRef};

pub async fn one_ends_and_the_next_is_ready_at_once(world: World) {
    let (task, first) = world.system_at_work().await;
    world.pass(1000);
    let (second, bundle) = world.hand_on(&first, "a draft");
    world.must(bundle).await;
    let ended = world.run(first.run.id).await;
    assert!(ended.is_terminal());
    let row = world.task(task.id).await.task;
    assert_eq!((row.run, row.state.clone()), (second, TaskState::Running));
    assert_eq!(row.runs().collect::<Vec<_>>(), [first.run.id, second]);
    assert_eq!(row.output, None);
    let view = world.claimed_by_anyone(second).await;
    assert_eq!(view.run.agent, "writer");
    assert_ne!(view.session.id, first.session.id);
    let told = world.said(view.session.id).await;
    assert!(told.len() == 1 && told[0].contains("hello") && told[0].contains("a draft"), "{told:?}");
}

pub async fn the_last_one_ends_the_task(world: World) {
    let (task, first) = world.system_at_work().await;
    let (second, bundle) = world.hand_on(&first, "a draft");
    world.must(bundle).await;
    let view = world.claimed_by_anyone(second).await;
    assert_eq!(view.next_stage(), None);
    world.must(world.finish(&view, "a text")).await;
    let row = world.task(task.id).await.task;
    assert_eq!((row.state.name(), row.output.as_deref()), ("succeeded", Some("a text")));
    let both = world.run(first.run.id).await.usage.total() + world.run(second).await.usage.total();
    assert_eq!(row.usage.total(), both);
    let story = world.story(task.id).await;
    let told: Vec<_> = story.into_iter().filter(|name| *name != "step_finished").collect();
    assert_eq!(
        told,
        [
            "task_accepted",
            "message_sent",
            "attempt_started",
            "run_ended",
            "message_sent",
            "attempt_started",
            "task_ended"
        ]
    );
}

pub async fn a_message_is_kept_until_it_is_told(world: World) {
    let (_, first) = world.system_at_work().await;
    let (second, bundle) = world.hand_on(&first, "a draft");
    world.must(bundle).await;
    let message = world.run(second).await.message.expect("a message");
    assert_eq!((message.hop, message.kind), (2, MessageKind::TaskHandoff));
    assert_eq!((message.from.as_str(), message.to.as_str()), ("helper", "writer"));
    assert_eq!(message.content, "a draft");
    let begun = world.claimed_by_anyone(second).await.run.message.expect("a message");
    assert_eq!((begun.hop, begun.content.as_str()), (2, ""), "it is in the conversation now");
}

pub async fn who_hands_on_twice_hands_on_once(world: World) {
    let (task, first) = world.system_at_work().await;
    let (second, bundle) = world.hand_on(&first, "a draft");
    world.must(bundle.clone()).await;
    let again = world.commit(bundle).await.expect("the same answer");
    assert!(again.duplicate);
    let (_, late) = world.hand_on(&first, "another draft");
    let answered = world.commit(late).await.expect("known by its number");
    assert!(answered.duplicate);
    assert_eq!(world.task(task.id).await.task.runs().count(), 2);
    world.claimed_by_anyone(second).await;
}

pub async fn a_stale_epoch_hands_nothing_on(world: World) {
    let (task, first) = world.system_at_work().await;
    world.must(world.lose(&first, Cause::Silent)).await;
    let (second, bundle) = world.hand_on(&first, "a draft");
    world.refused(bundle).await;
    assert_eq!(world.store.run(second).await, Ok(None));
    assert_eq!(world.task(task.id).await.task.run, first.run.id);
    world.claimed_by_anyone(first.run.id).await;
}

pub async fn a_conversation_that_someone_joined_refuses_a_hand_over(world: World) {
    let (task, first) = world.system_at_work().await;
    let other = world.ask().in_new_session("chat").accept().await;
    let session = world.session(other.session).await;
    let other = world.claimed_by_anyone(other.run).await;
    let (_, stale) = world.hand_on_to(&first, "a draft", session);
    world.must(world.finish(&other, "done")).await;
    let refusal = world.refused(stale).await;
    assert!(matches!(refusal.unmet(), Some(Expect::Session { .. })), "{refusal}");
    let session = world.session(other.session.id).await;
    let (second, bundle) = world.hand_on_to(&first, "a draft", session);
    world.must(bundle).await;
    assert_eq!(world.task(task.id).await.task.run, second);
    world.claimed_by_anyone(second).await;
}

pub async fn who_is_handed_to_waits_for_its_conversation(world: World) {
    let (_, first) = world.system_at_work().await;
    let busy = world.ask().in_new_session("chat").accept().await;
    let busy = world.claimed_by_anyone(busy.run).await;
    let (second, bundle) = world.hand_on_to(&first, "a draft", busy.session.clone());
    world.must(bundle).await;
    let idle = world.worker("idle").await;
    assert_eq!(idle.claim_runs(1).await, []);
    let busy = world.view(busy.run.id).await;
    world.must(world.finish(&busy, "done")).await;
    assert_eq!(idle.claim_runs(1).await, [second]);
}

pub async fn whoever_is_at_work_is_cancelled(world: World) {
    let (task, first) = world.system_at_work().await;
    let cancel_first = world.cancel(&first);
    let (second, bundle) = world.hand_on(&first, "a draft");
    world.must(bundle).await;
    world.refused(cancel_first).await;
    world.must(world.cancel(&world.view(second).await)).await;
    assert_eq!(world.task(task.id).await.task.state, TaskState::Cancelled);
}

pub async fn of_a_forgotten_system_nothing_is_left(world: World) {
    let (task, first) = world.system_at_work().await;
    let (second, bundle) = world.hand_on(&first, "a draft");
    world.must(bundle).await;
    let view = world.claimed_by_anyone(second).await;
    world.must(world.finish(&view, "a text")).await;
    let ended = world.view(second).await;
    world.must(forget(&ended.task, world.now()).expect("it has ended")).await;
    let store = &world.store;
    assert_eq!(store.task(TaskRef::Id(task.id)).await, Ok(None));
    for (run, session) in [(first.run.id, first.session.id), (second, view.session.id)] {
        assert_eq!(store.run(run).await, Ok(None));
        assert_eq!(store.steps(run).await, Ok(vec![]));
        assert_eq!(store.session(session).await, Ok(None));
        assert_eq!(store.entries(session, 0, None).await, Ok(vec![]));
    }
    assert_eq!(store.log(0, 10).await, Ok(vec![]));
}

impl World {
    /// A task for `helper` and then `writer`, the first of them at work.
    pub(super) async fn system_at_work(&self) -> (Task, RunView) {
        let task = self.ask().for_system(&["helper", "writer"]).accept().await;
        let view = self.claimed_by_anyone(task.run).await;
        (task, view)
    }

    /// To a conversation of its own.
    pub(super) fn hand_on(&self, view: &RunView, output: &str) -> (RunId, Bundle) {
        let (now, number) = (self.now(), self.fresh());
        let context = Context::whole(ContextId::from_parts(now, 0, number));
        let session = SessionId::from_parts(now, 0, number);
        self.hand_on_to(view, output, Session::new(session, "default", "writer", None, context))
    }

    fn hand_on_to(&self, view: &RunView, output: &str, session: Session) -> (RunId, Bundle) {
        let run = RunId::from_parts(self.now(), 0, self.fresh());
        let (key, progress) = (next_write(view), answers(view, output));
        let lane = view.next_stage().map(|(stage, _)| stage.lane.clone()).expect("someone comes next");
        let bundle = hand_on(view, key, &progress, output, Next { run, session, lane }, self.now());
        (run, bundle.expect("someone comes next"))
    }
}
