//! The runtime port: time, randomness and spawning. Two implementations: tokio's in `link`, and the
//! simulation's seeded executor in `testing`. Nothing in `control`, `worker` or `agent` reaches for a clock,
//! a random number or an executor by another way, or a seed would not reproduce what it did.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use crate::{Timestamp, ids::IdClock};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub trait Runtime: Send + Sync + 'static {
    /// Calendar time: for `until`, deadlines and display. It may jump.
    fn now(&self) -> Timestamp;

    /// Time since an arbitrary start of this process. It never jumps; leases are judged by it.
    fn monotonic(&self) -> Duration;

    fn random(&self) -> u64;

    /// What keeps ids in the order in which they were made: one for the whole process, but for the simulation, in which
    /// others must not be noticed.
    fn id_clock(&self) -> &IdClock {
        static OF_THE_PROCESS: IdClock = IdClock::new();
        &OF_THE_PROCESS
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()>;

    /// Runs `future` in the background. `name` says what it is in logs and traces.
    fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) -> Spawned;
}

/// A background activity; dropping the handle lets it go on.
#[must_use = "keep it to abort the activity, or call `detach`"]
pub struct Spawned {
    abort: Arc<dyn Fn() + Send + Sync>,
}

impl Spawned {
    pub fn new(abort: impl Fn() + Send + Sync + 'static) -> Self {
        Self { abort: Arc::new(abort) }
    }

    pub fn abort(&self) {
        (self.abort)();
    }

    pub fn detach(self) {}

    /// Aborts the activity when the returned guard goes away.
    pub fn abort_on_drop(self) -> AbortOnDrop {
        AbortOnDrop(self)
    }
}

impl fmt::Debug for Spawned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawned")
    }
}

#[derive(Debug)]
pub struct AbortOnDrop(Spawned);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("timed out")]
pub struct TimedOut;

/// Waits for `future` for at most `limit`. The future is looked at first, so a result that is there wins.
pub async fn timeout<T>(
    runtime: &dyn Runtime,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Result<T, TimedOut> {
    let mut future = pin!(future);
    let mut sleep = runtime.sleep(limit);
    poll_fn(|cx| {
        if let Poll::Ready(value) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(value));
        }
        sleep.as_mut().poll(cx).map(|()| Err(TimedOut))
    })
    .await
}
