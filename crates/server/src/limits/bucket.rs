//! Buckets that fill by themselves: each request takes a drop, and who finds none is told when there will be one.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub per_second: f64,
    /// So many in a row.
    pub burst: f64,
}

impl Rate {
    pub fn of(per_second: u32) -> Self {
        let per_second = f64::from(per_second.max(1));
        Self { per_second, burst: per_second * 2.0 }
    }
}

#[derive(Debug)]
pub struct Bucket {
    drops: f64,
    at: Duration,
}

impl Bucket {
    pub fn full(rate: Rate) -> Self {
        Self { drops: rate.burst, at: Duration::ZERO }
    }

    /// Takes a drop, or says how long it takes until there is one.
    pub fn take(&mut self, rate: Rate, now: Duration) -> Result<(), Duration> {
        self.fill(rate, now);
        if self.drops < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.drops) / rate.per_second));
        }
        self.drops -= 1.0;
        Ok(())
    }

    fn fill(&mut self, rate: Rate, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.drops = (self.drops + passed * rate.per_second).min(rate.burst);
        self.at = self.at.max(now);
    }
}

/// One for each of those who ask.
pub struct Buckets<K> {
    rate: Rate,
    each: Mutex<BTreeMap<K, Bucket>>,
}

/// Past it, those that are full are forgotten, which changes nothing for whom they are. If that is not enough all are: an
/// attack from so many sides is not held off by counting each.
const ROOM: usize = 16_384;

impl<K: Ord> Buckets<K> {
    pub fn new(rate: Rate) -> Self {
        Self { rate, each: Mutex::default() }
    }

    pub fn take(&self, key: K, now: Duration) -> Result<(), Duration> {
        let mut each = lock(&self.each);
        if each.len() >= ROOM && !each.contains_key(&key) {
            self.forget(&mut each, now);
        }
        each.entry(key).or_insert_with(|| Bucket::full(self.rate)).take(self.rate, now)
    }

    /// What was taken is not to count.
    pub fn give_back(&self, key: K) {
        if let Some(bucket) = lock(&self.each).get_mut(&key) {
            bucket.drops = (bucket.drops + 1.0).min(self.rate.burst);
        }
    }

    fn forget(&self, each: &mut BTreeMap<K, Bucket>, now: Duration) {
        each.retain(|_, bucket| {
            bucket.fill(self.rate, now);
            bucket.drops < self.rate.burst
        });
        if each.len() >= ROOM {
            each.clear();
        }
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 2.0, burst: 3.0 };

    #[test]
    fn who_asks_too_often_is_told_how_long_to_wait() {
        let buckets = Buckets::new(RATE);
        let at = Duration::from_millis;
        for _ in 0..3 {
            assert_eq!(buckets.take("a", at(10)), Ok(()));
        }
        assert_eq!(buckets.take("a", at(10)), Err(at(500)));
        assert_eq!(buckets.take("b", at(10)), Ok(()), "others are not held up");
        assert_eq!(buckets.take("a", at(260)), Err(at(250)));
        assert_eq!(buckets.take("a", at(510)), Ok(()));
        assert!(buckets.take("a", at(510)).is_err());
        buckets.give_back("a");
        assert_eq!(buckets.take("a", at(510)), Ok(()));
        for _ in 0..3 {
            assert_eq!(buckets.take("a", at(1_000_000)), Ok(()));
        }
        assert!(buckets.take("a", at(1_000_000)).is_err(), "no more than the burst is saved up");
    }

    #[test]
    fn there_are_never_too_many_buckets() {
        let buckets = Buckets::new(RATE);
        for key in 0..ROOM * 2 {
            assert!(buckets.take(key, Duration::from_secs(1)).is_ok());
            assert!(lock(&buckets.each).len() <= ROOM);
        }
    }
}
