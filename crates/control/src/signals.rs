//! Hints for workers about runs they hold, kept until they are fetched.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ostler_kernel::{Run, Runtime, runtime::timeout};
use ostler_link::{Caller, Signal, SignalKind};
use tokio::sync::Notify;

/// More than this and a worker doesn't listen: its next renewal tells it what it lost.
const ROOM: usize = 4096;

#[derive(Default)]
pub struct Signals(Mutex<BTreeMap<Caller, Mailbox>>);

#[derive(Default, Clone)]
struct Mailbox {
    signals: Vec<Signal>,
    arrived: Arc<Notify>,
    /// Whether someone fetched since it was last looked at.
    is_used: bool,
}

impl Signals {
    /// Tells the run's holder, if it has one.
    pub fn send(&self, run: &Run, kind: SignalKind) {
        let Some(lease) = run.lease() else { return };
        let caller = Caller { worker: lease.worker.clone(), incarnation: lease.incarnation };
        let arrived = self.with(&caller, |mailbox| {
            if mailbox.signals.len() < ROOM {
                mailbox.signals.push(Signal { run: run.id, epoch: run.epoch, kind });
            }
            Arc::clone(&mailbox.arrived)
        });
        arrived.notify_one();
    }

    /// What there is, or what comes within the wait.
    pub async fn fetch(&self, runtime: &dyn Runtime, caller: &Caller, wait: Duration) -> Vec<Signal> {
        let arrived = self.with(caller, |mailbox| Arc::clone(&mailbox.arrived));
        loop {
            let signals = self.with(caller, |mailbox| {
                mailbox.is_used = true;
                std::mem::take(&mut mailbox.signals)
            });
            if !signals.is_empty() || timeout(runtime, wait, arrived.notified()).await.is_err() {
                return signals;
            }
        }
    }

    /// Nobody will fetch for former incarnations any more.
    pub fn forget_former(&self, caller: &Caller) {
        let mut mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mailboxes.retain(|other, _| other.worker != caller.worker || other.incarnation >= caller.incarnation);
    }

    /// Who has not fetched since the last time fetches from another server, or is gone.
    pub fn forget_unused(&self) {
        let mut mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mailboxes.retain(|_, mailbox| {
            let is_awaited = Arc::strong_count(&mailbox.arrived) > 1;
            std::mem::take(&mut mailbox.is_used) || is_awaited
        });
    }

    fn with<T>(&self, caller: &Caller, work: impl FnOnce(&mut Mailbox) -> T) -> T {
        let mut mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(mailboxes.entry(caller.clone()).or_default())
    }
}
