//! When a failed run is tried again: capped exponential backoff with jitter. Waiting, lost workers and
//! capacity never come here.

use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// How many failures a run may have in all; 1 means no retry.
    pub max_attempts: u32,
    pub backoff_ms: u64,
    pub max_backoff_ms: u64,
    pub jitter: Jitter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    None,
    /// Anywhere between nothing and the whole delay.
    #[default]
    Full,
    /// Half the delay, and a random part of the other half.
    Equal,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 1, backoff_ms: 0, max_backoff_ms: 24 * 3600 * 1000, jitter: Jitter::Full }
    }
}

impl RetryPolicy {
    pub fn allows(&self, failures: u32) -> bool {
        failures < self.max_attempts
    }

    /// The delay after the `failures`-th failure. What the other side asked for is the least we wait.
    pub fn delay(&self, failures: u32, asked: Option<Duration>, random: u64) -> Duration {
        let doublings = failures.saturating_sub(1).min(32);
        let capped = self.backoff_ms.saturating_mul(1 << doublings).min(self.max_backoff_ms);
        let jittered = match self.jitter {
            Jitter::None => capped,
            Jitter::Full => share(capped, random),
            Jitter::Equal => capped / 2 + share(capped - capped / 2, random),
        };
        let least = if self.backoff_ms > 0 { 1 } else { 0 };
        Duration::from_millis(jittered.max(least)).max(asked.unwrap_or_default())
    }
}

/// A part of `whole`, as `random` is a part of all the numbers there are.
fn share(whole: u64, random: u64) -> u64 {
    ((u128::from(whole) * u128::from(random)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(jitter: Jitter) -> RetryPolicy {
        RetryPolicy { max_attempts: 5, backoff_ms: 100, max_backoff_ms: 1000, jitter }
    }

    #[test]
    fn doubles_up_to_the_cap() {
        let delays =
            [1, 2, 3, 4, 5, 60].map(|failures| policy(Jitter::None).delay(failures, None, 0).as_millis());
        assert_eq!(delays, [100, 200, 400, 800, 1000, 1000]);
    }

    #[test]
    fn jitter_stays_in_its_part() {
        for random in [0, u64::MAX / 2, u64::MAX] {
            let full = policy(Jitter::Full).delay(3, None, random).as_millis();
            let equal = policy(Jitter::Equal).delay(3, None, random).as_millis();
            assert!((1..=400).contains(&full), "full gave {full}");
            assert!((200..=400).contains(&equal), "equal gave {equal}");
        }
    }

    #[test]
    fn what_the_other_side_asked_for_is_the_least() {
        let asked = Some(Duration::from_secs(7));
        assert_eq!(policy(Jitter::None).delay(1, asked, 0), Duration::from_secs(7));
        assert_eq!(RetryPolicy::default().delay(1, None, 9), Duration::ZERO);
    }
}
