//! Workers as resources, quotas, and what is quarantined.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use ostler_kernel::{
    Runtime, Timestamp,
    runtime::{BoxFuture, Spawned},
    worker::Offer,
};
use ostler_link::{ClaimRequest, RegisterRequest, Registered, RenewRequest, WorkerPort, WorkerPortExt};
use serde_json::{Value, json};

use crate::support::{Place, config, runtime, task, worker::Worker};

async fn register(place: &Place, name: &str, offer: Offer) -> ostler_link::Caller {
    let port = place.server.worker_port();
    let request = RegisterRequest { name: name.to_owned(), instance: 1, former: 0, offer };
    let Registered::As { incarnation, .. } = port.register(request).await.unwrap() else {
        panic!("it is new")
    };
    ostler_link::Caller { worker: name.to_owned(), incarnation }
}

async fn quota(place: &Place, name: &str, spec: Value) {
    let quota = json!({"kind": "Quota", "metadata": {"name": name}, "spec": spec});
    let reply = place.post("/v1/quotas", &quota).await;
    assert_eq!(reply.status, 201, "{reply:?}");
}

/// How many runs a worker with room for many gets at once.
async fn claimed(port: &Arc<dyn WorkerPort>, caller: &ostler_link::Caller, number: u64) -> usize {
    let request = ClaimRequest { caller: caller.clone(), number, slots: 50, wait_ms: 0 };
    port.claim(request).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_listed_with_what_they_offer() {
    let place = Place::new().await;
    let offer = Offer {
        slots: 3,
        version: "9.9.9".into(),
        region: "eu".into(),
        labels: [("disk".to_owned(), "ssd".to_owned())].into(),
        capabilities: ["gpu".to_owned(), "large".to_owned()].into(),
        models: ["m".to_owned()].into(),
        ..Offer::default()
    };
    register(&place, "one", offer).await;
    register(&place, "two", Offer::of_slots(1)).await;
    let list = place.get("/v1/workers").await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    let one = &list["items"][0];
    assert_eq!(one, &place.get("/v1/workers/one").await.json());
    assert_eq!((&one["kind"], &one["metadata"]["labels"]["disk"]), (&json!("Worker"), &json!("ssd")));
    assert_eq!((&one["spec"]["region"], &one["spec"]["max_concurrent_tasks"]), (&json!("eu"), &json!(3)));
    let capabilities = json!({"gpu": true, "supported_models": ["m"], "others": ["large"]});
    assert_eq!(one["spec"]["capabilities"], capabilities);
    assert_eq!((&one["status"]["standing"], &one["status"]["currentTasks"]), (&json!("open"), &json!(0)));
    assert_eq!(one["status"]["phase"], "Ready", "who has just registered is heard of");
    let missing = place.get("/v1/workers/three").await;
    assert_eq!((missing.status, missing.json()["code"].clone()), (404, json!("not_found")));
    assert_eq!(place.post("/v1/workers/three/cordon", &json!({})).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_tells_what_it_works_on() {
    let place = Place::with_agent().await;
    let tasks = [place.task().await, place.task().await];
    let mut worker = Worker::new(&place).await;
    let path = format!("/v1/workers/{}", worker.caller().worker);
    let held = worker.claim().await;
    let other = worker.claim().await;
    let names = tasks.map(|name| json!({"namespace": "default", "name": name}));
    assert_eq!(place.get(&path).await.json()["status"]["tasks"], json!(names));
    assert_eq!(place.get("/v1/workers").await.json()["items"][0]["status"].get("tasks"), None);
    worker.finish(held, "done").await;
    assert_eq!(place.get(&path).await.json()["status"]["tasks"].as_array().map(Vec::len), Some(1));
    worker.finish(other, "done").await;
    assert_eq!(place.get(&path).await.json()["status"].get("tasks"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cordoned_worker_gets_nothing_and_a_draining_one_is_told() {
    let place = Place::with_agent().await;
    let port = place.server.worker_port();
    let caller = register(&place, "w", Offer::of_slots(1)).await;
    place.task().await;
    let stand = |verb: &'static str| {
        let place = &place;
        async move {
            place.post(&format!("/v1/workers/w/{verb}"), &json!({})).await.json()["status"]["standing"]
                .clone()
        }
    };
    let drained = |counter| {
        let (port, caller) = (Arc::clone(&port), caller.clone());
        async move {
            port.renew(RenewRequest { caller, counter, claimed: 0, held: Vec::new(), lease_ms: None })
                .await
                .unwrap()
                .drain
        }
    };
    assert_eq!(stand("cordon").await, "cordoned");
    assert_eq!((claimed(&port, &caller, 1).await, drained(1).await), (0, false));
    assert_eq!(stand("drain").await, "draining");
    assert_eq!((claimed(&port, &caller, 2).await, drained(2).await), (0, true));
    assert_eq!(stand("uncordon").await, "open");
    assert_eq!((drained(3).await, claimed(&port, &caller, 3).await), (false, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_goes_to_a_worker_that_meets_its_requirements() {
    let place = Place::with_agent().await;
    let port = place.server.worker_port();
    let mut asks = task();
    asks["spec"]["requirements"] = json!({"region": "eu", "gpu": true, "model": "m"});
    assert_eq!(place.post("/v1/tasks", &asks).await.status, 201);
    let plain = register(&place, "plain", Offer::of_slots(5)).await;
    assert_eq!(claimed(&port, &plain, 1).await, 0);
    let offer = Offer { region: "eu".into(), capabilities: ["gpu".into()].into(), ..Offer::of_slots(5) };
    let fitting = register(&place, "fitting", offer).await;
    assert_eq!(claimed(&port, &fitting, 1).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_tasks_than_a_quota_allows_are_sent_away_with_a_time() {
    let place = Place::with_agent().await;
    quota(&place, "queue", json!({"max_queued": 2})).await;
    let mut keyed = task();
    keyed["spec"]["idempotency_key"] = json!("first");
    assert_eq!(place.post("/v1/tasks", &keyed).await.status, 201);
    place.task().await;
    let refused = place.post("/v1/tasks", &task()).await;
    assert_eq!(
        (refused.status, refused.json()["code"].clone()),
        (429, json!("too_many_tasks")),
        "{refused:?}"
    );
    assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    let again = place.post("/v1/tasks", &keyed).await;
    assert_eq!(again.status, 200, "what was accepted before is no task more: {again:?}");
    assert_eq!(place.delete("/v1/quotas/queue").await.status, 204);

    quota(&place, "none", json!({"agent": "helper", "max_queued": 0})).await;
    assert_eq!(place.post("/v1/tasks", &task()).await.status, 429, "none may wait, so none is taken");
    assert_eq!(place.delete("/v1/quotas/none").await.status, 204);

    quota(&place, "rate", json!({"agent": "helper", "tasks_per_minute": 4})).await;
    place.task().await;
    place.task().await;
    let refused = place.post("/v1/tasks", &task()).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    let delay: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&delay), "{delay}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_come_at_once_as_many_are_accepted_as_a_quota_allows() {
    for (limit, quota_of) in [(3, json!({"tasks_per_minute": 3})), (20, json!({"max_queued": 20}))] {
        let place = Place::with_agent().await;
        quota(&place, "few", quota_of).await;
        let task = task();
        let replies = join_all((0..64).map(|_| place.post("/v1/tasks", &task))).await;
        let accepted = replies.iter().filter(|reply| reply.status == 201).count();
        assert_eq!(accepted, limit);
        let refused = replies.iter().filter(|reply| reply.status == 429);
        assert!(refused.clone().all(|reply| reply.header("retry-after").is_some()));
        assert_eq!(refused.count(), 64 - limit, "nobody is told anything else");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_runs_are_at_work_than_quotas_allow() {
    let place = Place::with_agent().await;
    quota(&place, "agent", json!({"agent": "helper", "max_concurrent": 3})).await;
    for _ in 0..6 {
        place.task().await;
    }
    let port = place.server.worker_port();
    let caller = register(&place, "w", Offer::of_slots(50)).await;
    assert_eq!(claimed(&port, &caller, 1).await, 3);
    assert_eq!(claimed(&port, &caller, 2).await, 0);
    quota(&place, "all", json!({"max_concurrent": 1, "weight": 2})).await;
    place.task().await;
    assert_eq!(claimed(&port, &caller, 3).await, 0, "the namespace has fewer now");
    for name in ["agent", "all"] {
        assert_eq!(place.delete(&format!("/v1/quotas/{name}")).await.status, 204);
    }
    assert_eq!(claimed(&port, &caller, 4).await, 4, "nothing is limited any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_counts_for_what_waits_already() {
    let place = Place::with_agent().await;
    for _ in 0..5 {
        place.task().await;
    }
    let port = place.server.worker_port();
    let caller = register(&place, "w", Offer::of_slots(50)).await;
    quota(&place, "agent", json!({"agent": "helper", "max_concurrent": 2})).await;
    assert_eq!((claimed(&port, &caller, 1).await, claimed(&port, &caller, 2).await), (2, 0));
    quota(&place, "agent", json!({"agent": "helper", "max_concurrent": 3})).await;
    assert_eq!((claimed(&port, &caller, 3).await, claimed(&port, &caller, 4).await), (1, 0));
    assert_eq!(place.delete("/v1/quotas/agent").await.status, 204);
    assert_eq!(claimed(&port, &caller, 5).await, 2);
}

/// A runtime in which nobody follows quotas: what is known of them is what the start has read.
struct Unfollowed(Arc<dyn Runtime>);

impl Runtime for Unfollowed {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(delay)
    }

    fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) -> Spawned {
        let future = if name == "quotas" { Box::pin(std::future::pending()) } else { future };
        self.0.spawn(name, future)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_holds_to_quotas_from_the_first_claim_and_the_first_task_on() {
    let place = Place::with_agent().await;
    quota(&place, "few", json!({"max_concurrent": 1, "max_queued": 3})).await;
    for _ in 0..3 {
        place.task().await;
    }
    let Place { server, folder } = place;
    server.shutdown().await;
    let unfollowed = Arc::new(Unfollowed(runtime()));
    let server = ostler_server::start(config(folder.path()), unfollowed).await.unwrap();
    let place = Place { server, folder };
    assert_eq!(place.post("/v1/tasks", &task()).await.status, 429, "as many wait as may");
    let caller = register(&place, "w", Offer::of_slots(50)).await;
    assert_eq!(claimed(&place.server.worker_port(), &caller, 1).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_before_a_limit_is_handed_on_within_it() {
    let place = super::systems::desk().await;
    for name in ["one", "two", "three"] {
        assert_eq!(place.post("/v1/tasks", &super::systems::task(name)).await.status, 201);
    }
    let mut worker = Worker::new(&place).await;
    let port = place.server.worker_port();
    let caller = register(&place, "w", Offer::of_slots(50)).await;
    let held = [worker.claim().await, worker.claim().await, worker.claim().await];
    quota(&place, "writers", json!({"agent": "writer", "max_concurrent": 1})).await;
    for first in held {
        worker.finish(first, "notes").await;
    }
    assert_eq!(claimed(&port, &caller, 1).await, 1, "three are ready");
    assert_eq!(claimed(&port, &caller, 2).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_lets_the_next_one_in_at_once() {
    let place = Place::with_agent().await;
    quota(&place, "one", json!({"max_concurrent": 1})).await;
    let mut worker = Worker::new(&place).await;
    place.task().await;
    place.task().await;
    let held = worker.claim().await;
    let port = place.server.worker_port();
    let waiting = ClaimRequest { caller: worker.caller(), number: 2, slots: 1, wait_ms: 600_000 };
    let (next, ()) = tokio::join!(port.claim(waiting), worker.finish(held, "done"));
    assert_eq!(next.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raised_quota_lets_the_next_one_in_at_once() {
    let place = Place::with_agent().await;
    quota(&place, "most", json!({"max_concurrent": 1})).await;
    let mut worker = Worker::new(&place).await;
    let port = place.server.worker_port();
    place.task().await;
    worker.claim().await;
    for most in 2..12 {
        place.task().await;
        let waiting = ClaimRequest { caller: worker.caller(), number: most, slots: 1, wait_ms: 600_000 };
        let raise = quota(&place, "most", json!({"max_concurrent": most}));
        let (next, ()) = tokio::join!(port.claim(waiting), raise);
        assert_eq!(next.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_quarantined_is_released() {
    let place = Place::with_agent().await;
    let name = place.task().await;
    let refused = place.post(&format!("/v1/tasks/{name}/release"), &json!({})).await;
    assert_eq!((refused.status, refused.json()["code"].clone()), (409, json!("conflict")), "{refused:?}");
    assert_eq!(place.post("/v1/tasks/nobody/release", &json!({})).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_gone_is_forgotten_and_comes_back_as_another() {
    let place = Place::configured(super::support::runtime(), |config| {
        config.lease = std::time::Duration::from_millis(200);
        config.keep_workers = Some(std::time::Duration::from_millis(400));
    })
    .await;
    let first = register(&place, "gone", Offer::of_slots(1)).await;
    register(&place, "kept", Offer::of_slots(1)).await;
    assert_eq!(place.post("/v1/workers/kept/cordon", &json!({})).await.status, 200);
    while place.get("/v1/workers/gone").await.status != 404 {
        tokio::task::yield_now().await;
    }
    let again = register(&place, "gone", Offer::of_slots(1)).await;
    assert!(again.incarnation > first.incarnation, "{again:?} behind {first:?}");
    assert_eq!(place.get("/v1/workers/kept").await.status, 200, "what people decided is not forgotten");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_let_into_one_namespace_sees_no_workers() {
    let place = Place::new().await;
    register(&place, "one", Offer::of_slots(1)).await;
    let (all, some) =
        (place.token("all", "reader", &["*"]).await, place.token("some", "reader", &["default"]).await);
    for path in ["/v1/workers", "/v1/workers/one", "/v1/workers/one/status", "/v1/workers/nobody"] {
        assert_eq!(place.send_as(&some, "GET", path, None).await.status, 403, "{path}");
        assert_ne!(place.send_as(&all, "GET", path, None).await.status, 403, "{path}");
    }
}
