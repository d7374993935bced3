//! Calendars that jump: a pause of seconds becomes neither an hour nor nothing, and no quota shuts anybody out.

use std::{sync::Arc, time::Duration};

use ostler_kernel::run::end::Leave;
use serde_json::{Value, json};

use crate::support::{Calendar, Hasty, Place, runtime, task, worker::Worker};

const HOUR: Duration = Duration::from_secs(3600);

async fn place(calendar: &Arc<Calendar>) -> Place {
    let place = Place::with(Arc::clone(calendar) as _).await;
    place.apply_agent().await;
    place
}

/// A task of this name, with more in its spec.
async fn add(place: &Place, name: &str, more: Value) {
    let mut asks = task();
    asks["metadata"] = json!({"name": name});
    asks["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let reply = place.post("/v1/tasks", &asks).await;
    assert_eq!(reply.status, 201, "{reply:?}");
}

async fn status(place: &Place, name: &str) -> Value {
    place.get(&format!("/v1/tasks/{name}")).await.json()["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_was_dated_an_hour_ahead_comes_after_its_backoff() {
    let calendar = Calendar::new(Hasty::new());
    let place = place(&calendar).await;
    let retry = json!({"max_attempts": 3, "backoff": "1s"});
    add(&place, "again", json!({"retry": retry})).await;
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    calendar.turn_on(1);
    worker.fail(held).await;
    assert!(status(&place, "again").await["nextAttemptAt"].is_string());
    calendar.turn_back(1);
    let ready = async {
        while status(&place, "again").await["nextAttemptAt"].is_string() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ready).await.expect("it would wait for an hour");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_long_a_run_sleeps_is_dated_by_the_server() {
    let place = Place::with_agent().await;
    add(&place, "sleeper", json!({})).await;
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    let now = runtime().now();
    // By the calendar of its worker, which is an hour behind, it would be over long ago.
    let sleep = Leave::Sleep { until: now.before(HOUR), delay_ms: Some(60_000), why: None };
    worker.leave(held, sleep).await;
    let until = status(&place, "sleeper").await["sleeping"]["until"].clone();
    let earliest = now.after(Duration::from_secs(60)).to_string();
    assert!(until.as_str().unwrap() >= earliest.as_str(), "{until} and not {earliest} or later");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sleeps_is_not_woken_by_a_calendar_that_jumps() {
    let calendar = Calendar::new(Hasty::new());
    let place = place(&calendar).await;
    add(&place, "sleeper", json!({})).await;
    let mut worker = Worker::new(&place).await;
    let held = worker.claim().await;
    let sleep = Leave::Sleep { until: runtime().now(), delay_ms: Some(600_000), why: None };
    worker.leave(held, sleep).await;
    // A deadline is the calendar's: when it is over, what was due before it has been looked at.
    let ended = async |name: &str| {
        while status(&place, name).await["state"] != "failed" {
            tokio::task::yield_now().await;
        }
    };
    add(&place, "soon", json!({"deadline": "1ms"})).await;
    ended("soon").await;
    add(&place, "later", json!({"deadline": "30m"})).await;
    calendar.turn_on(1);
    ended("later").await;
    assert_eq!(status(&place, "sleeper").await["state"], "sleeping");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_is_held_against_the_minute_that_it_is() {
    let calendar = Calendar::new(runtime());
    let place = place(&calendar).await;
    let quota = json!({"kind": "Quota", "metadata": {"name": "q"}, "spec": {"tasks_per_minute": 2}});
    let applied = place.post("/v1/quotas", &quota).await;
    assert_eq!(applied.status, 201, "{applied:?}");
    calendar.turn_on(1);
    add(&place, "a", json!({})).await;
    add(&place, "b", json!({})).await;
    let refused = place.post("/v1/tasks", &task()).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    calendar.turn_back(1);
    add(&place, "c", json!({})).await;
    add(&place, "d", json!({})).await;
    let refused = place.post("/v1/tasks", &task()).await;
    let delay: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!(refused.status == 429 && (1..=60).contains(&delay), "{refused:?}");
}
