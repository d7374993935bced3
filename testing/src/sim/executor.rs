//! A seeded executor with a clock of its own: which of the activities that could go on does is drawn, and
//! when none can, time jumps to the next timer. Activities belong to a node, which can be killed or paused.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use ostler_kernel::{
    Runtime, Timestamp,
    ids::IdClock,
    runtime::{BoxFuture, Spawned},
};

use super::rng::Rng;

/// A process that can die by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node(pub u32);

/// The simulation itself and the network: never killed.
pub const WORLD: Node = Node(0);

/// When the simulated calendar begins.
const EPOCH: i64 = 1_800_000_000_000;

pub struct Executor {
    core: Mutex<Core>,
    woken: Arc<Mutex<BTreeSet<u64>>>,
}

struct Core {
    now: Duration,
    rng: Rng,
    activities: BTreeMap<u64, Activity>,
    next_activity: u64,
    timers: BTreeMap<(Duration, u64), Waker>,
    next_timer: u64,
    nodes: BTreeMap<Node, NodeState>,
    polls: u64,
}

struct Activity {
    node: Node,
    /// Taken out while it is polled.
    future: Option<BoxFuture<'static, ()>>,
}

#[derive(Default, Clone)]
struct NodeState {
    paused: bool,
    booted_at: Duration,
    calendar_offset: i64,
    /// Planted bug: its monotonic clock follows the calendar.
    calendar_only: bool,
    /// Planted bug: it takes so much time for passed that did not pass.
    believed: Duration,
}

struct Wakeup {
    id: u64,
    woken: Arc<Mutex<BTreeSet<u64>>>,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        lock(&self.woken).insert(self.id);
    }
}

impl Executor {
    pub fn new(seed: u64) -> Arc<Self> {
        let core = Core {
            now: Duration::from_secs(1000),
            rng: Rng::new(seed),
            activities: BTreeMap::new(),
            next_activity: 0,
            timers: BTreeMap::new(),
            next_timer: 0,
            nodes: BTreeMap::new(),
            polls: 0,
        };
        Arc::new(Self { core: Mutex::new(core), woken: Arc::default() })
    }

    /// Polls one activity, or moves time on. False if nothing can ever happen again.
    pub fn step(&self) -> bool {
        let Some(id) = self.choose() else { return self.advance() };
        let Some((future, waker)) = self.take(id) else { return true };
        let mut future = future;
        let done = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        // Dropped outside the lock: what a future lets go of may reach for the executor.
        let dropped = if done { Some(future) } else { self.put_back(id, future) };
        if done {
            self.core().activities.remove(&id);
        }
        drop(dropped);
        true
    }

    fn choose(&self) -> Option<u64> {
        let mut core = self.core();
        let mut woken = lock(&self.woken);
        woken.retain(|id| core.activities.contains_key(id));
        let runnable: Vec<u64> = woken.iter().copied().filter(|id| core.is_runnable(*id)).collect();
        if runnable.is_empty() {
            return None;
        }
        let chosen = runnable[core.rng.below(runnable.len() as u64) as usize];
        woken.remove(&chosen);
        Some(chosen)
    }

    fn take(&self, id: u64) -> Option<(BoxFuture<'static, ()>, Waker)> {
        let mut core = self.core();
        core.polls += 1;
        let future = core.activities.get_mut(&id)?.future.take()?;
        Some((future, Arc::new(Wakeup { id, woken: Arc::clone(&self.woken) }).into()))
    }

    /// The future, if its node was killed while it was polled.
    fn put_back(&self, id: u64, future: BoxFuture<'static, ()>) -> Option<BoxFuture<'static, ()>> {
        match self.core().activities.get_mut(&id) {
            Some(activity) => {
                activity.future = Some(future);
                None
            }
            None => Some(future),
        }
    }

    fn advance(&self) -> bool {
        let mut core = self.core();
        let Some((&key, _)) = core.timers.first_key_value() else { return false };
        core.now = core.now.max(key.0);
        let waker = core.timers.remove(&key);
        drop(core);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    pub fn now(&self) -> Duration {
        self.core().now
    }

    pub fn polls(&self) -> u64 {
        self.core().polls
    }

    /// Draws from the seed.
    pub fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.core().rng)
    }

    /// Kills a node: nothing of it runs any more.
    pub fn kill(&self, node: Node) {
        let killed: Vec<Activity> = {
            let mut core = self.core();
            let ids: Vec<u64> = core
                .activities
                .iter()
                .filter(|(_, activity)| activity.node == node)
                .map(|(id, _)| *id)
                .collect();
            ids.iter().filter_map(|id| core.activities.remove(id)).collect()
        };
        drop(killed);
    }

    pub fn kill_all(&self) {
        let killed = std::mem::take(&mut self.core().activities);
        drop(killed);
    }

    /// A node starts: its clock begins at zero.
    pub fn boot(&self, node: Node, calendar_only: bool) {
        let mut core = self.core();
        let now = core.now;
        let state = core.nodes.entry(node).or_default();
        *state = NodeState {
            paused: false,
            booted_at: now,
            calendar_offset: state.calendar_offset,
            calendar_only,
            believed: Duration::ZERO,
        };
    }

    pub fn pause(&self, node: Node, paused: bool) {
        self.core().nodes.entry(node).or_default().paused = paused;
    }

    /// Sets a node's calendar off by so many milliseconds.
    pub fn set_calendar(&self, node: Node, offset: i64) {
        self.core().nodes.entry(node).or_default().calendar_offset = offset;
    }

    pub fn believe(&self, node: Node, passed: Duration) {
        self.core().nodes.entry(node).or_default().believed = passed;
    }

    fn spawn(self: &Arc<Self>, node: Node, future: BoxFuture<'static, ()>) -> u64 {
        let mut core = self.core();
        let id = core.next_activity;
        core.next_activity += 1;
        core.activities.insert(id, Activity { node, future: Some(future) });
        lock(&self.woken).insert(id);
        id
    }

    fn abort(&self, id: u64) {
        let aborted = self.core().activities.remove(&id);
        drop(aborted);
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }
}

impl Core {
    fn is_runnable(&self, id: u64) -> bool {
        self.activities
            .get(&id)
            .is_some_and(|activity| !self.nodes.get(&activity.node).is_some_and(|node| node.paused))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runtime port as one node sees it.
pub struct NodeRuntime {
    executor: Weak<Executor>,
    node: Node,
    ids: IdClock,
}

impl NodeRuntime {
    pub fn new(executor: &Arc<Executor>, node: Node) -> Arc<Self> {
        Arc::new(Self { executor: Arc::downgrade(executor), node, ids: IdClock::new() })
    }

    fn executor(&self) -> Arc<Executor> {
        self.executor.upgrade().expect("the executor outlives its nodes")
    }
}

impl Runtime for NodeRuntime {
    fn now(&self) -> Timestamp {
        let executor = self.executor();
        let core = executor.core();
        let offset = core.nodes.get(&self.node).map_or(0, |node| node.calendar_offset);
        Timestamp::from_millis(EPOCH + core.now.as_millis() as i64 + offset)
    }

    fn monotonic(&self) -> Duration {
        let executor = self.executor();
        let core = executor.core();
        let state = core.nodes.get(&self.node).cloned().unwrap_or_default();
        let since_boot = core.now.saturating_sub(state.booted_at);
        if !state.calendar_only {
            return since_boot + state.believed;
        }
        // Far enough from zero that a calendar set back stays positive.
        let day = 24 * 3600 * 1000;
        Duration::from_millis((since_boot.as_millis() as i64 + day + state.calendar_offset).max(0) as u64)
    }

    fn random(&self) -> u64 {
        self.executor().draw(Rng::next)
    }

    fn id_clock(&self) -> &IdClock {
        &self.ids
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        let executor = self.executor();
        let until = executor.now() + delay;
        Box::pin(Sleep { executor: Arc::downgrade(&executor), until, key: None })
    }

    fn spawn(&self, _name: &'static str, future: BoxFuture<'static, ()>) -> Spawned {
        let executor = self.executor();
        let id = executor.spawn(self.node, future);
        let executor = Weak::clone(&self.executor);
        Spawned::new(move || {
            if let Some(executor) = executor.upgrade() {
                executor.abort(id);
            }
        })
    }
}

struct Sleep {
    executor: Weak<Executor>,
    until: Duration,
    key: Option<(Duration, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(executor) = self.executor.upgrade() else { return Poll::Pending };
        let mut core = executor.core();
        if core.now >= self.until {
            return Poll::Ready(());
        }
        let key = self.key.unwrap_or_else(|| {
            core.next_timer += 1;
            (self.until, core.next_timer)
        });
        core.timers.insert(key, cx.waker().clone());
        drop(core);
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let (Some(key), Some(executor)) = (self.key, self.executor.upgrade()) {
            let waker = executor.core().timers.remove(&key);
            drop(waker);
        }
    }
}
