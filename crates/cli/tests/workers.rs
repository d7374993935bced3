//! Workers as a person looks after them, against a server that does as the test says.

mod support;

use serde_json::{Value, json};
use support::fake::{Fake, ok, problem};

fn worker(name: &str, tasks: &[&str]) -> Value {
    let held: Vec<_> = tasks.iter().map(|name| json!({"namespace": "default", "name": name})).collect();
    json!({
        "apiVersion": "ostler.dev/v1", "kind": "Worker",
        "metadata": {"name": name, "createdAt": "2026-01-02T03:04:05Z"},
        "spec": {"capabilities": {"gpu": false, "supported_models": []}, "max_concurrent_tasks": 64},
        "status": {"phase": "Ready", "standing": "draining", "currentTasks": tasks.len(), "incarnation": 1, "tasks": held},
    })
}

#[test]
fn every_worker_is_listed_however_many_there_are() {
    let fake = Fake::start(|asked| {
        let name = |number: usize| format!("w-{number:03}");
        let (items, next) = match asked.line.contains("after=w-099") {
            true => (vec![worker(&name(100), &[])], None),
            false => ((0..100).map(|number| worker(&name(number), &[])).collect(), Some(name(99))),
        };
        ok(&json!({"items": items, "continue": next}))
    });
    let listed = fake.ostler(["workers", "-o", "name"]);
    let names: Vec<_> = listed.ok().lines().collect();
    assert_eq!((names.len(), names[100]), (101, "worker/w-100"));
}

#[test]
fn a_drain_outlives_a_server_that_is_started_anew() {
    let mut answers = vec![
        ok(&worker("w", &[])),
        problem(503, "store_unavailable", "the store can't serve this now"),
        String::new(),
        ok(&worker("w", &["letter-2"])),
        ok(&worker("w", &["letter-1", "letter-2"])),
        ok(&worker("w", &["letter-1", "letter-2"])),
    ];
    let fake = Fake::start(move |_| answers.pop().unwrap_or_default());
    let drained = fake.ostler(["drain", "w"]);
    assert_eq!(drained.ok(), "worker/w draining\nworker/w drained\n");
    let told: Vec<_> = drained.stderr.lines().collect();
    assert_eq!(
        told[..2],
        [
            "worker/w still holds 2: default/letter-1, default/letter-2",
            "worker/w still holds 1: default/letter-2"
        ]
    );
    assert!(told[2..].iter().all(|line| line.contains("trying on")) && told.len() > 2, "{drained:?}");
}

#[test]
fn a_drain_that_takes_too_long_says_so_by_its_exit_code() {
    let fake = Fake::start(|_| ok(&worker("w", &["a", "b", "c", "d"])));
    fake.ostler(["drain", "w", "--timeout", "1ms"]).failed(
        8,
        &["after 1ms worker \"w\" still holds 4: default/a, default/b, default/c, 1 more", "stop the worker"],
    );
    let mut begun = false;
    let fake = Fake::start(move |_| match std::mem::replace(&mut begun, true) {
        false => ok(&worker("w", &["a"])),
        true => String::new(),
    });
    fake.ostler(["drain", "w", "--timeout", "1ms"])
        .failed(8, &["nobody knows whether worker \"w\" is empty"]);
    let mut begun = false;
    let fake = Fake::start(move |_| match std::mem::replace(&mut begun, true) {
        false => ok(&worker("w", &["a"])),
        true => problem(403, "forbidden", "not any more"),
    });
    fake.ostler(["drain", "w"]).failed(7, &["not any more"]);
}

#[test]
fn what_a_worker_works_on_is_described() {
    let fake = Fake::start(|_| ok(&worker("w", &["letter-1", "letter-2"])));
    let described = fake.ostler(["describe", "worker", "w"]);
    assert!(described.ok().contains("default/letter-1, default/letter-2"), "{}", described.stdout);
}
