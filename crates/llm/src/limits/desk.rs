//! One endpoint's turns and breaker, shared by all calls of a process, and the waiting for a turn: woken by whoever is
//! done, by the clock when a minute has room again, and not otherwise. Dropping a wait, or a permit, gives it back.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use ostler_kernel::{Runtime, plan::ModelLimits, runtime::BoxFuture};

use super::{
    breaker::{Breaker, Change, Pass, Rules, Verdict},
    turns::{Ticket, Turn, Turns},
    window::Booking,
};

/// What a call waits for its turn unless its endpoint says otherwise. Longer than this nobody should hold a slot.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Desk(Mutex<State>);

#[derive(Default)]
struct State {
    turns: Turns,
    breaker: Breaker,
    wakers: BTreeMap<Ticket, Waker>,
    /// When a call last came or went.
    used_at: Duration,
}

/// Why a call can't be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// No turn came, or none can come in time: not for so long, if that is known.
    Busy {
        waited: Duration,
        for_: Option<Duration>,
    },
    CircuitOpen {
        for_: Duration,
    },
}

/// A call's leave to be made.
pub(super) struct Permit {
    desk: Arc<Desk>,
    runtime: Arc<dyn Runtime>,
    rules: Rules,
    booking: Booking,
    pass: Pass,
    is_over: bool,
}

impl Desk {
    /// Waits for a turn, in order, no longer than the limits say.
    pub(super) async fn enter(
        self: Arc<Self>,
        runtime: Arc<dyn Runtime>,
        limits: &ModelLimits,
        tokens: u64,
    ) -> Result<Permit, Refused> {
        let (rules, began) = (Rules::of(limits), runtime.monotonic());
        let first = {
            let mut state = self.lock();
            state.used_at = began;
            if let Some(for_) = state.breaker.closed_for(began, &rules) {
                return Err(Refused::CircuitOpen { for_ });
            }
            state.turns.begin(began, tokens, limits)
        };
        let booking = match first {
            Turn::Begin(booking) => booking,
            Turn::Wait { .. } => Waiting::new(&self, &runtime, limits, tokens).turn().await?,
        };
        // From here on the booking is given back by the permit, whatever becomes of the call.
        let mut permit =
            Permit { desk: Arc::clone(&self), runtime, rules, booking, pass: Pass::Plain, is_over: false };
        permit.pass = permit.ask_breaker()?;
        Ok(permit)
    }

    /// Nothing would be lost by forgetting it.
    pub(super) fn is_idle(&self, now: Duration) -> bool {
        let mut state = self.lock();
        state.breaker.is_untroubled() && state.turns.is_idle(now)
    }

    pub(super) fn used_at(&self) -> Duration {
        self.lock().used_at
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Wakes whoever is first in the line.
    fn call_next(&mut self) -> Option<Waker> {
        self.turns.first().and_then(|ticket| self.wakers.remove(&ticket))
    }
}

/// A place in the line, as long as it is held.
struct Waiting<'a> {
    desk: &'a Arc<Desk>,
    runtime: &'a Arc<dyn Runtime>,
    limits: &'a ModelLimits,
    tokens: u64,
    ticket: Ticket,
    began: Duration,
    timer: Option<(Duration, BoxFuture<'static, ()>)>,
}

impl<'a> Waiting<'a> {
    fn new(desk: &'a Arc<Desk>, runtime: &'a Arc<dyn Runtime>, limits: &'a ModelLimits, tokens: u64) -> Self {
        let ticket = desk.lock().turns.queue();
        Self { desk, runtime, limits, tokens, ticket, began: runtime.monotonic(), timer: None }
    }

    async fn turn(mut self) -> Result<Booking, Refused> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Booking, Refused>> {
        let max_wait = self.limits.max_wait_ms.map_or(MAX_WAIT, Duration::from_millis);
        let deadline = self.began.saturating_add(max_wait);
        loop {
            let now = self.runtime.monotonic();
            let until = match self.ask(now, context.waker()) {
                Turn::Begin(booking) => return Poll::Ready(Ok(booking)),
                Turn::Wait { until } => until,
            };
            // Who is sure to be too late is told now, and gives up its slot instead of sitting in it.
            if now >= deadline || until.is_some_and(|until| until > deadline) {
                let waited = now.saturating_sub(self.began);
                return Poll::Ready(Err(Refused::Busy { waited, for_: until.map(|until| until - now) }));
            }
            let next_look = until.unwrap_or(deadline);
            if self.timer.as_ref().is_none_or(|(at, _)| *at != next_look) {
                self.timer = Some((next_look, self.runtime.sleep(next_look.saturating_sub(now))));
            }
            let Some((_, sleep)) = &mut self.timer else { return Poll::Pending };
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.timer = None;
        }
    }

    fn ask(&self, now: Duration, waker: &Waker) -> Turn {
        let mut state = self.desk.lock();
        let turn = state.turns.ask(self.ticket, now, self.tokens, self.limits);
        if let Turn::Wait { .. } = turn {
            state.wakers.insert(self.ticket, waker.clone());
        }
        turn
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let next = {
            let mut state = self.desk.lock();
            state.turns.give_up(self.ticket);
            state.wakers.remove(&self.ticket);
            state.call_next()
        };
        next.into_iter().for_each(Waker::wake);
    }
}

impl Permit {
    fn ask_breaker(&self) -> Result<Pass, Refused> {
        let now = self.runtime.monotonic();
        let pass = self.desk.lock().breaker.pass(now, &self.rules);
        pass.map_err(|for_| Refused::CircuitOpen { for_ })
    }

    /// The call is over, and this became of it.
    pub(super) fn end(mut self, verdict: Verdict, tokens: Option<u64>) -> Option<Change> {
        self.give_back(verdict, tokens)
    }

    fn give_back(&mut self, verdict: Verdict, tokens: Option<u64>) -> Option<Change> {
        if std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        let now = self.runtime.monotonic();
        let (next, change) = {
            let mut state = self.desk.lock();
            state.used_at = now;
            state.turns.end(self.booking, tokens);
            let change = state.breaker.report(self.pass, verdict, now, &self.rules);
            (state.call_next(), change)
        };
        next.into_iter().for_each(Waker::wake);
        change
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back(Verdict::Unknown, None);
    }
}

#[cfg(test)]
mod tests;
