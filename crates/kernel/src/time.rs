//! Calendar time, in milliseconds. It serves for `until`, deadlines and display; who is alive is never
//! decided by it.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    pub fn before(self, delay: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX)))
    }

    pub fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long from `earlier` to here; nothing if the calendar went backwards.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).max(0).cast_unsigned())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_rfc_3339() {
        assert_eq!(Timestamp::from_millis(1_700_000_000_042).to_string(), "2023-11-14T22:13:20.042Z");
        assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), format!("{}ms", i64::MAX));
    }

    #[test]
    fn a_calendar_set_back_gives_no_negative_span() {
        let now = Timestamp::from_millis(5);
        assert_eq!(now.since(Timestamp::from_millis(9)), Duration::ZERO);
        assert_eq!(now.after(Duration::MAX), Timestamp::from_millis(i64::MAX));
    }
}
