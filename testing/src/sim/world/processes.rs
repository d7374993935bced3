//! The processes of the world: how they start, die, stand still and stop.

use std::{sync::Arc, time::Duration};

use ostler_control::{Control, ControlConfig, secrets::KeyRing};
use ostler_kernel::{Runtime, runtime::timeout};
use ostler_link::WorkerPort;
use ostler_store::SqliteStore;
use ostler_worker::{Equipment, KeptSecrets, Offer, WorkerConfig, start};

use super::{LEASE, SERVER, Server, World};
use crate::sim::{
    bug::Bug,
    effects::{SimGateway, SimRunner, SimToolbox},
    executor::{Node, NodeRuntime},
    link::SimLink,
    store::SimStore,
};

impl World {
    pub fn boot_server(self: &Arc<Self>) {
        let calendar_only = self.bug == Some(Bug::LeaseByCalendar);
        self.executor.boot(SERVER, calendar_only);
        let runtime: Arc<dyn Runtime> = NodeRuntime::new(&self.executor, SERVER);
        let sqlite = match SqliteStore::open_inline(&self.path) {
            Ok(sqlite) => Arc::new(sqlite),
            Err(error) => return self.violate(format!("the store does not open: {error}")),
        };
        let store = Arc::new(SimStore::new(Arc::clone(&sqlite), Arc::clone(self), Arc::clone(&runtime)));
        let keys = KeyRing::parse(&"05".repeat(32)).ok();
        let config = ControlConfig { lease: LEASE, keys, ..ControlConfig::default() };
        let control = Control::new(store, runtime, config);
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
        let port: Arc<dyn WorkerPort> = Arc::new(SimLink::new(Arc::clone(self), node, Arc::clone(&runtime)));
        let secrets = KeptSecrets::new(Arc::clone(&port), Arc::clone(&runtime));
        let equipment = Equipment {
            port,
            gateway: Arc::new(SimGateway { world: Arc::clone(self), runtime: Arc::clone(&runtime) }),
            toolbox: Arc::new(SimToolbox { world: Arc::clone(self), runtime: Arc::clone(&runtime), secrets }),
            runner: Arc::new(SimRunner),
            runtime,
            telemetry: Default::default(),
        };
        let slots = self.draw(|rng| rng.between(1, 4)) as u32;
        let handle = start(WorkerConfig { name: name.to_owned(), offer: Offer::of_slots(slots) }, equipment);
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
}
