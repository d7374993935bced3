//! Counts what this server is accepting at this moment. A limit on what is accepted is held against rows that are there, and
//! what is under way has none yet: whoever comes while there may be too many waits until it is known what became of those
//! before. Nothing is kept of a scope in which nobody is on the way.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Mutex as Line, OwnedMutexGuard, watch};

/// A namespace, or one agent in it.
pub type Scope = (String, Option<String>);

/// As many parts of the room that is left are given away at once. Other servers see this one's only once they are
/// committed: so they can't be too many together, but for the very last.
const CAUTION: usize = 8;

#[derive(Default)]
pub struct Admissions {
    counts: Mutex<BTreeMap<Scope, Count>>,
    /// Told whenever one of those under way is there or given up.
    left: watch::Sender<()>,
}

#[derive(Default)]
struct Count {
    under_way: usize,
    /// Of those that were under way, how many are no more.
    over: u64,
    lookers: usize,
    line: Arc<Line<()>>,
}

/// Someone who is about to count the rows there are. What goes on from here on is counted beside them.
pub struct Look<'a> {
    admissions: &'a Admissions,
    /// With how many were over when the look began.
    scopes: Vec<(Scope, u64)>,
    left: watch::Receiver<()>,
    line: Arc<Line<()>>,
}

/// Whose turn it is to look again, of all who wait: else all would whenever one of those under way is over.
pub struct Turn<'a> {
    _turn: OwnedMutexGuard<()>,
    /// Keeps the line for those behind.
    _look: Look<'a>,
}

/// The leave to accept one; counted until it is dropped.
pub struct Seat<'a> {
    admissions: &'a Admissions,
    scopes: Vec<Scope>,
}

impl Admissions {
    pub fn look(&self, scopes: impl IntoIterator<Item = Scope>) -> Look<'_> {
        let left = self.left.subscribe();
        let (mut counts, mut line) = (self.lock(), None);
        let begin = |scope: Scope| {
            let count = counts.entry(scope.clone()).or_default();
            count.lookers += 1;
            line.get_or_insert_with(|| Arc::clone(&count.line));
            (scope, count.over)
        };
        let scopes = scopes.into_iter().map(begin).collect();
        Look { admissions: self, scopes, left, line: line.unwrap_or_default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Scope, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Look<'a> {
    /// A seat, if by the rows that were counted there was so much room in each of the scopes, and there still is.
    pub fn admit(&self, rooms: &[usize]) -> Option<Seat<'a>> {
        let mut counts = self.admissions.lock();
        let has_room = self.scopes.iter().zip(rooms).all(|((scope, over), room)| {
            let count = counts.get(scope);
            let (under_way, now_over) = count.map_or((0, *over), |count| (count.under_way, count.over));
            // Whether those that are over since are among the rows nobody knows.
            let since = usize::try_from(now_over - over).unwrap_or(usize::MAX);
            let free = room.saturating_sub(under_way).saturating_sub(since);
            free > 0 && under_way < (free / CAUTION).max(1)
        });
        has_room.then(|| {
            let scopes: Vec<Scope> = self.scopes.iter().map(|(scope, _)| scope.clone()).collect();
            scopes.iter().for_each(|scope| counts.entry(scope.clone()).or_default().under_way += 1);
            Seat { admissions: self.admissions, scopes }
        })
    }

    /// Waits in line with others who found no room.
    pub async fn turn(self) -> Turn<'a> {
        Turn { _turn: Arc::clone(&self.line).lock_owned().await, _look: self }
    }

    /// Until it is worth another look.
    pub async fn over(mut self) {
        // The sender lives as long as what was looked at.
        let _ = self.left.changed().await;
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let mut counts = self.admissions.lock();
        for (scope, _) in &self.scopes {
            leave(&mut counts, scope, |count| count.lookers -= 1);
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut counts = self.admissions.lock();
        for scope in &self.scopes {
            leave(&mut counts, scope, |count| {
                count.under_way -= 1;
                count.over += 1;
            });
        }
        drop(counts);
        self.admissions.left.send_replace(());
    }
}

fn leave(counts: &mut BTreeMap<Scope, Count>, scope: &Scope, change: impl FnOnce(&mut Count)) {
    let Some(count) = counts.get_mut(scope) else { return };
    change(count);
    if count.under_way == 0 && count.lookers == 0 {
        counts.remove(scope);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(agent: Option<&str>) -> Scope {
        ("default".to_owned(), agent.map(str::to_owned))
    }

    #[test]
    fn the_last_place_is_given_once() {
        let admissions = Admissions::default();
        let (one, other) = (admissions.look([of(None)]), admissions.look([of(None)]));
        let seat = one.admit(&[1]);
        assert!(seat.is_some() && other.admit(&[1]).is_none());
        drop(seat);
        assert!(other.admit(&[1]).is_none(), "it may not have been among the rows that were counted");
        assert!(admissions.look([of(None)]).admit(&[1]).is_some(), "counted anew");
    }

    #[test]
    fn far_from_the_limit_many_are_accepted_at_once() {
        let admissions = Admissions::default();
        let look = admissions.look([of(None)]);
        let seats: Vec<_> = (0..100).map_while(|_| look.admit(&[80])).collect();
        assert_eq!(seats.len(), 9, "an eighth of what would still be free");
    }

    #[test]
    fn each_scope_has_room_of_its_own() {
        let admissions = Admissions::default();
        let look = admissions.look([of(None), of(Some("helper"))]);
        assert!(look.admit(&[5, 0]).is_none());
        let _seat = look.admit(&[1, 5]).expect("room in both");
        assert!(admissions.look([of(None)]).admit(&[1]).is_none());
        assert!(admissions.look([of(Some("other"))]).admit(&[1]).is_some(), "another agent's");
    }

    #[test]
    fn nothing_is_kept_of_those_who_are_gone() {
        let admissions = Admissions::default();
        let look = admissions.look([of(None)]);
        let seat = look.admit(&[1]);
        drop(look);
        assert_eq!(admissions.lock().len(), 1, "the seat is taken");
        drop(seat);
        assert_eq!(admissions.lock().len(), 0);
    }
}
