//! Runs that nobody can be given, and runs that are large, with real workers: the others go on.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod stack;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use ostler_client::Client;
use ostler_kernel::{Bundle, Refusal, Runtime, TaskState, runtime::timeout};
use ostler_link::TokioRuntime;
use ostler_server::{ServerConfig, start};
use ostler_store::{
    Answer, Claim, Claimed, Committed, Hint, Query, SqliteStore, Store, StoreError, StoreExt,
};
use ostler_worker::{Dial, Equipment, NetConfig, Offer, Redactor, RemotePort, WorkerConfig, WorkerHandle};
use serde_json::{Value, json};
use stack::Stack;
use tokio::sync::watch;

const LEASE: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(240);

/// More than a message of the link carries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seventeen_tasks_of_four_megabytes_go_over_the_link() {
    let folder = tempfile::tempdir().unwrap();
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::new(tokio::runtime::Handle::current()));
    let config = ServerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        data: folder.path().to_owned(),
        ..ServerConfig::default()
    };
    let server = start(config, Arc::clone(&runtime)).await.expect("a server");
    let client = Client::new(server.url(), server.token()).unwrap();
    client
        .apply(&manifest("Agent", "helper", json!({"model_ref": "mock", "prompt": "Help."})))
        .await
        .unwrap();
    let names: Vec<String> = (0..17).map(|number| format!("large-{number}")).collect();
    let message = "x".repeat(4_100_000);
    for name in &names {
        let spec = json!({"agent": "helper", "input": {"message": message}});
        client.create_task(&manifest("Task", name, spec)).await.unwrap();
    }
    let dial = Dial {
        servers: vec![server.url().parse().unwrap()],
        token: std::fs::read_to_string(folder.path().join("worker-token")).unwrap(),
        worker: "w".to_owned(),
        ca: None,
    };
    let worker = worker(dial, &runtime);
    let all_end = async {
        for name in &names {
            while !client.task(name).await.unwrap().is_ended() {
                runtime.sleep(Duration::from_millis(20)).await;
            }
            assert!(client.task(name).await.unwrap().succeeded(), "{name}");
        }
    };
    timeout(&*runtime, PATIENCE, all_end).await.expect("the worker makes no headway");
    worker.stop().await;
}

fn worker(dial: Dial, runtime: &Arc<dyn Runtime>) -> WorkerHandle {
    let port = Arc::new(RemotePort::new(dial, Arc::clone(runtime)).unwrap());
    let (network, redactor) = (NetConfig::default(), Redactor::default());
    let equipment = Equipment::standard(port, Arc::clone(runtime), network, redactor).expect("equipment");
    ostler_worker::start(WorkerConfig { name: "w".to_owned(), offer: Offer::of_slots(64) }, equipment)
}

fn manifest(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "ostler.dev/v1", "kind": kind, "metadata": { "name": name }, "spec": spec })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_cannot_be_read_holds_up_its_own_run_alone() {
    let folder = tempfile::tempdir().unwrap();
    let inner = SqliteStore::open(&folder.path().join("store.db")).expect("a store");
    let store = Arc::new(Newer { inner, is_newer: AtomicBool::new(true) });
    // Whoever accepts the tasks knows their plans; the server that hands them out was started since.
    let accepting = Stack::on(Arc::clone(&store) as _, LEASE);
    for agent in ["odd", "plain"] {
        accepting.apply("Agent", agent, json!({ "model_ref": "mock", "prompt": agent })).await;
    }
    let odd = accepting.create("odd", asks("odd")).await;
    let plain = accepting.create("plain", asks("plain")).await;
    drop(accepting);

    let stack = Stack::on(Arc::clone(&store) as _, LEASE);
    let worker = stack.worker("w", 2, Arc::clone(&stack.control) as _);
    assert_eq!(stack.watch(plain.id).await.task.task.state, TaskState::Succeeded);
    let waiting = stack.row(odd.id).await.task;
    assert_eq!(waiting.state.name(), "waiting", "{waiting:?}");
    let view = store.run_view(waiting.run).await.expect("the store").expect("its run");
    let summary = view.blocker.expect("it waits for someone").summary;
    assert!(summary.contains("quarantined") && summary.contains("can't read the plan"), "{summary}");

    store.is_newer.store(false, Ordering::SeqCst);
    stack.control.release(odd.id).await.expect("it is quarantined");
    assert_eq!(stack.watch(odd.id).await.task.task.state, TaskState::Succeeded);
    worker.stop().await;
}

fn asks(agent: &str) -> Value {
    json!({ "agent": agent, "input": { "message": "hi" } })
}

/// The plan of one agent is as a newer server would write it.
struct Newer {
    inner: SqliteStore,
    is_newer: AtomicBool,
}

#[async_trait]
impl Store for Newer {
    async fn commit(&self, bundles: Vec<Bundle>) -> Result<Vec<Result<Committed, Refusal>>, StoreError> {
        self.inner.commit(bundles).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.inner.claim(claim).await
    }

    async fn read(&self, query: Query) -> Result<Answer, StoreError> {
        let answer = self.inner.read(query).await?;
        match answer {
            Answer::Blob(Some(bytes)) if self.is_odd(&bytes) => {
                Ok(Answer::Blob(Some(b"{\"plan\":2}".to_vec())))
            }
            answer => Ok(answer),
        }
    }

    fn watch(&self) -> watch::Receiver<Hint> {
        self.inner.watch()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }
}

impl Newer {
    fn is_odd(&self, plan: &[u8]) -> bool {
        let is_odd = String::from_utf8_lossy(plan).contains("\"agent\":\"odd\"");
        is_odd && self.is_newer.load(Ordering::SeqCst)
    }
}
