//! The runs that an incarnation holds.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use ostler_kernel::{RunId, runtime::Spawned};
use tokio::sync::watch;

use crate::run_port::RunPort;

pub struct Held {
    runs: Mutex<BTreeMap<RunId, HeldRun>>,
    count: watch::Sender<usize>,
    /// The last claim that was made.
    sent: AtomicU64,
    /// The last claim whose runs are all in here.
    claimed: AtomicU64,
    lease: Mutex<LeaseClock>,
}

/// By this worker's own clock.
#[derive(Default)]
struct LeaseClock {
    /// What was told when it registered, which every server knows of; and what is kept to, which is never longer.
    registered: Duration,
    lease: Duration,
    renewed_at: Duration,
    counter: u64,
}

pub struct HeldRun {
    pub port: Arc<RunPort>,
    pub spawned: Option<Spawned>,
}

impl Held {
    /// For one who asked at `sent_at` to be registered, and was told of such a lease.
    pub fn new(sent_at: Duration, lease: Duration) -> Self {
        let clock = LeaseClock { registered: lease, lease, renewed_at: sent_at, counter: 0 };
        Self {
            runs: Mutex::default(),
            count: watch::channel(0).0,
            sent: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
            lease: Mutex::new(clock),
        }
    }

    /// A run may be given again before its former attempt is known to be over: that one stops here.
    pub fn insert(&self, id: RunId, port: Arc<RunPort>) {
        let former = self.lock().insert(id, HeldRun { port, spawned: None });
        if let Some(former) = former {
            former.abort();
        }
        self.recount();
    }

    /// The run's activity has begun. It may be over already.
    pub fn started(&self, id: RunId, epoch: u64, spawned: Spawned) {
        if let Some(run) = self.lock().get_mut(&id).filter(|run| run.port.epoch() == epoch) {
            run.spawned = Some(spawned);
        }
    }

    pub fn remove(&self, id: RunId, epoch: u64) {
        drop(self.take(id, epoch));
    }

    /// Stops working on a run that is no longer ours.
    pub fn abort(&self, id: RunId, epoch: u64) {
        if let Some(run) = self.take(id, epoch) {
            run.abort();
        }
    }

    /// Takes the run out, unless it was given again since.
    fn take(&self, id: RunId, epoch: u64) -> Option<HeldRun> {
        let run = {
            let mut runs = self.lock();
            let is_meant = runs.get(&id).is_some_and(|run| run.port.epoch() <= epoch);
            if is_meant { runs.remove(&id) } else { None }
        };
        self.recount();
        run
    }

    fn recount(&self) {
        let held = self.lock().len();
        self.count.send_replace(held);
    }

    pub fn abort_all(&self) {
        self.take_all().iter().for_each(HeldRun::abort);
    }

    fn take_all(&self) -> Vec<HeldRun> {
        let runs = std::mem::take(&mut *self.lock());
        self.count.send_replace(0);
        runs.into_values().collect()
    }

    /// Cuts all of them off, and lets others go on with them. Until that is known of one, it is held: the lease is kept
    /// meanwhile.
    pub async fn give_all_back(&self) {
        let ports: Vec<_> = {
            let runs = self.lock();
            runs.values().for_each(HeldRun::abort);
            runs.iter().map(|(id, run)| (*id, Arc::clone(&run.port))).collect()
        };
        let giving = ports.into_iter().map(|(id, port)| async move {
            port.give_back().await;
            self.remove(id, port.epoch());
        });
        join_all(giving).await;
    }

    pub fn input_came(&self, id: RunId) {
        if let Some(run) = self.lock().get(&id) {
            run.port.input_came();
        }
    }

    pub fn len(&self) -> usize {
        *self.count.borrow()
    }

    pub async fn wait_until_below(&self, slots: usize) {
        let mut count = self.count.subscribe();
        // The sender lives in self, so it can't be gone.
        let _ = count.wait_for(|held| *held < slots).await;
    }

    pub async fn wait_until_empty(&self) {
        self.wait_until_below(1).await;
    }

    /// A renewal sent at `sent_at` was answered; a newer server says of what length leases are by now. Where they have become
    /// longer, the former length is kept to: another server may not know yet.
    pub fn renewed(&self, sent_at: Duration, told: Option<Duration>) {
        let mut clock = self.clock();
        clock.renewed_at = sent_at;
        clock.lease = told.map_or(clock.lease, |told| told.min(clock.registered));
    }

    /// How long the lease is that is kept to.
    pub fn lease(&self) -> Duration {
        self.clock().lease
    }

    /// Until when the lease stands.
    pub fn until(&self) -> Duration {
        let clock = self.clock();
        clock.renewed_at + clock.lease
    }

    pub fn lease_stands(&self, now: Duration) -> bool {
        now < self.until()
    }

    /// The counter for the next renewal.
    pub fn next_counter(&self) -> u64 {
        let mut clock = self.clock();
        clock.counter += 1;
        clock.counter
    }

    fn clock(&self) -> MutexGuard<'_, LeaseClock> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn send_claim(&self, number: u64) {
        self.sent.store(number, Ordering::SeqCst);
    }

    pub fn claim_sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    pub fn claim_answered(&self, number: u64) {
        self.claimed.store(number, Ordering::SeqCst);
    }

    /// The last claim answered, and then the runs held: in this order, so that no run of that claim is missed.
    pub fn claimed_and_held(&self) -> (u64, Vec<(RunId, u64)>) {
        let claimed = self.claimed.load(Ordering::SeqCst);
        (claimed, self.lock().iter().map(|(id, run)| (*id, run.port.epoch())).collect())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, HeldRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldRun {
    fn abort(&self) {
        if let Some(spawned) = &self.spawned {
            spawned.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_becomes_shorter_when_that_is_told_and_never_longer_than_it_was_registered() {
        let seconds = Duration::from_secs;
        let held = Held::new(seconds(100), seconds(30));
        assert!(held.lease_stands(seconds(129)) && !held.lease_stands(seconds(130)));
        let told = |lease: Option<u64>| {
            held.renewed(seconds(200), lease.map(seconds));
            (held.lease(), held.until())
        };
        assert_eq!(told(Some(5)), (seconds(5), seconds(205)));
        assert_eq!(told(None), (seconds(5), seconds(205)), "a server of the version before says nothing");
        assert_eq!(told(Some(10)), (seconds(10), seconds(210)));
        assert_eq!(told(Some(60)), (seconds(30), seconds(230)), "no other server knows of that");
    }
}
