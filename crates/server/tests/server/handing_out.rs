//! Runs that are large, or that take their worker down: what of a claim is handed out, and what becomes of the rest.

use std::collections::BTreeSet;

use ostler_kernel::{RunId, worker::Offer};
use ostler_link::{
    Assignment, Caller, ClaimRequest, RegisterRequest, Registered, RenewRequest, WorkerPortExt,
};
use serde_json::{Value, json};

use crate::support::{Place, task, worker::Worker};

const MIB: usize = 1 << 20;

async fn register(place: &Place, instance: u64, former: u64) -> Caller {
    let request = RegisterRequest { name: "w".to_owned(), instance, former, offer: Offer::of_slots(64) };
    match place.server.worker_port().register(request).await.unwrap() {
        Registered::As { incarnation, .. } => Caller { worker: "w".to_owned(), incarnation },
        Registered::Present { incarnation } => panic!("{incarnation} is there"),
    }
}

async fn claim(place: &Place, caller: &Caller, number: u64, slots: usize) -> Vec<Assignment> {
    let request = ClaimRequest { caller: caller.clone(), number, slots, wait_ms: 20_000 };
    place.server.worker_port().claim(request).await.unwrap()
}

async fn create(place: &Place, name: &str, session: Option<&str>, message: &str) {
    let mut task = task();
    task["metadata"] = json!({ "name": name });
    task["spec"]["input"]["message"] = json!(message);
    if let Some(session) = session {
        task["spec"]["session"] = json!(session);
    }
    assert_eq!(place.post("/v1/tasks", &task).await.status, 201);
}

async fn status(place: &Place, name: &str) -> Value {
    place.get(&format!("/v1/tasks/{name}")).await.json()["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_for_one_answer_comes_with_the_next_ones() {
    let place = Place::with_agent().await;
    let message = "x".repeat(4 * MIB - 8 * 1024);
    let names: Vec<String> = (0..9).map(|number| format!("large-{number}")).collect();
    for name in &names {
        create(&place, name, None, &message).await;
    }
    let caller = register(&place, 1, 0).await;
    let (mut held, mut answers, mut attempts) = (BTreeSet::<(RunId, u64)>::new(), Vec::new(), 0);
    while held.len() < names.len() {
        let number = answers.len() as u64 + 1;
        let assignments = claim(&place, &caller, number, 64 - held.len()).await;
        answers.push(assignments.len());
        attempts += assignments.iter().map(|given| given.run.attempt).sum::<u32>();
        held.extend(assignments.iter().map(|given| (given.run.id, given.run.epoch)));
        // A sign of life in between takes nothing away of what was given, and nothing is lost.
        let held: Vec<_> = held.iter().copied().collect();
        let request =
            RenewRequest { caller: caller.clone(), counter: number, claimed: number, held, lease_ms: None };
        assert_eq!(place.server.worker_port().renew(request).await.unwrap().lost, []);
    }
    assert_eq!(answers, [4, 4, 1], "about 16 MiB at once");
    assert!(attempts <= 15, "few are claimed in vain: {attempts} attempts");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_over_goes_to_whoever_has_room() {
    let place = Place::with_agent().await;
    let message = "x".repeat(4 * MIB - 8 * 1024);
    for number in 0..5 {
        create(&place, &format!("large-{number}"), None, &message).await;
    }
    let caller = register(&place, 1, 0).await;
    assert_eq!(claim(&place, &caller, 1, 64).await.len(), 4);
    let mut other = Worker::new(&place).await;
    let held = other.claim().await;
    assert_eq!((held.run().attempt, held.run().lost_in_row, held.run().restarted_in_row), (2, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_no_worker_can_be_sent_fails_its_run_and_holds_up_nobody() {
    let place = Place::with_agent().await;
    let mut worker = Worker::new(&place).await;
    for name in ["first", "second"] {
        create(&place, name, Some("long"), "go on").await;
        let held = worker.claim().await;
        worker.finish_saying(held, 34 * MIB).await;
    }
    create(&place, "third", Some("long"), "go on").await;
    create(&place, "other", None, "hi").await;
    let caller = register(&place, 1, 0).await;
    let given = claim(&place, &caller, 1, 2).await;
    assert_eq!(given.len(), 1, "the other one comes at once");
    let third = status(&place, "third").await;
    assert_eq!(third["phase"], "Failed", "{third}");
    let failure = place.get("/v1/tasks/third/events").await.json();
    let last = failure["items"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&last["body"]["failure"]["code"], &last["body"]["failure"]["class"]),
        (&json!("run_too_large"), &json!("limit"))
    );
    assert!(last["body"]["failure"]["message"].as_str().unwrap().contains("64 MiB"), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_takes_its_worker_down_each_time_is_held_back_in_the_end() {
    const CRASHES: u64 = 100;
    let place = Place::with_agent().await;
    create(&place, "poison", None, "hi").await;
    let mut caller = register(&place, 1, 0).await;
    for start in 1..=CRASHES {
        assert_eq!(claim(&place, &caller, 1, 1).await.len(), 1, "start {start}");
        caller = register(&place, start + 1, caller.incarnation).await;
    }
    let waiting = status(&place, "poison").await["waitingFor"].clone();
    assert_eq!(waiting["kind"], "quarantine", "{waiting}");
    let summary = waiting["summary"].as_str().unwrap();
    assert!(summary.contains("100") && summary.contains("crashed"), "{summary}");
    assert_eq!(place.post("/v1/tasks/poison/release", &json!({})).await.status, 200);
    assert_eq!(claim(&place, &caller, 1, 1).await.len(), 1, "a person let it go on");
    register(&place, CRASHES + 2, caller.incarnation).await;
    assert_eq!(status(&place, "poison").await.get("waitingFor"), None, "it is counted anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_between_crashes_is_never_held_back() {
    let place = Place::with_agent().await;
    create(&place, "long", None, "hi").await;
    let mut worker = Worker::new(&place).await;
    let mut held = worker.claim().await;
    for _ in 0..60 {
        worker = worker.restarted().await;
        held = worker.claim().await;
    }
    worker.step(&mut held).await;
    for _ in 0..60 {
        worker = worker.restarted().await;
        held = worker.claim().await;
    }
    assert_eq!((held.run().attempt, held.run().restarted_in_row), (121, 60));
    worker.finish(held, "done").await;
}
