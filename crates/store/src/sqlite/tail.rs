//! The end of the log, in memory: those who follow it live ask for what was committed a moment ago, and shall
//! not have it read and parsed again from the file for each of them.

use std::collections::VecDeque;

use ostler_kernel::{Event, TaskId};

use crate::{Answer, FirmLog, Query};

/// So many events it holds: some hundredths of a second of a busy store, and quickly searched.
const MOST: usize = 2048;

/// And about so many bytes of them.
const ROOM: usize = 4 << 20;

/// Every event from the first one in it to the last one committed; nothing is missing between.
#[derive(Default)]
pub struct Tail {
    events: VecDeque<Logged>,
    size: usize,
}

/// An event, and how much of the room it takes.
pub struct Logged {
    pub event: Event,
    pub size: usize,
}

impl Tail {
    /// Adds what a batch has committed.
    pub fn extend(&mut self, logged: Vec<Logged>) {
        for logged in logged {
            self.size += logged.size;
            self.events.push_back(logged);
        }
        while (self.size > ROOM || self.events.len() > MOST)
            && let Some(oldest) = self.events.pop_front()
        {
            self.size -= oldest.size;
        }
    }

    /// Nobody knows what was committed last, so nothing in here is the end of the log any more.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// If one of these tasks is in here, the rest would have gaps: all goes.
    pub fn without(&mut self, tasks: &[TaskId]) {
        if self.events.iter().any(|logged| tasks.contains(&logged.event.task)) {
            self.forget();
        }
    }

    /// The answer, if all of it is in here.
    pub fn answer(&self, query: &Query) -> Option<Answer> {
        match query {
            Query::Log { after, limit } => self.log(*after, *limit).map(Answer::Events),
            Query::FirmLog { after, limit } => {
                self.log(*after, *limit).map(|events| Answer::FirmLog(FirmLog::whole(events, *limit)))
            }
            Query::Events { task, after, limit } => {
                // Where the next one is in here, so are all that come behind it.
                let of_task = |logged: &&Logged| logged.event.task == *task;
                let mut found = Vec::new();
                for logged in self.events.iter().rev().filter(of_task) {
                    found.push(&logged.event);
                    if logged.event.seq == after.saturating_add(1) {
                        return Some(Answer::Events(found.into_iter().rev().take(*limit).cloned().collect()));
                    }
                }
                None
            }
            _ => None,
        }
    }

    fn log(&self, after: u64, limit: usize) -> Option<Vec<Event>> {
        let first = self.events.front()?.event.position;
        let start = usize::try_from(after.checked_sub(first - 1)?).ok()?;
        let found = self.events.range(start.min(self.events.len())..).take(limit);
        Some(found.map(|logged| logged.event.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use ostler_kernel::{EventBody, TaskId, Timestamp, event::ReadyReason};

    use super::*;

    fn logged(task: TaskId, seq: u64, position: u64, size: usize) -> Logged {
        let run = ostler_kernel::RunId::from_bytes([7; 16]);
        let body = EventBody::RunReady { run, reason: ReadyReason::SessionFree };
        Logged { event: Event { seq, position, task, at: Timestamp::from_millis(0), body }, size }
    }

    fn positions(answer: Option<Answer>) -> Option<Vec<u64>> {
        match answer? {
            Answer::Events(events) => Some(events.iter().map(|event| event.position).collect()),
            _ => None,
        }
    }

    #[test]
    fn answers_only_what_it_holds_all_of() {
        let (one, other) = (TaskId::from_bytes([1; 16]), TaskId::from_bytes([2; 16]));
        let mut tail = Tail::default();
        tail.extend(vec![logged(one, 3, 11, 1), logged(other, 1, 12, 1), logged(one, 4, 13, 1)]);
        let log = |after, limit| positions(tail.answer(&Query::Log { after, limit }));
        assert_eq!(log(9, 10), None, "what stands at 10 is not in here");
        assert_eq!(log(10, 2), Some(vec![11, 12]));
        assert_eq!(log(13, 10), Some(vec![]));
        assert_eq!(log(99, 10), Some(vec![]));
        let events = |task, after| positions(tail.answer(&Query::Events { task, after, limit: 10 }));
        assert_eq!(events(one, 1), None, "its second event is not in here");
        assert_eq!(events(one, 2), Some(vec![11, 13]));
        assert_eq!(events(other, 0), Some(vec![12]));
        assert_eq!(events(other, 1), None, "nothing tells that there is no more");
    }

    #[test]
    fn gives_up_its_oldest_where_room_is_short() {
        let task = TaskId::from_bytes([1; 16]);
        let mut tail = Tail::default();
        tail.extend(vec![logged(task, 1, 1, ROOM), logged(task, 2, 2, 1)]);
        assert_eq!(positions(tail.answer(&Query::Log { after: 0, limit: 9 })), None);
        assert_eq!(positions(tail.answer(&Query::Log { after: 1, limit: 9 })), Some(vec![2]));
        tail.extend((3..=2 * MOST as u64).map(|place| logged(task, place, place, 1)).collect());
        assert_eq!(tail.events.len(), MOST);
        tail.forget();
        assert_eq!(positions(tail.answer(&Query::Log { after: 4, limit: 9 })), None);
    }
}
