//! Times that were taken, and their quantiles.

use std::time::{Duration, Instant};

#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    pub fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub fn since(&mut self, start: Instant) {
        self.push(start.elapsed());
    }

    pub fn extend(&mut self, other: Samples) {
        self.0.extend(other.0);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn p50(&self) -> Duration {
        self.quantile(50)
    }

    pub fn p99(&self) -> Duration {
        self.quantile(99)
    }

    /// How many of them fit into a second, one after the other.
    pub fn per_second(&self) -> f64 {
        let total: Duration = self.0.iter().sum();
        if total.is_zero() { 0.0 } else { self.0.len() as f64 / total.as_secs_f64() }
    }

    /// The smallest sample that at least so many per cent of all don't exceed.
    fn quantile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or_default()
    }
}

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples_that_enough_others_do_not_exceed() {
        let samples = Samples((1..=200).rev().map(Duration::from_millis).collect());
        assert_eq!(samples.p50(), Duration::from_millis(100));
        assert_eq!(samples.p99(), Duration::from_millis(198));
        assert_eq!(Samples(vec![Duration::from_millis(7)]).p99(), Duration::from_millis(7));
        assert_eq!(Samples::default().p50(), Duration::ZERO);
    }
}
