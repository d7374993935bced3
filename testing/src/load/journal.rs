//! What the log says, beside what the servers saw.
//!
//! A look reads the events that were committed since the look before, straight from the store, and notes for each
//! step how many attempts had it open. Two rules follow:
//!
//! - A step that k attempts had open was called at most k times: once by each.
//! - How often a step had been called when the look first found it finished is how often it has been called at the
//!   very end: whatever a later attempt does, a finished step isn't done again. (A worker that is paused between the
//!   look at its lease and the call makes that call when it goes on: nobody can prevent it. It is counted, and only
//!   tests that pause workers allow it.)

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ostler_kernel::{Event, EventBody, RunId, StepId, StepOutcome, TaskId, Timestamp, event::StepFinished};
use ostler_store::{PostgresStore, StoreExt};
use rusqlite::{Connection, OpenFlags};

use super::Ground;
use super::attempts::Attempts;
use crate::sim::monitor::Monitor;

pub struct Journal {
    store: Source,
    ground: Arc<Ground>,
    /// The last event that was read.
    position: u64,
    open: BTreeMap<StepId, Open>,
    finished: BTreeMap<StepId, Finished>,
    /// Runs that were claimed since the look before and have finished nothing since, with the step they go on at.
    claimed: BTreeMap<RunId, u32>,
    attempts: Attempts,
    /// The simulation's, for what a log alone can show.
    monitor: Monitor,
    violations: Vec<String>,
    /// Events that bear a time far from ours.
    n_off: u64,
}

/// A clock that is so far off was put there.
const FAR_OFF: jiff::SignedDuration = jiff::SignedDuration::from_mins(30);

/// Where the log is read.
pub enum Source {
    /// A file, opened for each look.
    File(PathBuf),
    Postgres(Box<PostgresStore>),
}

/// A step under way, with its calls as the look before knew them.
struct Open {
    attempts: u64,
    received: u64,
    answered: u64,
}

pub struct Finished {
    /// More than one attempt had it open.
    pub interrupted: bool,
    /// How often it had been called by then.
    pub received: u64,
    /// How often it may be called in all.
    pub attempts: u64,
    /// It was closed when its run was cancelled; its worker may have been about to make the call.
    pub is_cut_off: bool,
}

/// What was in flight at the time of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Runs that were claimed and whose next call had not reached anybody.
    pub n_not_begun: u64,
    /// Steps that were answered since the look before and not finished in the log.
    pub n_answered_not_finished: u64,
}

impl Journal {
    pub fn open(store: Source, ground: Arc<Ground>) -> Self {
        Self {
            store,
            ground,
            position: 0,
            open: BTreeMap::new(),
            finished: BTreeMap::new(),
            claimed: BTreeMap::new(),
            attempts: Attempts::default(),
            monitor: Monitor::new(Duration::ZERO),
            violations: Vec::new(),
            n_off: 0,
        }
    }

    /// Reads what was committed since the look before.
    pub async fn look(&mut self) -> anyhow::Result<Seen> {
        for event in self.new_events().await? {
            self.monitor.logged(&event);
            self.n_off += u64::from(is_far_off(event.at));
            let problem = self.attempts.follow(&event);
            self.violations.extend(problem);
            self.take(event.body);
        }
        let seen = self.in_flight();
        for (step, open) in &mut self.open {
            (open.received, open.answered) = self.ground.calls(&step.to_string());
        }
        self.claimed.clear();
        Ok(seen)
    }

    pub fn finished(&self) -> &BTreeMap<StepId, Finished> {
        &self.finished
    }

    /// Events that were written by someone whose clock was off.
    pub fn n_off(&self) -> u64 {
        self.n_off
    }

    /// The store behind it, if it is one that others may read too.
    pub fn store(&self) -> Option<&PostgresStore> {
        match &self.store {
            Source::File(_) => None,
            Source::Postgres(store) => Some(store),
        }
    }

    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// Steps that were called too often or finished twice, and whatever else the log shows, as seen so far.
    pub fn violations(&self) -> impl Iterator<Item = &String> {
        self.violations.iter().chain(self.monitor.violations())
    }

    async fn new_events(&mut self) -> anyhow::Result<Vec<Event>> {
        let events = match &self.store {
            Source::File(path) => tokio::task::block_in_place(|| events_in(path, self.position))?,
            Source::Postgres(store) => store.log(self.position, usize::MAX).await?,
        };
        self.position = events.last().map_or(self.position, |event| event.position);
        Ok(events)
    }

    fn take(&mut self, event: EventBody) {
        match event {
            EventBody::AttemptStarted { run, attempt, step, .. } => {
                self.claimed.insert(run, step);
                if attempt == 1 {
                    self.begin(StepId { run, index: step });
                } else {
                    let steps = StepId { run, index: 0 }..=StepId { run, index: u32::MAX };
                    self.open.range_mut(steps).for_each(|(_, open)| open.attempts += 1);
                }
            }
            EventBody::StepFinished(finished) => self.finish(&finished),
            EventBody::AttemptEnded { run, .. } | EventBody::RunEnded { run, .. } => {
                self.claimed.remove(&run);
            }
            EventBody::TaskAccepted { .. }
            | EventBody::MessageSent { .. }
            | EventBody::RunRetrying { .. }
            | EventBody::RunWaiting { .. }
            | EventBody::RunSleeping { .. }
            | EventBody::RunReady { .. }
            | EventBody::ResourceChanged(_)
            | EventBody::Unknown(_)
            | EventBody::InputAccepted { .. }
            | EventBody::TaskEnded { .. } => {}
        }
    }

    fn begin(&mut self, step: StepId) {
        self.open.insert(step, Open { attempts: 1, received: 0, answered: 0 });
    }

    fn finish(&mut self, event: &StepFinished) {
        self.claimed.remove(&event.run);
        let step = StepId { run: event.run, index: event.step };
        match self.open.remove(&step) {
            Some(Open { attempts, .. }) => {
                let (received, _) = self.ground.calls(&step.to_string());
                let is_cut_off = event.outcome == StepOutcome::Interrupted;
                let finished = Finished { interrupted: attempts > 1, received, attempts, is_cut_off };
                self.finished.insert(step, finished);
            }
            None => self.violations.push(format!("step {step} finished without being open")),
        }
        for opened in &event.opened {
            self.begin(StepId { run: event.run, index: opened.step });
        }
    }

    fn in_flight(&self) -> Seen {
        let calls = |step: &StepId| self.ground.calls(&step.to_string());
        let not_begun = self.claimed.iter().filter(|(run, index)| {
            let step = StepId { run: **run, index: **index };
            self.open.get(&step).is_some_and(|open| calls(&step).0 == open.received)
        });
        let answered = self.open.iter().filter(|(step, open)| calls(step).1 > open.answered);
        Seen { n_not_begun: not_begun.count() as u64, n_answered_not_finished: answered.count() as u64 }
    }
}

fn is_far_off(at: Timestamp) -> bool {
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default();
    jiff::Timestamp::now().duration_since(at).abs() > FAR_OFF
}

/// Opened to read only, and without taking the write-ahead log in: the next start finds the file as the kill left it.
fn events_in(store: &Path, after: u64) -> anyhow::Result<Vec<Event>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(store, flags)?;
    let sql = "SELECT position, task, seq, at, body FROM events WHERE position > ?1 ORDER BY position";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([after])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let body: String = row.get(4)?;
        events.push(Event {
            position: row.get(0)?,
            task: TaskId::from_bytes(row.get(1)?),
            seq: row.get(2)?,
            at: Timestamp::from_millis(row.get(3)?),
            body: serde_json::from_str(&body).with_context(|| format!("unknown event {body}"))?,
        });
    }
    Ok(events)
}
