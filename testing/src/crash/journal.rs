//! What the log says after each kill, beside what the servers saw.
//!
//! A look reads the events that were committed since the look before, straight from the store while no server has it
//! open, and notes for each step in which life it was opened and in which it finished. Two
//! rules follow:
//!
//! - A step that crossed k kills between being opened and being finished was called at most k + 1 times: once
//!   in each life.
//! - How often a step had been called when the look first found it finished is how often it has been called
//!   at the very end: whatever a later life does, a finished step isn't done again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use ostler_kernel::{EventBody, RunId, StepId, event::StepFinished};
use ostler_store::{PostgresStore, StoreExt};
use rusqlite::{Connection, OpenFlags};

use super::Ground;

pub(super) struct Journal {
    store: Source,
    ground: Arc<Ground>,
    /// The last event that was read.
    position: u64,
    /// Kills so far.
    life: u32,
    open: BTreeMap<StepId, Open>,
    finished: BTreeMap<StepId, Finished>,
    /// Runs that were claimed in this life and have finished nothing since, with the step they go on at.
    claimed: BTreeMap<RunId, u32>,
    violations: Vec<String>,
}

/// Where the log is read.
pub(super) enum Source {
    /// A file, opened for each look.
    File(PathBuf),
    Postgres(Box<PostgresStore>),
}

/// A step under way, with its calls as the look before knew them.
struct Open {
    since_life: u32,
    received: u64,
    answered: u64,
}

pub(super) struct Finished {
    /// It was open when a kill struck.
    pub interrupted: bool,
    /// How often it had been called by then.
    pub received: u64,
}

/// What was in flight when the server died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Runs that were claimed and whose next call had not reached anybody.
    pub n_not_begun: u64,
    /// Steps that were answered in this life and not finished in the log.
    pub n_answered_not_finished: u64,
}

impl Journal {
    pub fn open(store: Source, ground: Arc<Ground>) -> Self {
        Self {
            store,
            ground,
            position: 0,
            life: 0,
            open: BTreeMap::new(),
            finished: BTreeMap::new(),
            claimed: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    /// Reads what one life left behind.
    pub async fn look(&mut self) -> anyhow::Result<Seen> {
        for event in self.new_events().await? {
            self.take(event);
        }
        let seen = self.in_flight();
        for (step, open) in &mut self.open {
            (open.received, open.answered) = self.ground.calls(&step.to_string());
        }
        self.claimed.clear();
        self.life += 1;
        Ok(seen)
    }

    pub fn finished(&self) -> &BTreeMap<StepId, Finished> {
        &self.finished
    }

    /// Steps that were called too often or finished twice, as seen so far.
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    async fn new_events(&mut self) -> anyhow::Result<Vec<EventBody>> {
        let events = match &self.store {
            Source::File(path) => tokio::task::block_in_place(|| events_in(path, self.position))?,
            Source::Postgres(store) => {
                let events = store.log(self.position, usize::MAX).await?;
                events.into_iter().map(|event| (event.position, event.body)).collect()
            }
        };
        self.position = events.last().map_or(self.position, |(position, _)| *position);
        Ok(events.into_iter().map(|(_, body)| body).collect())
    }

    fn take(&mut self, event: EventBody) {
        match event {
            EventBody::AttemptStarted { run, attempt, step, .. } => {
                self.claimed.insert(run, step);
                if attempt == 1 {
                    self.begin(StepId { run, index: step });
                }
            }
            EventBody::StepFinished(finished) => self.finish(&finished),
            EventBody::AttemptEnded { run, .. } => {
                self.claimed.remove(&run);
            }
            EventBody::TaskAccepted { .. }
            | EventBody::RunRetrying { .. }
            | EventBody::RunWaiting { .. }
            | EventBody::RunSleeping { .. }
            | EventBody::RunReady { .. }
            | EventBody::InputAccepted { .. }
            | EventBody::TaskEnded { .. } => {}
        }
    }

    fn begin(&mut self, step: StepId) {
        self.open.insert(step, Open { since_life: self.life, received: 0, answered: 0 });
    }

    fn finish(&mut self, event: &StepFinished) {
        self.claimed.remove(&event.run);
        let step = StepId { run: event.run, index: event.step };
        match self.open.remove(&step) {
            Some(open) => {
                let (received, _) = self.ground.calls(&step.to_string());
                let n_kills = self.life - open.since_life;
                if received > u64::from(n_kills) + 1 {
                    let violation = format!("step {step} was called {received} times across {n_kills} kills");
                    self.violations.push(violation);
                }
                self.finished.insert(step, Finished { interrupted: n_kills > 0, received });
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

/// Opened to read only, and without taking the write-ahead log in: the next start finds the file as the kill left it.
fn events_in(store: &Path, after: u64) -> anyhow::Result<Vec<(u64, EventBody)>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(store, flags)?;
    let mut statement =
        connection.prepare("SELECT position, body FROM events WHERE position > ?1 ORDER BY position")?;
    let mut rows = statement.query([after])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let body: String = row.get(1)?;
        let event = serde_json::from_str(&body).with_context(|| format!("unknown event {body}"))?;
        events.push((row.get(0)?, event));
    }
    Ok(events)
}
