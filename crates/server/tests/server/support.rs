//! A server to talk to, and the talking.

pub mod raw;
pub mod sse;
pub mod worker;

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ostler_kernel::{
    Runtime, Timestamp,
    runtime::{BoxFuture, Spawned},
};
use ostler_link::TokioRuntime;
use ostler_server::{Limits, Server, ServerConfig, StartError, start};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use raw::Reply;

pub struct Place {
    pub server: Server,
    pub folder: TempDir,
}

pub fn runtime() -> Arc<dyn Runtime> {
    Arc::new(TokioRuntime::new(tokio::runtime::Handle::current()))
}

/// A runtime in which little time is enough.
pub struct Hasty(Arc<dyn Runtime>);

impl Hasty {
    #[expect(clippy::new_ret_no_self, reason = "it is only ever used as a runtime")]
    pub fn new() -> Arc<dyn Runtime> {
        Arc::new(Self(runtime()))
    }
}

impl Runtime for Hasty {
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
        self.0.sleep(delay / 200)
    }

    fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) -> Spawned {
        self.0.spawn(name, future)
    }
}

const HOUR_MS: u64 = 60 * 60 * 1000;

/// A runtime whose calendar can be turned on, and back as far.
pub struct Calendar {
    inner: Arc<dyn Runtime>,
    ahead_ms: AtomicU64,
}

impl Calendar {
    pub fn new(inner: Arc<dyn Runtime>) -> Arc<Self> {
        Arc::new(Self { inner, ahead_ms: AtomicU64::new(0) })
    }

    pub fn turn_on(&self, hours: u64) {
        self.ahead_ms.fetch_add(hours * HOUR_MS, Ordering::Relaxed);
    }

    pub fn turn_back(&self, hours: u64) {
        self.ahead_ms.fetch_sub(hours * HOUR_MS, Ordering::Relaxed);
    }
}

impl Runtime for Calendar {
    fn now(&self) -> Timestamp {
        self.inner.now().after(Duration::from_millis(self.ahead_ms.load(Ordering::Relaxed)))
    }

    fn monotonic(&self) -> Duration {
        self.inner.monotonic()
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        self.inner.sleep(delay)
    }

    fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) -> Spawned {
        self.inner.spawn(name, future)
    }
}

const LONG: Duration = Duration::from_secs(4 * 60 * 60);

pub fn config(data: &Path) -> ServerConfig {
    ServerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        data: data.to_owned(),
        // Where little time is enough, it would be too little for an answer.
        limits: Limits { read_within: LONG, write_within: LONG, ..Limits::default() },
        ..ServerConfig::default()
    }
}

pub async fn start_in(data: &Path) -> Result<Server, StartError> {
    start(config(data), runtime()).await
}

impl Place {
    pub async fn new() -> Self {
        Self::with(runtime()).await
    }

    pub async fn with(runtime: Arc<dyn Runtime>) -> Self {
        Self::configured(runtime, |_| {}).await
    }

    pub async fn configured(runtime: Arc<dyn Runtime>, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        change(&mut config);
        let server = start(config, runtime).await.unwrap();
        Self { server, folder }
    }

    /// With an agent `helper` on a model that is never asked.
    pub async fn with_agent() -> Self {
        let place = Self::new().await;
        place.apply_agent().await;
        place
    }

    pub async fn apply_agent(&self) {
        for resource in [model("mock"), agent("helper")] {
            let plural = if resource["kind"] == "Agent" { "agents" } else { "model-endpoints" };
            let reply = self.post(&format!("/v1/{plural}"), &resource).await;
            assert_eq!(reply.status, 201, "{reply:?}");
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The head of a request with the token, up to its last header.
    pub fn head(&self, method: &str, path: &str) -> String {
        let (address, token) = (self.address(), self.server.token());
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n"
        )
    }

    pub async fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Reply {
        let length =
            if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let mut request = format!("{}{headers}{length}\r\n", self.head(method, path)).into_bytes();
        request.extend_from_slice(body);
        raw::exchange(self.address(), &request).await
    }

    /// As somebody else: `credential` is the header lines that say who.
    pub async fn send_as(&self, credential: &str, method: &str, path: &str, body: Option<&Value>) -> Reply {
        raw::exchange(self.address(), self.request_as(credential, method, path, body).as_bytes()).await
    }

    pub fn request_as(&self, credential: &str, method: &str, path: &str, body: Option<&Value>) -> String {
        let body = body.map(Value::to_string).unwrap_or_default();
        let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{credential}{kind}content-length: {}\r\n\r\n{body}",
            self.address(),
            body.len()
        )
    }

    /// Makes a token of this role for these namespaces, and gives the header line that shows it.
    pub async fn token(&self, name: &str, role: &str, namespaces: &[&str]) -> String {
        let body = json!({"name": name, "role": role, "namespaces": namespaces});
        let reply = self.post("/v1/tokens", &body).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        bearer(reply.json()["token"].as_str().unwrap())
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "", b"").await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, "", b"").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        if path.starts_with("/v1/tasks") {
            next_moment().await;
        }
        self.send("POST", path, "content-type: application/json\r\n", body.to_string().as_bytes()).await
    }

    pub async fn put(&self, path: &str, headers: &str, body: &Value) -> Reply {
        let headers = format!("content-type: application/json\r\n{headers}");
        self.send("PUT", path, &headers, body.to_string().as_bytes()).await
    }

    /// Creates a task for `helper` and gives its name.
    pub async fn task(&self) -> String {
        let reply = self.post("/v1/tasks", &task()).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["metadata"]["name"].as_str().unwrap().to_owned()
    }
}

pub fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}

/// Of one millisecond no task is newer than another: waits until it is over.
async fn next_moment() {
    let (runtime, now) = (runtime(), runtime().now());
    while runtime.now() == now {
        tokio::task::yield_now().await;
    }
}

pub fn task() -> Value {
    json!({"apiVersion": "ostler.dev/v1", "kind": "Task", "spec": {"agent": "helper", "input": {"message": "hi"}}})
}

pub fn agent(name: &str) -> Value {
    json!({
        "apiVersion": "ostler.dev/v1", "kind": "Agent", "metadata": {"name": name},
        "spec": {"model_ref": "mock", "prompt": "Help."},
    })
}

pub fn model(name: &str) -> Value {
    json!({
        "apiVersion": "ostler.dev/v1", "kind": "ModelEndpoint", "metadata": {"name": name},
        "spec": {"provider": "mock", "default_model": "mock"},
    })
}
