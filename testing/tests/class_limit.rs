//! Twenty workers hammer a class limited to five, while they and their servers are killed: a sixth lease never lives.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "these are tests: one fails by panicking"
)]

use std::sync::Arc;

use ostler_store::planted::Bug;
use ostler_testing::{
    class_limit::{LIMIT, Outcome, PostgresGround, SqliteGround, hammer},
    postgres::Place,
};

/// How often something that depends on timing is tried.
const ROUNDS: u64 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_holds_the_limit_of_a_class_under_kills() {
    for seed in 0..3 {
        let outcome = hammer(Arc::new(SqliteGround::new(None)), seed).await;
        assert_eq!(outcome.most, LIMIT as usize, "no more, and all of them were used: {outcome:?}");
        assert!(outcome.worker_deaths > 50 && outcome.server_deaths > 4, "{outcome:?}");
        println!("SQLite: {outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_holds_the_limit_of_a_class_under_kills() {
    for seed in 0..3 {
        let outcome = hammer(Arc::new(PostgresGround::new(None).await), seed).await;
        assert_eq!(outcome.most, LIMIT as usize, "no more, and all of them were used: {outcome:?}");
        assert!(outcome.worker_deaths > 50 && outcome.server_deaths > 4, "{outcome:?}");
        assert!(outcome.cut_connections > 10, "{outcome:?}");
        println!("PostgreSQL: {outcome:?}");
    }
}

/// Where its snapshots would be older than the locks it waited for, two claims would see the last place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_holds_the_limit_whatever_its_role_is_set_to() {
    let place = Place::fresh().expect("PostgreSQL").of_a_stranger();
    let outcome = hammer(Arc::new(PostgresGround::at(place).await), 0).await;
    assert_eq!(outcome.most, LIMIT as usize, "no more, and all of them were used: {outcome:?}");
    println!("PostgreSQL, as a stranger: {outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_one_lease_too_many_would_be_noticed() {
    let outcome = hammer(Arc::new(SqliteGround::new(Some(Bug::LimitPerClaim))), 0).await;
    noticed(Bug::LimitPerClaim, &outcome);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_one_lease_too_many_would_be_noticed() {
    for bug in [Bug::LimitPerClaim, Bug::LaneWithoutLock] {
        let mut outcome = hammer(Arc::new(PostgresGround::new(Some(bug)).await), 0).await;
        for seed in 1..ROUNDS {
            if outcome.most > LIMIT as usize {
                break;
            }
            outcome = hammer(Arc::new(PostgresGround::new(Some(bug)).await), seed).await;
        }
        noticed(bug, &outcome);
    }
}

fn noticed(bug: Bug, outcome: &Outcome) {
    assert!(outcome.most > LIMIT as usize, "{bug:?}: {outcome:?}");
    println!("{bug:?}: {outcome:?}");
}
