//! Whether a delay is over. The calendar says so where it can be believed; where it can't, because this server's was set or
//! because of whoever dated the delay, the run is watched for as long as it is delayed by a clock that never jumps. So a
//! calendar that jumps can make a pause of seconds neither an hour nor nothing.

use std::{collections::BTreeMap, time::Duration};

use ostler_kernel::{Run, RunId, Timestamp};
use ostler_store::DuePlace;

/// How far calendars may be apart, or go wrong between two looks, and still be believed.
const SLACK: Duration = Duration::from_secs(2);

/// How often those are looked at that are due later. Whoever dated one of them wrongly may be gone.
pub(super) const LOOK_FURTHER_EVERY: Duration = Duration::from_secs(30);

/// As many are watched at once. Of those beyond, who is due is woken, and who is due later waits for another look.
const ROOM: usize = 10_000;

/// The two clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub calendar: Timestamp,
    pub monotonic: Duration,
}

#[derive(Default)]
pub(super) struct Delays {
    /// When the last look began that came to its end.
    looked_at: Option<Moment>,
    looked_further_at: Option<Duration>,
    /// Where the next look at those that are due later goes on, if the last did not come to their end.
    further: Option<DuePlace>,
    watched: BTreeMap<RunId, Watched>,
}

struct Watched {
    epoch: u64,
    /// By the clock that doesn't jump.
    over_at: Duration,
}

impl Delays {
    /// Whether the delay of a run that is due is over, as far as that can be believed: it came to its end since the last
    /// look. If it is said to be over for longer, nobody would have overlooked it.
    pub fn is_over(&mut self, run: &Run, now: Moment) -> bool {
        let (Some(at), Some(delay)) = (run.wake_at(), run.delay()) else { return true };
        let Some(looked_at) = self.looked_at else { return true };
        let away = now.monotonic.saturating_sub(looked_at.monotonic);
        now.calendar.since(at) <= away + SLACK || !self.watch(run, delay, now)
    }

    /// Looks at a run that is due later: if that is further away than its delay, it can't be.
    pub fn doubt(&mut self, run: &Run, now: Moment) {
        let (Some(at), Some(delay)) = (run.wake_at(), run.delay()) else { return };
        if at > now.calendar.after(delay).after(SLACK) {
            self.watch(run, delay, now);
        }
    }

    /// False if there is no room for another one.
    fn watch(&mut self, run: &Run, delay: Duration, now: Moment) -> bool {
        let known = self.watched.get(&run.id);
        if known.is_some_and(|watched| watched.epoch == run.epoch) {
            return true;
        }
        if known.is_none() && self.watched.len() >= ROOM {
            return false;
        }
        let over_at = now.monotonic.saturating_add(delay);
        self.watched.insert(run.id, Watched { epoch: run.epoch, over_at });
        true
    }

    /// Runs that were watched for long enough, each with its epoch at that time.
    pub fn waited(&self, now: Moment) -> Vec<(RunId, u64)> {
        let over = self.watched.iter().filter(|(_, watched)| watched.over_at <= now.monotonic);
        over.map(|(run, watched)| (*run, watched.epoch)).collect()
    }

    pub fn forget(&mut self, run: RunId) {
        self.watched.remove(&run);
    }

    /// How long until the next one was watched for long enough.
    pub fn next(&self, now: Moment) -> Option<Duration> {
        let next = self.watched.values().map(|watched| watched.over_at).min()?;
        Some(next.saturating_sub(now.monotonic))
    }

    /// By how many milliseconds the calendar was set since the last look, if it was.
    pub fn jump(&self, now: Moment) -> Option<i64> {
        let before = self.looked_at?;
        let passed = now.monotonic.saturating_sub(before.monotonic).as_millis();
        let by_calendar = now.calendar.as_millis().saturating_sub(before.calendar.as_millis());
        let jump = by_calendar.saturating_sub(i64::try_from(passed).unwrap_or(i64::MAX));
        (u128::from(jump.unsigned_abs()) > SLACK.as_millis()).then_some(jump)
    }

    /// Whether it is time to look at those that are due later.
    pub fn looks_further(&self, now: Moment) -> bool {
        let is_old = |at: Duration| now.monotonic.saturating_sub(at) >= LOOK_FURTHER_EVERY;
        self.looked_further_at.is_none_or(is_old) || self.jump(now).is_some()
    }

    pub fn further(&self, now: Moment) -> DuePlace {
        let first = DuePlace::behind(now.calendar);
        self.further.map_or(first, |further| further.max(first))
    }

    /// So far the look at those that are due later came; with none, to their end.
    pub fn looked_further(&mut self, upto: Option<DuePlace>, now: Moment) {
        (self.further, self.looked_further_at) = (upto, Some(now.monotonic));
    }

    /// Everything that was due then has been looked at.
    pub fn looked(&mut self, now: Moment) {
        self.looked_at = Some(now);
    }
}
