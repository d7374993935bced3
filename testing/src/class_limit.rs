//! A class with room for five, and twenty workers who hammer it while they, their servers and the connections to the
//! database die in the middle of what they do. A witness tells how many leases there were at once.

#![allow(clippy::expect_used, reason = "part of a test: it fails by panicking")]

mod ground;
mod worker;

use std::sync::Arc;

use ostler_kernel::TaskState;
use ostler_store::{
    Store, StoreExt, TaskFilter,
    conformance::{dice::Dice, world::World},
};
use tokio::{sync::watch, task::JoinSet};

pub use self::ground::{Ground, PostgresGround, SqliteGround};

pub const LIMIT: u32 = 5;
const WORKERS: usize = 20;
const TASKS: usize = 150;

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// The most leases that there were at once.
    pub most: usize,
    pub worker_deaths: usize,
    pub server_deaths: usize,
    pub cut_connections: usize,
}

/// What was done so far, for those who decide when to die.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    claimed: usize,
    worker_deaths: usize,
    server_deaths: usize,
    cut_connections: usize,
}

type Pace = Arc<watch::Sender<Done>>;

/// Has the workers do all there is to do. Then every task has succeeded, once.
pub async fn hammer(ground: Arc<dyn Ground>, seed: u64) -> Outcome {
    let mut dice = Dice::new(seed);
    accept_tasks(ground.open().await).await;
    let pace = Pace::default();
    let mut servers = JoinSet::new();
    for server in 0..ground.n_servers() {
        servers.spawn(serve(Arc::clone(&ground), server, Arc::clone(&pace), Dice::new(dice.roll())));
    }
    let mut cutting = JoinSet::new();
    cutting.spawn(cut_connections(Arc::clone(&ground), Arc::clone(&pace), dice));
    while let Some(served) = servers.join_next().await {
        served.expect("nobody panics");
    }
    cutting.shutdown().await;
    let store = ground.open().await;
    check_tasks(&*store).await;
    let Done { worker_deaths, server_deaths, cut_connections, .. } = *pace.borrow();
    let most = ground.most_leases(&*store).await;
    Outcome { most, worker_deaths, server_deaths, cut_connections }
}

async fn accept_tasks(store: Arc<dyn Store>) {
    let world = World::new(store);
    for _ in 0..TASKS {
        world.ask().in_class("narrow", Some(LIMIT)).accept().await;
    }
}

async fn check_tasks(store: &dyn Store) {
    let filter = TaskFilter { limit: usize::MAX, ..TaskFilter::default() };
    let tasks = store.tasks(filter).await.expect("the store answers");
    assert_eq!(tasks.len(), TASKS);
    for row in tasks {
        assert_eq!(row.task.state, TaskState::Succeeded);
        let events = store.events(row.task.id, 0, usize::MAX).await.expect("the store answers");
        assert_eq!(
            events.iter().filter(|event| event.body.is_last()).count(),
            1,
            "it ended once: {events:?}"
        );
    }
}

/// A server with its share of the workers. Time and again it goes down with all of them, and comes back.
async fn serve(ground: Arc<dyn Ground>, server: usize, pace: Pace, mut dice: Dice) {
    loop {
        let store = ground.open().await;
        let mut workers = JoinSet::new();
        for number in (server..WORKERS).step_by(ground.n_servers()) {
            let (store, pace, dice) = (Arc::clone(&store), Arc::clone(&pace), Dice::new(dice.roll()));
            workers.spawn(worker::work(store, number, ground.longest_life(), pace, dice));
        }
        let until = pace.borrow().claimed + 8 + dice.below(20) as usize;
        let mut watching = pace.subscribe();
        tokio::select! {
            biased;
            () = all_end(&mut workers) => return,
            reached = watching.wait_for(|done| done.claimed >= until) => drop(reached.expect("it is held here")),
        }
        workers.shutdown().await;
        pace.send_modify(|done| done.server_deaths += 1);
    }
}

async fn all_end(workers: &mut JoinSet<()>) {
    while let Some(worked) = workers.join_next().await {
        worked.expect("nobody panics");
    }
}

async fn cut_connections(ground: Arc<dyn Ground>, pace: Pace, mut dice: Dice) {
    let mut watching = pace.subscribe();
    loop {
        let until = pace.borrow().claimed + 5 + dice.below(20) as usize;
        drop(watching.wait_for(|done| done.claimed >= until).await.expect("it is held here"));
        let n_cut = ground.cut_connections().await;
        pace.send_modify(|done| done.cut_connections += n_cut);
    }
}
