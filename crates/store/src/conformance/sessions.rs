//! Sessions: one conversation, one writer, in order.

use std::time::Duration;

use ostler_kernel::{
    EventBody, Failure, Run, RunState, RunTag, Session, Task,
    event::ReadyReason,
    retry::{Jitter, RetryPolicy},
    run::{Ready, blocker::BlockerKind, end::Leave, journal::Progress},
};

use super::world::World;
use crate::StoreExt;

pub async fn runs_of_a_session_go_one_at_a_time(world: World) {
    let [first, second, third] = world.three_in_a_session().await;
    let worker = world.worker("w").await;
    for task in [&first, &second, &third] {
        assert_eq!(worker.claim_runs(9).await, [task.run], "only its turn, in the order they came");
        world.must(world.finish(&world.view(task.run).await, &task.name)).await;
    }
    let session = world.session(first.session).await;
    assert_eq!((session.head, session.runs), (None, 3));
}

pub async fn the_ending_commit_makes_the_next_one_ready(world: World) {
    let [first, second, third] = world.three_in_a_session().await;
    assert_eq!(waits_for(&world.run(second.run).await), Some(Ready::AfterSession));
    let view = world.claimed_by_anyone(first.run).await;
    assert_eq!(view.next.as_ref().map(|run| run.id), Some(second.run));
    let committed = world.must(world.finish(&view, "done")).await;
    assert!(world.run(second.run).await.rank().is_some());
    assert_eq!(waits_for(&world.run(third.run).await), Some(Ready::AfterSession));
    assert_eq!(world.session(first.session).await.head, Some(second.run));
    let events = world.events(second.id).await;
    let last = events.last().expect("a log");
    assert_eq!(last.body, EventBody::RunReady { run: second.run, reason: ReadyReason::SessionFree });
    assert!(last.position <= committed.position, "in the very commit that ended the first");
}

pub async fn a_run_that_pauses_keeps_its_session(world: World) {
    let [first, second, _] = world.three_in_a_session().await;
    let worker = world.worker("w").await;
    worker.claim(1).await;
    let view = world.view(first.run).await;
    world.must(world.wait_for(&view, BlockerKind::Approval)).await;
    assert_eq!(worker.claim(9).await, [], "waiting");
    let view = world.view(first.run).await;
    let resolve = ostler_kernel::run::wake::resolve(&view, "yes", world.now()).expect("it waits");
    world.must(resolve).await;
    worker.claim(1).await;
    let until = world.now().after(Duration::from_secs(60));
    world.must(world.sleep(&world.view(first.run).await, until)).await;
    assert_eq!(worker.claim(9).await, [], "sleeping");
    world.pass(60_000);
    world.must(world.wake(&world.view(first.run).await)).await;
    worker.claim(1).await;
    let failure = Failure::transient("overloaded", "try later");
    world
        .must(world.leave(&world.view(first.run).await, &Progress::default(), Leave::Failed { failure }))
        .await;
    assert_eq!(worker.claim(9).await, [], "between two attempts");
    assert_eq!(waits_for(&world.run(second.run).await), Some(Ready::AfterSession));
}

pub async fn who_gives_up_its_place_in_line_moves_nobody(world: World) {
    let [first, second, third] = world.three_in_a_session().await;
    let view = world.view(second.run).await;
    assert_eq!(view.next.as_ref().map(|run| run.id), Some(third.run), "behind it, not before it");
    world.must(world.cancel(&view)).await;
    assert_eq!(world.session(first.session).await.head, Some(first.run));
    assert_eq!(waits_for(&world.run(third.run).await), Some(Ready::AfterSession));
    let view = world.claimed_by_anyone(first.run).await;
    assert_eq!(view.next.as_ref().map(|run| run.id), Some(third.run), "who has ended is passed over");
    world.must(world.finish(&view, "done")).await;
    assert!(world.run(third.run).await.rank().is_some());
}

pub async fn a_head_that_never_began_lets_the_next_one_go(world: World) {
    let [first, second, _] = world.three_in_a_session().await;
    world.must(world.cancel(&world.view(first.run).await)).await;
    assert_eq!(world.worker("w").await.claim_runs(9).await, [second.run]);
    assert_eq!(world.said(first.session).await, ["second"], "the first was never said");
}

pub async fn an_end_decided_before_someone_joined_is_refused(world: World) {
    let view = world.running().await;
    let finish = world.finish(&view, "done");
    let joined = world.ask().in_session(view.session.clone()).accept().await;
    world.refused(finish).await;
    world.must(world.finish(&world.view(view.run.id).await, "done")).await;
    assert!(world.run(joined.run).await.rank().is_some(), "or it would wait for ever");
}

pub async fn a_conversation_goes_on_where_it_ended(world: World) {
    let [first, second, _] = world.three_in_a_session().await;
    let worker = world.worker("w").await;
    for (task, answer) in [(&first, "one"), (&second, "two")] {
        worker.claim(1).await;
        world.must(world.finish(&world.view(task.run).await, answer)).await;
    }
    assert_eq!(world.said(first.session).await, ["first", "one", "second", "two"]);
    assert_eq!(world.session(first.session).await.next_entry, 4);
}

pub async fn a_session_is_found_by_its_key(world: World) {
    let task = world.ask().in_new_session("chat").accept().await;
    let find = |subject: &str, key: &str| {
        world.store.session_by_key("default".to_owned(), subject.to_owned(), key.to_owned())
    };
    let found = find("helper", "chat").await.expect("the store answers").expect("it is there");
    assert_eq!(*found, world.session(task.session).await);
    assert_eq!(find("helper", "other").await, Ok(None));
    assert_eq!(find("another", "chat").await, Ok(None));
}

impl World {
    async fn three_in_a_session(&self) -> [Task; 3] {
        let retry =
            RetryPolicy { max_attempts: 3, backoff_ms: 1000, jitter: Jitter::None, ..RetryPolicy::default() };
        let first = self.ask().saying("first").retried(retry).accept().await;
        let join = async |message: &str| {
            let session: Session = self.session(first.session).await;
            self.ask().saying(message).in_session(session).accept().await
        };
        let (second, third) = (join("second").await, join("third").await);
        [first, second, third]
    }
}

fn waits_for(run: &Run) -> Option<Ready> {
    match (run.tag(), &run.state) {
        (RunTag::Queued, RunState::Queued { ready }) => Some(*ready),
        _ => None,
    }
}
