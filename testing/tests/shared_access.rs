//! Two servers on one PostgreSQL: what is decided at one about who may do what holds at the other.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "../../crates/server/tests/server/support/raw.rs"]
#[expect(dead_code, reason = "the server's own tests use more of it")]
#[allow(clippy::disallowed_methods, reason = "the other end of the wire")]
mod raw;
mod stack;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use ostler_control::access::{Digest, Grant, PasswordBytes, PasswordHash, Proof};
use ostler_kernel::Runtime;
use ostler_link::TokioRuntime;
use ostler_server::{Server, ServerConfig, StoreAddress, start};
use ostler_testing::postgres::Postgres;
use serde_json::{Value, json};
use stack::Stack;
use tempfile::TempDir;

/// What was taken away at one server opens nothing at the other after so long.
const WITHIN: Duration = Duration::from_secs(1);

const PASSWORD: &str = "correct horse battery";

struct Ground {
    servers: [Server; 2],
    _folders: [TempDir; 2],
    _database: Postgres,
}

impl Ground {
    async fn start() -> Self {
        let database = Postgres::start(&["fsync=off"]).expect("PostgreSQL");
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let begin = async |folder: &TempDir| {
            let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::new(tokio::runtime::Handle::current()));
            let config = ServerConfig {
                listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                data: folder.path().to_owned(),
                store: StoreAddress::Postgres(database.url()),
                ..ServerConfig::default()
            };
            start(config, runtime).await.expect("a server")
        };
        let servers = [begin(&folders[0]).await, begin(&folders[1]).await];
        Self { servers, _folders: folders, _database: database }
    }

    /// `credential` is the header lines that say who asks.
    async fn ask(
        &self,
        server: usize,
        credential: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> raw::Reply {
        let address = self.servers[server].address();
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\nconnection: close\r\n\
            {credential}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        raw::exchange(address, request.as_bytes()).await
    }

    fn admin(&self, server: usize) -> String {
        format!("authorization: Bearer {}\r\n", self.servers[server].token())
    }

    /// Waits until the server answers so; how long that took.
    async fn until(&self, server: usize, credential: &str, status: u16) -> Duration {
        #[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
        let since = Instant::now();
        while self.ask(server, credential, "GET", "/v1/version", None).await.status != status {
            assert!(
                since.elapsed() < Duration::from_secs(20),
                "it goes on letting them in, or keeping them out"
            );
            tokio::task::yield_now().await;
        }
        since.elapsed()
    }
}

/// Whoever signs in again and again has no more than so many.
const MOST_SIGN_INS: usize = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sign_ins_that_are_over_or_too_many_are_swept_away() {
    let stack = Stack::start(Duration::from_secs(30));
    let control = &stack.control;
    let bytes = || PasswordBytes(vec![0; 16]);
    let password = PasswordHash { memory_kib: 8, passes: 1, lanes: 1, salt: bytes(), hash: bytes() };
    let user = control.create_user("ada", Grant::whole(), password).await.expect("a user");
    let day = Duration::from_secs(24 * 60 * 60);
    let mut proofs = Vec::new();
    for number in 0..40 {
        let secret = control.sign_in(&user, day + Duration::from_secs(number)).await.expect("signed in");
        proofs.push(Proof::SignIn(Digest::of(secret.as_bytes())));
    }
    let live = async || {
        let mut live = 0;
        for proof in &proofs {
            live += usize::from(control.holder(*proof).await.expect("an answer").is_some());
        }
        live
    };
    assert_eq!(live().await, 40);
    let sweeping = Arc::clone(control);
    let sweep = async move { sweeping.sweep_sign_ins().await };
    let _sweeper = stack.runtime.spawn("sweep", Box::pin(sweep)).abort_on_drop();
    while live().await > MOST_SIGN_INS {
        tokio::task::yield_now().await;
    }
    assert_eq!(live().await, MOST_SIGN_INS);
    assert!(control.holder(proofs[39]).await.expect("an answer").is_some(), "the newest stay");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_made_at_one_server_opens_the_other_until_it_is_taken_away() {
    let ground = Ground::start().await;
    for round in 0..5 {
        let body = json!({"name": format!("ci-{round}"), "role": "reader"});
        let made = ground.ask(0, &ground.admin(0), "POST", "/v1/tokens", Some(body)).await;
        assert_eq!(made.status, 201, "{made:?}");
        let credential = format!("authorization: Bearer {}\r\n", made.json()["token"].as_str().unwrap());
        for server in [1, 0] {
            let reply = ground.ask(server, &credential, "GET", "/v1/version", None).await;
            assert_eq!(reply.status, 200, "at once at server {server}, which has never seen it");
        }
        let path = format!("/v1/tokens/ci-{round}");
        assert_eq!(ground.ask(0, &ground.admin(0), "DELETE", &path, None).await.status, 204);
        let here = ground.ask(0, &credential, "GET", "/v1/version", None).await;
        assert_eq!(here.status, 401, "at once where it was taken away");
        let took = ground.until(1, &credential, 401).await;
        assert!(took < WITHIN, "round {round}: it opened the other server for {took:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_signs_in_at_one_server_is_known_to_the_other_until_they_sign_out() {
    let ground = Ground::start().await;
    let body = json!({"username": "ada", "password": PASSWORD});
    let made = ground.ask(0, &ground.admin(0), "POST", "/v1/auth/setup", Some(body.clone())).await;
    assert_eq!(made.status, 201, "{made:?}");
    let again = ground.ask(1, &ground.admin(1), "POST", "/v1/auth/setup", Some(body.clone())).await;
    assert_eq!(again.status, 409, "there is a first user, whoever made it");
    let cookie = |reply: &raw::Reply| {
        format!("cookie: {}\r\n", reply.header("set-cookie").unwrap().split(';').next().unwrap())
    };
    let first = cookie(&made);
    let second = cookie(&ground.ask(1, "", "POST", "/v1/auth/login", Some(body)).await);
    for (server, credential) in [(0, &second), (1, &first), (0, &first), (1, &second)] {
        assert_eq!(ground.ask(server, credential, "GET", "/v1/version", None).await.status, 200);
    }
    assert_eq!(ground.ask(1, &second, "POST", "/v1/auth/logout", None).await.status, 204);
    assert!(ground.until(0, &second, 401).await < WITHIN);
    assert_eq!(ground.ask(0, &first, "GET", "/v1/version", None).await.status, 200, "the other one goes on");
    let change = json!({"current_password": PASSWORD, "new_password": "another long password"});
    assert_eq!(ground.ask(1, &first, "POST", "/v1/auth/change-password", Some(change)).await.status, 200);
    assert_eq!(ground.ask(1, &first, "GET", "/v1/version", None).await.status, 401);
    assert!(ground.until(0, &first, 401).await < WITHIN);
}
