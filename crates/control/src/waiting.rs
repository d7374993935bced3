//! Claims that wait for a run to become ready. Whoever makes one ready takes a waiting claim along, so that both
//! are written, and synced, together. Losing one costs time, not truth: the worker asks again.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
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
    /// Commits that make something ready, under way without a claim.
    unclaimed: AtomicUsize,
    silent: Mutex<BTreeSet<(String, u64)>>,
    emptied: Mutex<BTreeMap<String, Emptied>>,
}

/// A worker's claim that found nothing when it looked, and waited; what came then was given to it.
struct Emptied {
    lease: Lease,
    seen: Seen,
}

/// What was said about what may be claimed: as long as no more is said, there is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// By the store: its hint.
    pub ready: u64,
    /// By quotas: how often they have changed.
    pub quotas: u64,
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

/// A commit that no claim goes along with, until it is written.
pub struct Unclaimed<'a>(&'a AtomicUsize);

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
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

    /// The one that has waited longest. Who takes it makes the claim, and answers. Of a worker that asked again over another
    /// connection it is the last one: there may be nobody any more at the other end of those before it.
    pub fn take(&self) -> Option<WaitingClaim> {
        let mut claims = self.lock();
        let longest = claims.front()?.lease.worker.clone();
        let place = claims.iter().rposition(|claim| claim.lease.worker == longest)?;
        claims.remove(place)
    }

    /// Held by a commit that makes something ready and takes no claim along.
    pub fn unclaimed(&self) -> Unclaimed<'_> {
        self.unclaimed.fetch_add(1, Ordering::Relaxed);
        Unclaimed(&self.unclaimed)
    }

    /// Whether something is about to become ready that no claim goes along with.
    pub fn is_unclaimed(&self) -> bool {
        self.unclaimed.load(Ordering::Relaxed) > 0
    }

    /// These incarnations have not been heard of for long: they may be gone, and their claims with nobody to hear the
    /// answer. They are given nothing until they are heard of again.
    pub fn set_silent(&self, silent: BTreeSet<(String, u64)>) {
        let is_silent = |lease: &Lease| silent.contains(&(lease.worker.clone(), lease.incarnation));
        self.lock().retain(|claim| !is_silent(&claim.lease));
        self.emptied().retain(|_, emptied| !is_silent(&emptied.lease));
        *self.silent() = silent;
    }

    pub fn heard(&self, worker: &str, incarnation: u64) {
        self.silent().remove(&(worker.to_owned(), incarnation));
    }

    pub fn is_silent(&self, lease: &Lease) -> bool {
        let silent = self.silent();
        !silent.is_empty() && silent.contains(&(lease.worker.clone(), lease.incarnation))
    }

    /// This claim found nothing when the store had said `seen`, and was taken along since.
    pub fn set_emptied(&self, lease: Lease, seen: Seen) {
        self.emptied().insert(lease.worker.clone(), Emptied { lease, seen });
    }

    /// When there was nothing for this claim's worker, if the claim before it found that out. Told once: who has waited
    /// in vain looks by itself, which repairs a wake-up that was lost.
    pub fn take_emptied(&self, lease: &Lease) -> Option<Seen> {
        let Emptied { lease: last, seen } = self.emptied().remove(&lease.worker)?;
        (last.incarnation == lease.incarnation && last.claim < lease.claim).then_some(seen)
    }

    fn emptied(&self) -> MutexGuard<'_, BTreeMap<String, Emptied>> {
        self.emptied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn silent(&self) -> MutexGuard<'_, BTreeSet<(String, u64)>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use ostler_link::TokioRuntime;
    use tokio::runtime::Handle;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn lease(claim: u64) -> Lease {
        Lease { worker: "w".into(), incarnation: 1, claim }
    }

    fn runtime() -> TokioRuntime {
        TokioRuntime::new(Handle::current())
    }

    #[tokio::test]
    async fn who_waits_longest_is_taken_along_and_answered() {
        let waiting = Waiting::default();
        let other = Lease { worker: "other".into(), ..lease(2) };
        let (first, second) = (waiting.join(lease(1), 4), waiting.join(other, 4));
        let taken = waiting.take().expect("someone waits");
        assert_eq!((taken.lease, taken.slots), (lease(1), 4));
        taken.answer.send(Ok(Vec::new())).expect("it is awaited");
        let waited = first.wait(&runtime(), LONG, pending::<()>()).await;
        assert!(matches!(waited, Waited::Answered(Ok(claimed)) if claimed.is_empty()));
        drop(second);
        assert!(waiting.take().is_none(), "who is gone does not wait");
    }

    #[tokio::test]
    async fn of_a_worker_that_asks_again_the_last_one_is_taken_along() {
        let waiting = Waiting::default();
        let (dead, other) =
            (waiting.join(lease(1), 1), waiting.join(Lease { worker: "other".into(), ..lease(1) }, 1));
        let again = waiting.join(lease(1), 1);
        waiting.take().unwrap().answer.send(Ok(Vec::new())).unwrap();
        assert!(matches!(again.wait(&runtime(), LONG, pending::<()>()).await, Waited::Answered(_)));
        assert!(matches!(dead.wait(&runtime(), Duration::ZERO, pending::<()>()).await, Waited::TimeIsUp));
        assert_eq!(waiting.take().unwrap().lease.worker, "other");
        drop(other);
    }

    #[tokio::test]
    async fn an_answer_that_is_on_its_way_is_awaited_whatever_else_comes() {
        let waiting = Waiting::default();
        let (runtime, unavailable) = (runtime(), StoreError::Unavailable("closed".into()));
        for most in [LONG, Duration::ZERO] {
            let place = waiting.join(lease(1), 1);
            let taken = waiting.take().expect("someone waits");
            let (waited, sent) = tokio::join!(biased; place.wait(&runtime, most, ready(())), async {
                taken.answer.send(Err(unavailable.clone()))
            });
            assert!(sent.is_ok() && matches!(waited, Waited::Answered(Err(error)) if error == unavailable));
        }
    }

    #[tokio::test]
    async fn who_was_cut_off_with_a_claim_leaves_it_to_be_made_again() {
        let waiting = Waiting::default();
        let place = waiting.join(lease(1), 1);
        drop(waiting.take());
        assert!(matches!(place.wait(&runtime(), Duration::ZERO, pending::<()>()).await, Waited::Woken));
    }

    #[tokio::test]
    async fn who_is_silent_is_not_taken_along_until_it_is_heard_of() {
        let waiting = Waiting::default();
        let place = waiting.join(lease(1), 1);
        waiting.set_silent(BTreeSet::from([("w".into(), 1)]));
        assert!(waiting.take().is_none() && waiting.is_silent(&lease(1)));
        assert!(matches!(place.wait(&runtime(), LONG, pending::<()>()).await, Waited::Woken));
        waiting.heard("w", 1);
        assert!(!waiting.is_silent(&lease(2)));
    }

    #[test]
    fn only_the_claim_behind_one_that_waited_may_wait_at_once() {
        let waiting = Waiting::default();
        let seen = Seen { ready: 7, quotas: 0 };
        assert_eq!(waiting.take_emptied(&lease(1)), None);
        waiting.set_emptied(lease(1), seen);
        assert_eq!(waiting.take_emptied(&lease(1)), None, "sent again, it wants what it was given");
        waiting.set_emptied(lease(1), seen);
        assert_eq!(waiting.take_emptied(&lease(2)), Some(seen));
        assert_eq!(waiting.take_emptied(&lease(3)), None, "who has waited looks by itself");
        waiting.set_emptied(lease(3), seen);
        assert_eq!(waiting.take_emptied(&Lease { incarnation: 2, ..lease(4) }), None, "it may offer more");
    }

    #[tokio::test]
    async fn who_waits_no_longer_is_not_taken_along() {
        let waiting = Waiting::default();
        let place = waiting.join(lease(1), 1);
        assert!(matches!(place.wait(&runtime(), Duration::ZERO, pending::<()>()).await, Waited::TimeIsUp));
        let place = waiting.join(lease(2), 1);
        assert!(matches!(place.wait(&runtime(), LONG, ready(())).await, Waited::Woken));
        assert!(waiting.take().is_none());
    }
}
