//! Whether the log has stopped in front of what is known to be committed, because somebody writes for long.

use std::time::Duration;

/// What is not shown within this time is looked for where it stands, and then again as often.
const FOR_LONG: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct HeldUp {
    /// The end of the log as it was when it began to be waited for, and since when.
    waiting: Option<(u64, Duration)>,
}

impl HeldUp {
    /// The log was read up to `position`, and it ends at `last`. Tells whether others should look for themselves.
    pub fn looked(&mut self, position: u64, last: u64, now: Duration) -> bool {
        let arrived = self.waiting.is_none_or(|(goal, _)| position >= goal);
        if arrived {
            self.waiting = (position < last).then_some((last, now));
        }
        let is_due = self.waiting.is_some_and(|(_, since)| since + FOR_LONG <= now);
        if let Some((_, since)) = self.waiting.as_mut().filter(|_| is_due) {
            *since = now;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn who_stops_for_long_is_told_so_each_second() {
        let mut log = HeldUp::default();
        let told = (0..=3_000).step_by(100).filter(|now| log.looked(5, 9, at(*now)));
        assert_eq!(told.collect::<Vec<u64>>(), [1_000, 2_000, 3_000]);
    }

    #[test]
    fn who_goes_on_is_left_alone_though_there_is_always_more() {
        let mut log = HeldUp::default();
        assert!((0..100).all(|step| !log.looked(step, step + 1, at(step * 100))));
    }

    #[test]
    fn who_is_at_the_end_is_left_alone() {
        let mut log = HeldUp::default();
        assert!((0..100).all(|step| !log.looked(9, 9, at(step * 100))));
        assert!(!log.looked(9, 10, at(60_000)), "it is a moment late");
    }
}
