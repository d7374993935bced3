//! Who came and who was answered: the counts that outlive the program under test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// What happened under one request id, or in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Requests that arrived whole.
    pub received: u64,
    /// Answers handed over to their last byte, well-behaved or not; a cut one is not counted.
    pub answered: u64,
    /// Requests being answered now.
    pub inflight: u64,
}

/// Counts requests, in all and by id.
#[derive(Default)]
pub struct Desk {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    all: Tally,
    by_id: BTreeMap<Arc<str>, Tally>,
    /// Raised by a reset, so that an answer begun before it isn't counted after it.
    generation: u64,
}

/// One request on its way; dropping it without [`Ticket::answered`] says that the answer never got there.
pub struct Ticket {
    desk: Arc<Desk>,
    id: Option<Arc<str>>,
    generation: u64,
    answered: bool,
}

impl Desk {
    /// Counts an arrival; without an id only in the total.
    pub fn arrive(self: &Arc<Self>, id: Option<&str>) -> Ticket {
        let mut counts = self.counts();
        counts.all.arrive();
        let id = id.map(|id| counts.arrive_as(id));
        Ticket { desk: Arc::clone(self), id, generation: counts.generation, answered: false }
    }

    /// The total.
    pub fn all(&self) -> Tally {
        self.counts().all
    }

    /// The counts of one id.
    pub fn of(&self, id: &str) -> Tally {
        self.counts().by_id.get(id).copied().unwrap_or_default()
    }

    /// The ids whose counts satisfy `wanted`.
    pub fn by_id(&self, wanted: impl Fn(&Tally) -> bool) -> BTreeMap<Arc<str>, Tally> {
        let counts = self.counts();
        let matching = counts.by_id.iter().filter(|(_, tally)| wanted(tally));
        matching.map(|(id, tally)| (Arc::clone(id), *tally)).collect()
    }

    /// Forgets everything; answers under way are no longer counted.
    pub fn reset(&self) {
        let mut counts = self.counts();
        let generation = counts.generation + 1;
        *counts = Counts { generation, ..Counts::default() };
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn arrive_as(&mut self, id: &str) -> Arc<str> {
        if let Some((known, _)) = self.by_id.get_key_value(id) {
            let known = Arc::clone(known);
            if let Some(tally) = self.by_id.get_mut(id) {
                tally.arrive();
            }
            return known;
        }
        let id: Arc<str> = id.into();
        let tally = Tally { received: 1, answered: 0, inflight: 1 };
        self.by_id.insert(Arc::clone(&id), tally);
        id
    }
}

impl Tally {
    fn arrive(&mut self) {
        self.received += 1;
        self.inflight += 1;
    }

    fn leave(&mut self, answered: bool) {
        self.inflight -= 1;
        self.answered += u64::from(answered);
    }
}

impl Ticket {
    /// The answer was handed over whole.
    pub fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut counts = self.desk.counts();
        if counts.generation != self.generation {
            return;
        }
        counts.all.leave(self.answered);
        if let Some(tally) = self.id.as_ref().and_then(|id| counts.by_id.get_mut(id)) {
            tally.leave(self.answered);
        }
    }
}
