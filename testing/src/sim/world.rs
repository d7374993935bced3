//! The world that a seed plays in: one server, a few workers, a network, and what goes wrong with them.

mod network;
mod processes;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use ostler_control::{Background, Control};
use ostler_kernel::{Bundle, Command, Refusal, Runtime};
use ostler_store::{Claimed, Committed, SqliteStore, StoreExt, TaskFilter};
use ostler_worker::WorkerHandle;
use tokio::sync::watch;

use super::{
    bug::{Bug, Condition},
    executor::{Executor, Node, NodeRuntime, WORLD},
    hold::{Holds, Row},
    monitor::Monitor,
    rng::Rng,
    store::Instant,
};

pub const LEASE: Duration = Duration::from_secs(2);
const SERVER: Node = Node(1);

pub struct World {
    pub executor: Arc<Executor>,
    path: PathBuf,
    bug: Option<Bug>,
    state: Mutex<State>,
    stirs: watch::Sender<u64>,
    pub holds: Holds,
}

struct State {
    monitor: Monitor,
    server: Option<Server>,
    workers: BTreeMap<Node, (String, WorkerHandle)>,
    next_node: u32,
    cut: BTreeSet<Node>,
    slow: BTreeSet<Node>,
    /// Workers that another has replaced, and until when they stand still.
    stuck: BTreeMap<Node, Duration>,
    /// Nothing goes wrong any more: now everything has to come to its end.
    calm: bool,
    log: String,
    coverage: BTreeMap<(String, Instant), u64>,
    refusals: BTreeMap<(Command, Condition), u64>,
}

struct Server {
    control: Arc<Control>,
    sqlite: Arc<SqliteStore>,
    _background: Background,
}

impl World {
    pub fn new(seed: u64, path: PathBuf, bug: Option<Bug>) -> Arc<Self> {
        let state = State {
            monitor: Monitor::new(LEASE),
            server: None,
            workers: BTreeMap::new(),
            next_node: 10,
            cut: BTreeSet::new(),
            slow: BTreeSet::new(),
            stuck: BTreeMap::new(),
            calm: false,
            log: String::new(),
            coverage: BTreeMap::new(),
            refusals: BTreeMap::new(),
        };
        Arc::new(Self {
            executor: Executor::new(seed),
            path,
            bug,
            state: Mutex::new(state),
            stirs: watch::channel(0).0,
            holds: Holds::new(),
        })
    }

    pub fn bug(&self) -> Option<Bug> {
        self.bug
    }

    pub fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        self.executor.draw(draw)
    }

    /// Changes whenever something was committed or an effect ended.
    pub fn stirs(&self) -> watch::Receiver<u64> {
        self.stirs.subscribe()
    }

    pub fn stir(&self) {
        self.stirs.send_modify(|stirs| *stirs += 1);
    }

    /// The clock and the executor of what is outside all processes.
    pub fn network(&self) -> Arc<dyn Runtime> {
        NodeRuntime::new(&self.executor, WORLD)
    }

    pub fn log(&self, line: impl AsRef<str>) {
        let now = self.executor.now();
        let mut state = self.state();
        state.log.push_str(&format!("{:>9.3} {}\n", now.as_secs_f64() - 1000.0, line.as_ref()));
    }

    pub fn take_log(&self) -> String {
        std::mem::take(&mut self.state().log)
    }

    pub fn violate(&self, what: String) {
        self.state().monitor.violate(what);
    }

    pub fn violations(&self) -> Vec<String> {
        self.state().monitor.violations().to_vec()
    }

    pub fn coverage(&self) -> BTreeMap<(String, Instant), u64> {
        self.state().coverage.clone()
    }

    pub fn refusals(&self) -> BTreeMap<(Command, Condition), u64> {
        self.state().refusals.clone()
    }

    pub fn is_calm(&self) -> bool {
        self.state().calm
    }

    pub fn control(&self) -> Option<Arc<Control>> {
        self.state().server.as_ref().map(|server| Arc::clone(&server.control))
    }

    // What goes wrong, drawn anew each time.

    pub fn dies_at(&self, what: &str, instant: Instant) -> bool {
        // What happens seldom dies more often, so that a few hundred seeds have tried every instant.
        let odds = match what {
            "Journal" | "Renew" | "Claim" => 90,
            "Accept" | "Finish" | "Apply" | "PutBlob" | "Register" => 40,
            _ => 8,
        };
        if self.is_calm() || !self.draw(|rng| rng.one_in(odds)) {
            return false;
        }
        *self.state().coverage.entry((what.to_owned(), instant)).or_default() += 1;
        self.log(format!("the server dies {instant:?} {what}").to_lowercase());
        true
    }

    /// Whether the commit is held back, until which row is written, and for how long at most.
    pub fn holds_back(&self, bundle: &Bundle) -> Option<(Row, Duration)> {
        use ostler_kernel::Command::{Accept, Apply, Finish, Journal, Register, Renew, Yield};
        // What is decided seldom is held back more often, so that a few hundred seeds have met every condition.
        let odds = match bundle.command {
            Journal | Renew => 25,
            Accept | Apply | Finish | Register | Yield => 5,
            _ => 2,
        };
        // In calm times not so long that a worker's lease ends.
        let most = if self.is_calm() { 300 } else { 2500 };
        self.draw(|rng| {
            let held = !bundle.expect.is_empty() && rng.one_in(odds);
            held.then(|| {
                let expect = &bundle.expect[rng.below(bundle.expect.len() as u64) as usize];
                (Row::of(expect), Duration::from_millis(rng.between(10, most)))
            })
        })
    }

    pub fn loses_answer(&self) -> bool {
        !self.is_calm() && self.draw(|rng| rng.one_in(150))
    }

    /// Also in calm times: what a lost wake-up leaves behind, a sweep has to repair.
    pub fn loses_wakeup(&self) -> bool {
        self.draw(|rng| rng.one_in(4))
    }

    pub fn loses_message(&self, node: Node) -> bool {
        if self.is_calm() {
            return false;
        }
        self.state().cut.contains(&node) || self.draw(|rng| rng.one_in(25))
    }

    pub fn server_node(&self) -> Node {
        SERVER
    }

    pub fn calm_down(self: &Arc<Self>) {
        self.state().calm = true;
        self.state().cut.clear();
        self.state().slow.clear();
        self.log("calm");
    }

    /// Logs what has not ended, for whoever looks into a seed.
    pub fn log_unfinished(&self) {
        let sqlite = self.state().server.as_ref().map(|server| Arc::clone(&server.sqlite));
        let Some(sqlite) = sqlite else { return };
        let filter = TaskFilter { limit: 1000, archived: true, ..TaskFilter::default() };
        // Nothing waits inside the inline store, so one look is enough.
        let tasks = sqlite.tasks(filter).now_or_never().and_then(Result::ok).unwrap_or_default();
        for row in tasks.into_iter().filter(|row| !row.task.state.is_terminal()) {
            let view = sqlite.run_view(row.task.run).now_or_never();
            self.log(format!("unfinished: {} {view:?}", row.task.name));
        }
    }

    /// Lets go of everything that holds on to the world.
    pub fn shut_down(&self) {
        let (server, workers) = {
            let mut state = self.state();
            (state.server.take(), std::mem::take(&mut state.workers))
        };
        self.executor.kill_all();
        drop((server, workers));
    }

    // What is seen.

    pub async fn saw_commit(
        &self,
        store: &SqliteStore,
        bundle: &Bundle,
        result: &Result<Committed, Refusal>,
    ) {
        let now = self.executor.now();
        self.stir();
        self.count_conditions(bundle, result);
        match result {
            Ok(Committed { duplicate: false, .. }) => {
                self.log(format!("commit {:?} {}", bundle.command, subject(bundle)));
                self.state().monitor.committed(bundle, now);
                self.holds.wrote(&bundle.writes);
                self.read_log(store).await;
            }
            Ok(_) => self.log(format!("resent {:?} {}", bundle.command, subject(bundle))),
            Err(refusal) => {
                self.log(format!("{refusal}"));
                // A constraint is the last guard. What it keeps out, a condition should have.
                if refusal.unmet().is_none() {
                    self.violate(format!("no condition of it was unmet, and yet: {refusal}"));
                }
            }
        }
    }

    fn count_conditions(&self, bundle: &Bundle, result: &Result<Committed, Refusal>) {
        let refusals = &mut self.state().refusals;
        for expect in &bundle.expect {
            let refused = matches!(result, Err(refusal) if refusal.unmet() == Some(expect));
            *refusals.entry((bundle.command, Condition::of(expect))).or_default() += u64::from(refused);
        }
    }

    pub async fn saw_claim(&self, store: &SqliteStore, claimed: &[Claimed]) {
        for claimed in claimed {
            self.log(format!("claim {} by {:?}", claimed.run.id, claimed.run.lease()));
            self.state().monitor.claimed(claimed);
            self.holds.touched([Row::Run(claimed.run.id)]);
        }
        self.read_log(store).await;
    }

    pub async fn read_log(&self, store: &SqliteStore) {
        let after = self.state().monitor.position();
        match store.log(after, 10_000).await {
            Ok(events) => {
                let mut state = self.state();
                events.iter().for_each(|event| state.monitor.logged(event));
            }
            Err(error) => self.violate(format!("the log can't be read: {error}")),
        }
    }

    pub fn saw_renewal(&self, worker: &str, incarnation: u64, counter: u64) {
        let now = self.executor.now();
        self.state().monitor.renewed(worker, incarnation, counter, now);
    }

    pub fn effect_began(&self, kind: &str, step: &str, repeatable: bool) {
        self.log(format!("{kind} call {step}"));
        self.state().monitor.effect_began(step, repeatable);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn subject(bundle: &Bundle) -> String {
    let expect = bundle.expect.first().map(|expect| format!("{expect:?}")).unwrap_or_default();
    format!("{expect} key {:?}", bundle.key)
}
