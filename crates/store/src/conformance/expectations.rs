//! Expectations: each kind of them holds a bundle back when it isn't met, and lets it pass when it is.

use ostler_kernel::{
    Bundle, Command, Expect, RunId, RunTag, SessionId, Timestamp, Worker,
    resource::{self, ResourceKey},
    run::{RunView, take_over::Cause},
    worker::{self, Offer, Standing},
};
use serde_json::json;

use super::world::{World, answers, asks_for_tools};

pub async fn a_run_in_another_state_refuses(world: World) {
    let view = world.running().await;
    let expect =
        |state| expecting(Expect::Run { id: view.run.id, state, epoch: view.run.epoch, journal: None });
    let others = [RunTag::Queued, RunTag::Waiting, RunTag::Sleeping, RunTag::Ok, RunTag::Error];
    for state in others.into_iter().chain([RunTag::Timeout, RunTag::Cancelled]) {
        let refusal = world.refused(expect(state)).await;
        assert!(refusal.to_string().contains("found Running"), "it says what it found: {refusal}");
    }
    world.must(expect(RunTag::Running)).await;
}

pub async fn a_run_under_another_epoch_refuses(world: World) {
    let view = world.running().await;
    let expect =
        |epoch| expecting(Expect::Run { id: view.run.id, state: RunTag::Running, epoch, journal: None });
    world.refused(expect(view.run.epoch - 1)).await;
    world.refused(expect(view.run.epoch + 1)).await;
    world.must(expect(view.run.epoch)).await;
}

pub async fn a_run_that_took_another_write_refuses(world: World) {
    let view = world.running().await;
    world.must(world.journal(&view, &asks_for_tools(&view, &["search"]))).await;
    let expect = |journal| expecting(run_with_journal(&view, journal));
    world.refused(expect(Some(0))).await;
    world.refused(expect(Some(2))).await;
    world.must(expect(Some(1))).await;
    world.must(expect(None)).await;
}

pub async fn a_run_that_is_not_there_refuses(world: World) {
    let id = RunId::from_parts(world.now(), 0, world.fresh());
    let refusal =
        world.refused(expecting(Expect::Run { id, state: RunTag::Queued, epoch: 0, journal: None })).await;
    assert!(refusal.to_string().ends_with("found no such run"), "{refusal}");
    assert_eq!(refusal.command, Command::Apply, "it says what was refused");
}

pub async fn a_session_written_meanwhile_refuses(world: World) {
    let task = world.ask().accept().await;
    let session = world.session(task.session).await;
    world.ask().in_session(session.clone()).accept().await;
    let (_, late) = world.ask().in_session(session).bundle();
    let refusal = world.refused(late).await;
    assert!(matches!(refusal.unmet(), Some(Expect::Session { version: 1, .. })), "{refusal}");
    let present = world.session(task.session).await;
    assert_eq!((present.version, present.runs), (2, 2));
    world.ask().in_session(present).accept().await;
}

pub async fn a_session_that_is_not_there_has_version_0(world: World) {
    let id = SessionId::from_parts(world.now(), 0, world.fresh());
    world.refused(expecting(Expect::Session { id, version: 1 })).await;
    world.must(expecting(Expect::Session { id, version: 0 })).await;
}

pub async fn an_input_that_came_meanwhile_refuses(world: World) {
    let view = world.running().await;
    let expect = |last| expecting(Expect::Inputs { task: view.task.id, last });
    world.must(expect(0)).await;
    world.must(world.input(&view, "one")).await;
    world.refused(expect(0)).await;
    world.refused(expect(2)).await;
    world.must(expect(1)).await;
}

pub async fn names_are_unique_in_their_namespace(world: World) {
    world.ask().named("report").accept().await;
    let (task, second) = world.ask().named("report").bundle();
    let refusal = world.refused(second).await;
    assert!(matches!(refusal.unmet(), Some(Expect::TaskName { .. })), "{refusal}");
    world.ask().in_namespace("other").named("report").accept().await;
    world.ask().named("Report").accept().await;
    let expect = Expect::TaskName { namespace: task.namespace, name: "free".to_owned() };
    world.must(expecting(expect)).await;
}

pub async fn idempotency_keys_are_unique_in_their_namespace(world: World) {
    let first = world.ask().under_key("once").accept().await;
    let (_, again) = world.ask().under_key("once").bundle();
    let refusal = world.refused(again).await;
    let expect = Expect::TaskKey { namespace: first.namespace, key: "once".to_owned() };
    assert_eq!(refusal.unmet(), Some(&expect));
    world.ask().in_namespace("other").under_key("once").accept().await;
    world.ask().under_key("twice").accept().await;
}

pub async fn session_keys_are_unique_for_their_subject(world: World) {
    let first = world.ask().in_new_session("chat").accept().await;
    let (_, again) = world.ask().in_new_session("chat").bundle();
    let refusal = world.refused(again).await;
    assert!(matches!(refusal.unmet(), Some(Expect::SessionKey { .. })), "{refusal}");
    world.ask().in_namespace("other").in_new_session("chat").accept().await;
    let namespace = first.namespace;
    let free = Expect::SessionKey { namespace, subject: "another".to_owned(), key: "chat".to_owned() };
    world.must(expecting(free)).await;
}

pub async fn a_worker_of_another_incarnation_refuses(world: World) {
    let (_, too_early) = worker::register("w", 1, Offer::default(), Some(&row("w", 7)), world.now());
    world.refused(too_early).await;
    let first = world.worker("w").await;
    let (_, as_if_new) = worker::register("w", 1, Offer::default(), None, world.now());
    world.refused(as_if_new).await;
    let second = world.worker("w").await;
    assert_eq!((first.incarnation, second.incarnation), (1, 2));
    world.refused(first.renew(1)).await;
    world.must(second.renew(1)).await;
}

pub async fn a_worker_whose_counter_moved_refuses(world: World) {
    let worker = world.worker("w").await;
    let expect =
        |incarnation, counter| expecting(Expect::Counter { worker: "w".to_owned(), incarnation, counter });
    world.must(expect(1, 0)).await;
    world.must(worker.renew(1)).await;
    world.refused(expect(1, 0)).await;
    world.must(expect(1, 1)).await;
    let again = world.worker("w").await;
    world.must(again.renew(1)).await;
    world.refused(expect(1, 1)).await;
    world.must(expect(2, 1)).await;
}

pub async fn a_resource_written_meanwhile_refuses(world: World) {
    let key = ResourceKey { kind: "Agent".into(), namespace: "default".into(), name: "helper".into() };
    let at = |version| resource::StoredResource {
        key: key.clone(),
        version,
        generation: 1,
        created_at: world.now(),
        document: json!({"spec": {"version": version}}),
    };
    world.refused(resource::put(at(2), Some(1))).await;
    world.must(resource::put(at(1), None)).await;
    world.refused(resource::put(at(1), None)).await;
    world.must(resource::put(at(2), Some(1))).await;
    world.refused(resource::put(at(2), Some(1))).await;
    world.refused(resource::delete(key.clone(), Some(1))).await;
    world.must(resource::delete(key.clone(), Some(2))).await;
    world.must(resource::put(at(1), None)).await;
    world.must(resource::delete(key.clone(), None)).await;
    world.must(resource::put(at(1), None)).await;
}

pub async fn every_expectation_must_hold(world: World) {
    let view = world.running().await;
    let met = run_with_journal(&view, Some(0));
    let unmet = Expect::Worker { name: "nobody".to_owned(), incarnation: 3 };
    for expects in [[met.clone(), unmet.clone()], [unmet.clone(), met.clone()]] {
        let bundle = expects.into_iter().fold(Bundle::new(Command::Apply), Bundle::expect);
        assert_eq!(world.refused(bundle).await.unmet(), Some(&unmet), "it names the one that failed");
    }
}

pub async fn a_take_over_decided_before_the_last_write_is_refused(world: World) {
    let before = world.running().await;
    world.must(world.journal(&before, &answers(&before, "still here"))).await;
    world.refused(world.lose(&before, Cause::Silent)).await;
    let after = world.view(before.run.id).await;
    assert_eq!((after.run.journal, after.run.next_entry), (1, 2), "the write is not undone");
    world.must(world.lose(&after, Cause::Silent)).await;
}

fn expecting(expect: Expect) -> Bundle {
    Bundle::new(Command::Apply).expect(expect)
}

fn run_with_journal(view: &RunView, journal: Option<u64>) -> Expect {
    Expect::Run { id: view.run.id, state: view.run.tag(), epoch: view.run.epoch, journal }
}

fn row(name: &str, incarnation: u64) -> Worker {
    let (name, registered_at) = (name.to_owned(), Timestamp::from_millis(0));
    let (offer, standing) = (Offer::default(), Standing::Open);
    Worker { name, incarnation, counter: 0, claims: 0, registered_at, instance: 0, offer, standing }
}
