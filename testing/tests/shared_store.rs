//! Several servers on one store: the suite in `testing/src/several_servers.rs`.

#![allow(clippy::expect_used, reason = "these are tests: one fails by panicking")]

use ostler_testing::postgres::Place;

fn place() -> Place {
    Place::fresh().expect("PostgreSQL")
}

ostler_testing::several_servers!(place);
