//! Several servers on one store: what one of them alone can't show. Each story is given a place in PostgreSQL, and opens
//! it as often as it needs; [`crate::several_servers`] makes one test of each.

#![allow(clippy::expect_used, clippy::panic, reason = "a suite of tests: a story fails by panicking")]

pub mod claims;
pub mod commits;
pub mod log;

use std::{sync::Arc, time::Duration};

use ostler_kernel::runtime::BoxFuture;
use ostler_store::{Store, conformance::world::World};
use tokio::{task::AbortHandle, time::timeout};

use crate::postgres::{Place, Visitor};

pub struct Story {
    pub name: &'static str,
    pub play: fn(Place) -> BoxFuture<'static, ()>,
}

/// Takes the list of all stories. The first argument is a dollar sign, for the macro inside the macro.
macro_rules! stories {
    ($dollar:tt $($area:ident: $($story:ident)*;)*) => {
        /// Makes one test of each story. Give it a function that makes a place.
        #[macro_export]
        macro_rules! several_servers {
            ($dollar make:path) => {$($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $story() {
                    $crate::several_servers::$area::$story($dollar make()).await;
                }
            )*)*};
        }

        /// All of them, to be played where one chooses at run time.
        pub fn stories() -> Vec<Story> {
            vec![$($(Story {
                name: stringify!($story),
                play: |place| Box::pin($area::$story(place)),
            },)*)*]
        }

        #[test]
        fn every_story_is_listed() {
            $({
                let listed = [$(stringify!($story)),*];
                let source = include_str!(concat!("several_servers/", stringify!($area), ".rs"));
                assert_eq!(source.matches("(place: Place)").count(), listed.len(), "in {}", stringify!($area));
            })*
        }
    };
}

stories! { $
    log:
        what_one_server_commits_the_other_hears_of
        who_follows_skips_nobody_while_many_write
        who_follows_waits_for_one_that_began_earlier;
    claims:
        a_class_never_holds_one_more_than_it_may
        two_servers_do_not_both_give_the_last_place
        a_server_that_stands_still_holds_up_no_claim_of_another;
    commits:
        one_of_two_servers_gives_the_name
        what_one_server_changed_the_other_does_not_overwrite
        what_the_database_can_not_hold_harms_nobody_else;
}

/// So that a store that keeps silent fails a test instead of stopping it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Servers, each with a world of its own that makes ids of its own, and someone beside them.
struct House {
    servers: Vec<Arc<dyn Store>>,
    worlds: Vec<Arc<World>>,
    visitor: Visitor,
}

impl House {
    async fn at(place: &Place, n_servers: usize) -> Self {
        let servers = place.servers(n_servers).await.expect("PostgreSQL");
        let world = |(number, store)| Arc::new(World::beside(Arc::clone(store), number));
        let worlds = (0..).zip(&servers).map(world).collect();
        Self { worlds, servers, visitor: place.visitor().await.expect("PostgreSQL") }
    }

    /// Waits until so many connections of the servers wait for a row.
    async fn stand_still(&self, count: i64) {
        let waiting = async { while self.visitor.n_waiting().await.expect("PostgreSQL") < count {} };
        timeout(PATIENCE, waiting).await.expect("they come to the row that is held");
    }

    /// Waits until the task has ended, or so many connections of the servers wait for a row.
    async fn ended_or_waiting(&self, task: &AbortHandle, count: i64) {
        let waiting = async {
            while !task.is_finished() && self.visitor.n_waiting().await.expect("PostgreSQL") < count {}
        };
        timeout(PATIENCE, waiting).await.expect("it ends, or comes to a row that is held");
    }
}
