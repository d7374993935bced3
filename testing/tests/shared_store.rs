//! Several servers on one store: the suite in `testing/src/several_servers.rs`.

#![allow(clippy::expect_used, reason = "these are tests: one fails by panicking")]

use ostler_testing::postgres::Place;

fn place() -> Place {
    Place::fresh().expect("PostgreSQL")
}

ostler_testing::several_servers!(place);

/// What is promised does not hang on what the database's role is set to.
mod of_a_stranger {
    fn place() -> super::Place {
        super::place().of_a_stranger()
    }

    ostler_testing::several_servers!(place);
}
