//! The timeouts of one call. One timer serves the whole call: it is set when something is first waited for,
//! and when it goes off too early for the wait at hand it is set again. A call that goes well sets it once.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ostler_kernel::{Runtime, runtime::BoxFuture};

use crate::outgoing;

/// What a call waited for in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// A connection.
    Connect,
    /// The head of the answer.
    FirstByte,
    /// The next piece of the answer.
    Idle,
    /// The end of the answer.
    Total,
}

pub(crate) struct Watchdog {
    runtime: Arc<dyn Runtime>,
    /// When the call began.
    start: Duration,
    total: Duration,
    timer: Option<Timer>,
}

struct Timer {
    at: Duration,
    sleep: BoxFuture<'static, ()>,
}

/// A wait that took too long.
#[derive(Debug)]
pub(crate) struct Late {
    pub(crate) waiting: Waiting,
    pub(crate) after: Duration,
}

impl Watchdog {
    pub(crate) fn new(runtime: Arc<dyn Runtime>, total: Duration) -> Self {
        let start = runtime.monotonic();
        Self { runtime, start, total, timer: None }
    }

    pub(crate) fn runtime(&self) -> &dyn Runtime {
        &*self.runtime
    }

    /// Waits for `future`, for as long as `limit` says; it is asked again at each look, since what is waited
    /// for may change meanwhile.
    pub(crate) async fn watch<T>(
        &mut self,
        limit: impl Fn() -> (Waiting, Duration),
        future: impl Future<Output = T>,
    ) -> Result<T, Late> {
        let mut future = pin!(future);
        let mut since = None;
        poll_fn(|cx| {
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                if let Some(since) = since {
                    outgoing::waited(self.runtime.monotonic().saturating_sub(since));
                }
                return Poll::Ready(Ok(value));
            }
            let since = *since.get_or_insert_with(|| self.runtime.monotonic());
            self.poll_late(cx, since, &limit).map(Err)
        })
        .await
    }

    fn poll_late(
        &mut self,
        cx: &mut Context<'_>,
        since: Duration,
        limit: &impl Fn() -> (Waiting, Duration),
    ) -> Poll<Late> {
        loop {
            let (waiting, after) = limit();
            let end = self.start.saturating_add(self.total);
            let (deadline, late) = match since.saturating_add(after) {
                deadline if deadline < end => (deadline, Late { waiting, after }),
                _ => (end, Late { waiting: Waiting::Total, after: self.total }),
            };
            let timer = self.timer_before(deadline);
            if timer.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.timer = None;
            if self.runtime.monotonic() >= deadline {
                return Poll::Ready(late);
            }
        }
    }

    /// The timer, if it goes off by `deadline`, or a new one that does.
    fn timer_before(&mut self, deadline: Duration) -> &mut Timer {
        let kept = self.timer.take().filter(|timer| timer.at <= deadline);
        let timer = kept.unwrap_or_else(|| {
            let delay = deadline.saturating_sub(self.runtime.monotonic());
            Timer { at: deadline, sleep: self.runtime.sleep(delay) }
        });
        self.timer.insert(timer)
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Waiting::Connect => "a connection",
            Waiting::FirstByte => "the beginning of the answer",
            Waiting::Idle => "the next piece of the answer",
            Waiting::Total => "the end of the answer",
        })
    }
}
