//! The deterministic simulation: the shipped code of control, worker, agent and the SQLite store, entered at
//! `control` and left at the gateway and tool ports, on a seeded executor. Same seed, same log.

#![allow(clippy::expect_used, reason = "a simulation that can't go on has nothing to save")]

mod bug;
mod clients;
mod effects;
mod executor;
mod faults;
mod hold;
mod link;
pub(crate) mod monitor;
pub(crate) mod rng;
mod store;
mod world;

use std::{collections::BTreeMap, path::Path, time::Duration};

use ostler_kernel::Command;
use tokio::sync::watch;

use self::world::World;
pub use self::{
    bug::{Bug, Condition},
    store::Instant,
};

/// How long things go wrong, and how long everything may then take to come to its end.
const TROUBLE: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(1800);

/// What one seed gave.
pub struct Outcome {
    pub violations: Vec<String>,
    pub log: String,
    /// How often the server died at each instant of each command.
    pub coverage: BTreeMap<(String, Instant), u64>,
    /// How often each condition that a command stated was what refused it.
    pub refusals: BTreeMap<(Command, Condition), u64>,
    pub polls: u64,
}

/// Plays one seed. `folder` is empty, and holds the store.
pub fn run_seed(seed: u64, folder: &Path, bug: Option<Bug>) -> Outcome {
    let world = World::new(seed, folder.join("store.db"), bug);
    world.boot_server();
    if bug == Some(Bug::TwoLiveRunsInSession) {
        drop_session_index(folder);
    }
    let n_workers = world.draw(|rng| rng.between(1, 3));
    for worker in 0..n_workers {
        world.boot_worker(&format!("w{worker}"));
    }
    let n_tasks = world.draw(|rng| rng.between(3, 8));
    let (done, watched) = watch::channel(0);
    let network = world.network();
    network.spawn("clients", Box::pin(clients::play(world.clone(), done, n_tasks))).detach();
    network.spawn("faults", Box::pin(faults::play(world.clone(), TROUBLE, n_workers))).detach();
    run_until_done(&world, &watched, n_tasks as usize + 1);
    let outcome = Outcome {
        violations: world.violations(),
        log: world.take_log(),
        coverage: world.coverage(),
        refusals: world.refusals(),
        polls: world.executor.polls(),
    };
    world.shut_down();
    outcome
}

fn run_until_done(world: &World, done: &watch::Receiver<usize>, all: usize) {
    let start = world.executor.now();
    let mut alive = true;
    while alive && *done.borrow() < all && world.violations().is_empty() {
        alive = world.executor.step();
        if world.executor.now() - start > PATIENCE {
            world.violate("something never came to its end".into());
        }
    }
    if *done.borrow() < all {
        world.log_unfinished();
    }
    if !alive && *done.borrow() < all {
        world.violate("nothing can happen any more, and not all is done".into());
    }
}

/// For the planted bug alone: takes away what would refuse a second live run.
fn drop_session_index(folder: &Path) {
    let dropped = rusqlite::Connection::open(folder.join("store.db"))
        .and_then(|connection| connection.execute_batch("DROP INDEX runs_live"));
    dropped.expect("the index is there");
}
