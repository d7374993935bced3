//! How much goes into one answer, and how many runs a worker can be handed at once where they are large. The latter is
//! only a guess, from what it was handed last: losing it costs that some are claimed and given back once more.

use std::{
    collections::BTreeMap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ostler_kernel::Lease;
use serde::Serialize;

/// So many bytes go into one answer, or a single thing that is larger: what comes first is soon there, and little is held
/// in memory twice.
pub const PORTION: usize = 16 << 20;

/// By worker.
#[derive(Default)]
pub struct Portions(Mutex<BTreeMap<String, Portion>>);

struct Portion {
    incarnation: u64,
    runs: usize,
}

impl Portions {
    /// How many of so many slots are worth filling by this claim: one more than fitted the last time, to find out when
    /// more fit again.
    pub fn slots(&self, lease: &Lease, slots: usize) -> usize {
        match self.lock().get(&lease.worker) {
            Some(last) if last.incarnation == lease.incarnation => slots.min(last.runs + 1),
            _ => slots,
        }
    }

    /// So many went into an answer, and others did not.
    pub fn handed_out(&self, lease: &Lease, runs: usize, is_cut: bool) {
        let mut known = self.lock();
        if is_cut {
            let incarnation = lease.incarnation;
            known.insert(lease.worker.clone(), Portion { incarnation, runs });
        } else if !known.is_empty() {
            known.remove(&lease.worker);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Portion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first of them, at least one.
pub fn portion<T: Serialize>(mut things: Vec<T>) -> Vec<T> {
    let mut size = 0;
    let fitting = things.iter().take_while(|thing| {
        size += n_bytes(thing);
        size <= PORTION
    });
    let fitting = fitting.count().max(1);
    things.truncate(fitting);
    things
}

/// How long it is as it is sent.
pub fn n_bytes(message: &impl Serialize) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // What can't be written is refused where it is sent.
    let _ = serde_json::to_writer(&mut count, message);
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_ends_where_it_is_full_and_is_never_empty() {
        let large = "x".repeat(PORTION / 3);
        assert_eq!(portion(vec![large.as_str(); 9]).len(), 2, "with its quotes three don't fit");
        assert_eq!(portion(vec!["x".repeat(PORTION); 2]).len(), 1);
        assert_eq!(portion(vec!["x"; 9]).len(), 9);
        assert_eq!(portion(Vec::<u8>::new()).len(), 0);
    }

    #[test]
    fn behind_an_answer_that_was_cut_fewer_are_claimed_until_all_fit_again() {
        let portions = Portions::default();
        let lease = |incarnation| Lease { worker: "w".into(), incarnation, claim: 1 };
        assert_eq!(portions.slots(&lease(1), 64), 64);
        portions.handed_out(&lease(1), 3, true);
        assert_eq!(portions.slots(&lease(1), 64), 4);
        assert_eq!(portions.slots(&lease(1), 2), 2, "it has no more room");
        assert_eq!(portions.slots(&lease(2), 64), 64, "it was started anew");
        portions.handed_out(&lease(1), 4, false);
        assert_eq!(portions.slots(&lease(1), 64), 64);
    }
}
