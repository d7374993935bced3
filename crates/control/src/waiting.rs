//! Claims that wait for a run to become ready. Whoever makes one ready takes a waiting claim along, so that both
//! are written, and synced, together. Losing one costs time, not truth: the worker asks again.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ostler_kernel::{Lease, Runtime, runtime::timeout};
use ostler_store::{Claimed, StoreError};
use tokio::sync::oneshot;

type Answer = Result<Vec<Claimed>, StoreError>;

#[derive(Default)]
pub struct Waiting {
    claims: Mutex<VecDeque<WaitingClaim>>,
    next_number: AtomicU64,
}

pub struct WaitingClaim {
    pub lease: Lease,
    pub slots: usize,
    pub answer: oneshot::Sender<Answer>,
    number: u64,
}

/// A claim's place among those who wait. Given up when it is dropped.
pub struct Place<'a> {
    waiting: &'a Waiting,
    number: u64,
    answer: oneshot::Receiver<Answer>,
}

/// How waiting ended.
pub enum Waited {
    /// Someone took the claim along; this is what the store said to it.
    Answered(Answer),
    /// There may be something to claim.
    Woken,
    TimeIsUp,
}

impl Waiting {
    pub fn join(&self, lease: Lease, slots: usize) -> Place<'_> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.lock().push_back(WaitingClaim { lease, slots, answer: sender, number });
        Place { waiting: self, number, answer }
    }

    /// The one that has waited longest. Who takes it makes the claim, and answers.
    pub fn take(&self) -> Option<WaitingClaim> {
        self.lock().pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<WaitingClaim>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// Waits until someone took the claim along, or until something `changed`, but no longer than it may.
    pub async fn wait(mut self, runtime: &dyn Runtime, most: Duration, changed: impl Future) -> Waited {
        let woken = timeout(runtime, most, async {
            tokio::select! {
                biased;
                answer = &mut self.answer => Some(answer),
                _ = changed => None,
            }
        });
        let taken = match woken.await {
            Ok(Some(taken)) => taken,
            Ok(None) if self.withdraw() => return Waited::Woken,
            Err(_) if self.withdraw() => return Waited::TimeIsUp,
            // Someone has taken it along just now, and will not be long.
            Ok(None) | Err(_) => (&mut self.answer).await,
        };
        // Whoever took it was cut off? Nobody knows what it was given, so it is to be made again.
        taken.map_or(Waited::Woken, Waited::Answered)
    }

    /// Whether it still waited.
    fn withdraw(&self) -> bool {
        let mut claims = self.waiting.lock();
        let place = claims.iter().position(|claim| claim.number == self.number);
        place.and_then(|place| claims.remove(place)).is_some()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.withdraw();
    }
}
