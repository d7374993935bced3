//! Wakes runs whose time has come and ends those whose deadline passed. Sleeps until the next one is due, or
//! until the store says that there is a new one. Deadlines are the calendar's; whether a delay is over is not decided by
//! it alone ([`delays`]).

mod delays;

use std::time::Duration;

use ostler_kernel::{
    Bundle, Run, RunId, Timestamp,
    run::{cancel, wake},
    runtime::timeout,
};
use ostler_store::{DuePlace, StoreError, StoreExt};

use self::delays::{Delays, LOOK_FURTHER_EVERY, Moment};
use crate::Control;

/// The longest sleep: a calendar that is set forward, or a lost hint, costs no more than this.
const SWEEP: Duration = LOOK_FURTHER_EVERY;

/// The shortest: someone else changed what was to be woken, and so it is looked at again.
const AT_ONCE: Duration = Duration::from_millis(1);

const PAGE: usize = 256;

/// Of those that are due later, so many pages are looked at in one go.
const PAGES_FURTHER: usize = 16;

const END_OF_TIME: Timestamp = Timestamp::from_millis(i64::MAX);

impl Control {
    pub(crate) async fn wake_due(&self) {
        let mut hints = self.store.watch();
        let mut delays = Delays::default();
        loop {
            let due = hints.borrow_and_update().due;
            let pause = match self.wake_once(&mut delays).await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(%error, "what is due could not be woken");
                    Duration::from_secs(1)
                }
            };
            let changed = hints.wait_for(|hint| hint.due != due);
            if let Ok(Err(_)) = timeout(&*self.runtime, pause, changed).await {
                return;
            }
        }
    }

    /// Wakes what is due, and says how long nothing will be.
    async fn wake_once(&self, delays: &mut Delays) -> Result<Duration, StoreError> {
        let now = Moment { calendar: self.runtime.now(), monotonic: self.runtime.monotonic() };
        if let Some(by_ms) = delays.jump(now) {
            tracing::warn!(by_ms, "the calendar was set; what it says is over, or isn't, is waited for");
        }
        let is_settled = self.wake_by_calendar(delays, now).await? & self.wake_waited(delays, now).await?;
        if delays.looks_further(now) {
            self.look_further(delays, now).await?;
        }
        delays.looked(now);
        if !is_settled {
            return Ok(AT_ONCE);
        }
        let next = self.store.due_behind(DuePlace::behind(now.calendar), END_OF_TIME, 1).await?;
        let next = next.first().and_then(DuePlace::of).map(|place| place.at.since(self.runtime.now()));
        let pauses = [next, delays.next(now)].into_iter().flatten();
        Ok(pauses.min().map_or(SWEEP, |pause| pause.clamp(AT_ONCE, SWEEP)))
    }

    /// Takes care of all that is due; false if someone else changed one of them meanwhile.
    async fn wake_by_calendar(&self, delays: &mut Delays, now: Moment) -> Result<bool, StoreError> {
        let (mut after, mut is_settled) = (DuePlace::FIRST, true);
        loop {
            let due = self.store.due_behind(after, now.calendar, PAGE).await?;
            for run in &due {
                is_settled &= self.wake_or_expire(run, delays, now).await?;
            }
            match due.last().and_then(DuePlace::of).filter(|_| due.len() == PAGE) {
                Some(last) => after = last,
                None => return Ok(is_settled),
            }
        }
    }

    async fn wake_or_expire(&self, run: &Run, delays: &mut Delays, now: Moment) -> Result<bool, StoreError> {
        let is_expired = |run: &Run| run.deadline.is_some_and(|deadline| deadline <= now.calendar);
        if !is_expired(run) && !delays.is_over(run, now) {
            return Ok(true);
        }
        delays.forget(run.id);
        let Some(view) = self.store.run_view(run.id).await? else { return Ok(true) };
        let is_expired = is_expired(&view.run);
        let bundle = match is_expired {
            true => cancel::expire(&view, now.calendar),
            false => wake::wake(&view, now.calendar),
        };
        // Not due any more: it is taken care of.
        let Ok(bundle) = bundle else { return Ok(true) };
        let is_done = self.commit(bundle).await?.is_ok();
        if is_done && is_expired {
            self.stopped(&view);
        }
        Ok(is_done)
    }

    /// Wakes those whose delay is over, whatever they were dated.
    async fn wake_waited(&self, delays: &mut Delays, now: Moment) -> Result<bool, StoreError> {
        let mut is_settled = true;
        for (run, epoch) in delays.waited(now) {
            if let Some(bundle) = self.waited(run, epoch, now).await? {
                tracing::info!(%run, "its delay is over, though the calendar says otherwise");
                is_settled &= self.commit(bundle).await?.is_ok();
            }
            delays.forget(run);
        }
        Ok(is_settled)
    }

    /// None if it is delayed no more, or delayed again.
    async fn waited(&self, run: RunId, epoch: u64, now: Moment) -> Result<Option<Bundle>, StoreError> {
        let view = self.store.run_view(run).await?;
        let same = view.filter(|view| view.run.epoch == epoch);
        Ok(same.and_then(|view| wake::wake_waited(&view, now.calendar).ok()))
    }

    /// Looks for those that were dated by a calendar that was wrong. Bounded: the next look goes on where this one ends.
    async fn look_further(&self, delays: &mut Delays, now: Moment) -> Result<(), StoreError> {
        for _ in 0..PAGES_FURTHER {
            let page = self.store.due_behind(delays.further(now), END_OF_TIME, PAGE).await?;
            page.iter().for_each(|run| delays.doubt(run, now));
            let last = page.last().and_then(DuePlace::of).filter(|_| page.len() == PAGE);
            delays.looked_further(last, now);
            if last.is_none() {
                break;
            }
        }
        Ok(())
    }
}
