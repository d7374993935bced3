//! The world that a seed plays in: one server, a few workers, a network, and what goes wrong with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use ostler_control::{Background, Control, ControlConfig};
use ostler_kernel::{Bundle, Command, Refusal, Runtime, runtime::timeout};
use ostler_link::{Caller, JournalRequest, LeaveRequest, LinkError, Request, Response, WorkerPort};
use ostler_store::{Claimed, Committed, SqliteStore, StoreExt, TaskFilter};
use ostler_worker::{Equipment, WorkerConfig, WorkerHandle, start};
use tokio::sync::{oneshot, watch};

use super::{
    bug::{Bug, Condition},
    effects::{SimGateway, SimRunner, SimToolbox},
    executor::{Executor, Node, NodeRuntime, WORLD},
    hold::{Holds, Row},
    link::SimLink,
    monitor::Monitor,
    rng::Rng,
    store::{Instant, SimStore},
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

    // Processes.

    pub fn boot_server(self: &Arc<Self>) {
        let calendar_only = self.bug == Some(Bug::LeaseByCalendar);
        self.executor.boot(SERVER, calendar_only);
        let runtime: Arc<dyn Runtime> = NodeRuntime::new(&self.executor, SERVER);
        let sqlite = match SqliteStore::open_inline(&self.path) {
            Ok(sqlite) => Arc::new(sqlite),
            Err(error) => return self.violate(format!("the store does not open: {error}")),
        };
        let store = Arc::new(SimStore::new(Arc::clone(&sqlite), Arc::clone(self), Arc::clone(&runtime)));
        let control = Control::new(store, runtime, ControlConfig { lease: LEASE });
        let background = control.start();
        self.state().server = Some(Server { control, sqlite, _background: background });
        self.log("the server is up");
        if self.bug == Some(Bug::JudgeDoesNotWait) {
            let (world, clock) = (Arc::clone(self), self.network());
            let believe = async move {
                clock.sleep(Duration::from_millis(20)).await;
                world.executor.believe(SERVER, LEASE);
            };
            self.network().spawn("believe", Box::pin(believe)).detach();
        }
    }

    /// Kills the server where it stands; it comes back a little later.
    pub fn crash_server(self: &Arc<Self>) {
        let server = self.state().server.take();
        if server.is_none() {
            return;
        }
        self.executor.kill(SERVER);
        drop(server);
        let (world, clock) = (Arc::clone(self), self.network());
        let pause = Duration::from_millis(self.draw(|rng| rng.between(1, 1500)));
        let restart = async move {
            clock.sleep(pause).await;
            world.boot_server();
        };
        self.network().spawn("restart", Box::pin(restart)).detach();
    }

    pub fn boot_worker(self: &Arc<Self>, name: &str) -> Node {
        self.retire(name);
        self.boot_twin(name)
    }

    /// Starts a worker whatever else has its name.
    pub fn boot_twin(self: &Arc<Self>, name: &str) -> Node {
        let node = {
            let mut state = self.state();
            state.next_node += 1;
            Node(state.next_node)
        };
        self.executor.boot(node, false);
        let runtime: Arc<dyn Runtime> = NodeRuntime::new(&self.executor, node);
        let equipment = Equipment {
            port: Arc::new(SimLink::new(Arc::clone(self), node, Arc::clone(&runtime))),
            gateway: Arc::new(SimGateway { world: Arc::clone(self), runtime: Arc::clone(&runtime) }),
            toolbox: Arc::new(SimToolbox { world: Arc::clone(self), runtime: Arc::clone(&runtime) }),
            runner: Arc::new(SimRunner),
            runtime,
        };
        let slots = self.draw(|rng| rng.between(1, 4)) as usize;
        let handle = start(WorkerConfig { name: name.to_owned(), slots }, equipment);
        self.state().workers.insert(node, (name.to_owned(), handle));
        self.log(format!("worker {name} is up"));
        node
    }

    /// Whoever starts a worker under a name knows the one before to be dead or stuck. Stuck ones wake only
    /// after their lease.
    fn retire(self: &Arc<Self>, name: &str) {
        let until = self.executor.now() + LEASE + Duration::from_millis(1);
        for (node, other) in self.workers() {
            if other == name {
                self.state().stuck.insert(node, until);
                self.stand_still(node, LEASE);
            }
        }
    }

    /// Stops a worker where it stands, and lets it go on later.
    pub fn stand_still(self: &Arc<Self>, node: Node, span: Duration) {
        self.executor.pause(node, true);
        let (world, clock) = (Arc::clone(self), self.network());
        let wake = async move {
            clock.sleep(span).await;
            loop {
                let stuck = world.state().stuck.get(&node).copied().unwrap_or_default();
                let left = stuck.saturating_sub(world.executor.now());
                if left.is_zero() {
                    return world.executor.pause(node, false);
                }
                clock.sleep(left).await;
            }
        };
        self.network().spawn("wake", Box::pin(wake)).detach();
    }

    pub fn workers(&self) -> Vec<(Node, String)> {
        self.state().workers.iter().map(|(node, (name, _))| (*node, name.clone())).collect()
    }

    pub fn kill_worker(&self, node: Node) {
        let handle = self.state().workers.remove(&node);
        self.executor.kill(node);
        self.executor.pause(node, false);
        drop(handle);
    }

    /// Asks a worker to stop, as at the end of its machine's day; another starts when it has.
    pub fn stop_worker(self: &Arc<Self>, node: Node) {
        let Some((name, handle)) = self.state().workers.remove(&node) else { return };
        let (world, clock) = (Arc::clone(self), self.network());
        let stop = async move {
            let stopped = timeout(&*clock, Duration::from_secs(20), handle.stop()).await;
            world.log(format!("worker {name} stopped: {stopped:?}"));
            world.executor.kill(node);
            if !world.is_calm() {
                world.boot_worker(&name);
            }
        };
        self.network().spawn("stop", Box::pin(stop)).detach();
    }

    pub fn cut(&self, node: Node, cut: bool) {
        let mut state = self.state();
        if cut {
            state.cut.insert(node)
        } else {
            state.cut.remove(&node)
        };
    }

    pub fn slow_down(&self, node: Node, slow: bool) {
        let mut state = self.state();
        if slow {
            state.slow.insert(node)
        } else {
            state.slow.remove(&node)
        };
    }

    /// The longest that a message of this node takes, in milliseconds.
    pub fn slowness(&self, node: Node) -> u64 {
        if self.state().slow.contains(&node) { 2 * LEASE.as_millis() as u64 } else { 8 }
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

    // The network.

    pub fn deliver(self: &Arc<Self>, from: Node, text: String, answer: Option<oneshot::Sender<String>>) {
        let Some(control) = self.control() else { return };
        let Ok(mut request) = serde_json::from_str::<Request>(&text) else {
            return self.violate(format!("a message can't be read back: {text}"));
        };
        self.pass_for_holder(&mut request);
        let world = Arc::clone(self);
        let serve = async move {
            let response: Result<Response, LinkError> = control.call(request).await;
            let Some(answer) = answer else { return };
            if world.loses_message(from) {
                return;
            }
            let text = serde_json::to_string(&response).unwrap_or_default();
            let clock = world.network();
            let slowness = world.slowness(from);
            let delay = Duration::from_millis(world.draw(|rng| rng.between(0, slowness)));
            let carry = async move {
                clock.sleep(delay).await;
                let _ = answer.send(text);
            };
            world.network().spawn("answer", Box::pin(carry)).detach();
        };
        NodeRuntime::new(&self.executor, SERVER).spawn("call", Box::pin(serve)).detach();
    }

    /// Where the epoch is not looked at, it is not looked at who asks either.
    fn pass_for_holder(&self, request: &mut Request) {
        use ostler_kernel::Command::{Finish, Journal, Yield};
        let (caller, run) = match (self.bug, request) {
            (
                Some(Bug::JournalWithoutEpoch | Bug::Unchecked(Journal, Condition::Run)),
                Request::Journal(JournalRequest { caller, key, .. }),
            )
            | (
                Some(Bug::FinishWithoutEpoch | Bug::Unchecked(Finish | Yield, Condition::Run)),
                Request::Leave(LeaveRequest { caller, key, .. }),
            ) => (caller, key.run),
            _ => return,
        };
        let sqlite = self.state().server.as_ref().map(|server| Arc::clone(&server.sqlite));
        let run = sqlite.and_then(|sqlite| sqlite.run(run).now_or_never()).and_then(Result::ok).flatten();
        if let Some(lease) = run.as_ref().and_then(|run| run.lease()) {
            *caller = Caller { worker: lease.worker.clone(), incarnation: lease.incarnation };
        }
    }

    /// Asks the server something, as a client; none if it died before it answered.
    pub async fn ask<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(Arc<Control>) -> F,
    ) -> Option<T> {
        let control = self.control()?;
        let (sender, receiver) = oneshot::channel();
        let asked = question(control);
        let serve = async move {
            let _ = sender.send(asked.await);
        };
        NodeRuntime::new(&self.executor, SERVER).spawn("request", Box::pin(serve)).detach();
        receiver.await.ok()
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
            Err(refusal) => self.log(format!("{refusal}")),
        }
    }

    fn count_conditions(&self, bundle: &Bundle, result: &Result<Committed, Refusal>) {
        let refusals = &mut self.state().refusals;
        for expect in &bundle.expect {
            let refused = matches!(result, Err(refusal) if refusal.expect == *expect);
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
