//! What a server asks of its database: as many connections as the guide says, and no more, however much there is to do.

#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

mod stack;

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use ostler_kernel::runtime::timeout;
use ostler_testing::postgres::{self, Postgres};
use serde_json::json;
use stack::Stack;
use tokio::task::JoinSet;

/// As docs/guides/many-machines.md has it: 2 write, 1 claims, 8 read, 3 carry news.
const MOST: i64 = 14;

const PATIENCE: Duration = Duration::from_secs(60);

/// Two, since who is alone tells nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_holds_fourteen_connections_to_its_database() {
    let database = Postgres::start(&["fsync=off"]).expect("PostgreSQL");
    let mut servers = Vec::new();
    for _ in 0..2 {
        let store = postgres::open(&database.url()).await.expect("a store");
        servers.push(Stack::on(Arc::new(store), Duration::from_secs(30)));
    }
    let first = &servers[0];
    first.apply("ModelEndpoint", "mock", json!({ "provider": "mock", "default_model": "mock-1" })).await;
    first.apply("Agent", "helper", json!({ "model_ref": "mock", "prompt": "Help." })).await;
    let worker = first.worker("w", 16, Arc::clone(&first.control) as _);
    let other = servers[1].worker("other", 16, Arc::clone(&servers[1].control) as _);
    let (client, connection) =
        tokio_postgres::connect(&database.url(), tokio_postgres::NoTls).await.expect("a connection");
    let _driving = JoinSet::from_iter([async move { drop(connection.await) }]);
    let count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
        AND pid <> pg_backend_pid()";
    let all_at_once = async {
        for round in 0.. {
            let busy = servers
                .iter()
                .zip(["a", "b"])
                .map(|(server, name)| keep_busy(server, format!("{name}-{round}")));
            let counting = async { client.query_one(count, &[]).await.expect("a count").get::<_, i64>(0) };
            let (_, n_held) = tokio::join!(join_all(busy), counting);
            assert!(n_held <= 2 * MOST, "two servers hold {n_held} connections");
            if n_held == 2 * MOST && round >= 5 {
                return;
            }
        }
    };
    timeout(&*first.runtime, PATIENCE, all_at_once).await.expect("they never held as many as they may");
    worker.stop().await;
    other.stop().await;
}

/// Much to read and to write at once.
async fn keep_busy(server: &Stack, name: String) {
    let create = |n| {
        let name = format!("{name}-{n}");
        let spec = json!({ "agent": "helper", "input": { "message": "do it" } });
        async move { drop(server.create(&name, spec).await) }
    };
    let look = async |_| drop(server.control.workers().await.expect("the workers"));
    tokio::join!(join_all((0..16).map(create)), join_all((0..32).map(look)));
}
