//! The one writer: a plain function over a connection and a batch, so that production can run it in a thread
//! of its own and the simulation can call it.

use std::{
    slice,
    sync::{Arc, Mutex},
};

use ostler_kernel::{
    Bundle, Refusal, Write,
    bundle::{Reason, Verdict},
};
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::{
    apply::{ApplyError, Effects, apply},
    claim::claim_runs,
    guard,
    judge::Judge,
    tail::Tail,
};
use crate::{
    Claim, Claimed, Committed, Hint, StoreError,
    body::Prepared,
    planted::{Bug, Planted},
    turns::Turns,
};

/// What one caller wants, and where it waits for the answer.
pub enum Job {
    Commit(Vec<Prepared>, oneshot::Sender<Result<Vec<Result<Committed, Refusal>>, StoreError>>),
    Claim(Claim, oneshot::Sender<Result<Vec<Claimed>, StoreError>>),
}

/// What the writer remembers between batches.
pub struct Memory {
    pub turns: Turns,
    pub hint: Hint,
    pub tail: Arc<Mutex<Tail>>,
    pub watchers: watch::Sender<Hint>,
    pub planted: Planted,
}

/// The connection can't be trusted any more: it must be closed and opened anew.
#[derive(Debug)]
pub struct Broken(pub String);

/// Writes a batch in one transaction, syncs it, and only then answers. If the transaction can't be brought
/// to its end, nobody knows what is on disk: everyone in the batch is told so.
pub fn write_batch(connection: &Connection, memory: &mut Memory, batch: Vec<Job>) -> Result<(), Broken> {
    let written = match Attempt::start(connection, memory, Care::Trusting).write(&batch) {
        Err(Failed::NeedsCare) if !memory.planted.is(Bug::RefusedBreaksBatch) => {
            // What was written so far was never committed, so a second try starts from the same rows.
            let undone = connection.execute_batch("ROLLBACK").map_err(Failed::Sqlite);
            undone.and_then(|()| Attempt::start(connection, memory, Care::Savepoints).write(&batch))
        }
        written => written,
    };
    match written {
        Ok(Written { outcomes, turns, effects: Effects { mut hint, logged, forgotten, .. } }) => {
            if memory.planted.is(Bug::ReadyUntold) {
                hint.ready = memory.hint.ready;
            }
            memory.turns = turns;
            memory.hint = hint;
            let mut tail = guard(&memory.tail);
            tail.extend(logged);
            tail.without(&forgotten);
            drop(tail);
            memory.watchers.send_if_modified(|last| std::mem::replace(last, hint) != hint);
            batch.into_iter().zip(outcomes).for_each(|(job, outcome)| job.answer(outcome));
            Ok(())
        }
        Err(failed) => {
            let message = failed.to_string();
            let error = StoreError::Unknown(message.clone());
            batch.into_iter().for_each(|job| job.fail(&error));
            Err(Broken(message))
        }
    }
}

/// How bundles are kept apart inside the batch's transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// Not at all: the judge has looked, and a constraint hardly ever has more to say. When it has, the
    /// batch is written again with more care.
    Trusting,
    /// Each in a savepoint, so that one can be undone alone. Copies every page a bundle is first to touch.
    Savepoints,
}

enum Outcome {
    Commit(Vec<Result<Committed, Refusal>>),
    Claim(Vec<Claimed>),
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("a constraint kept a row out")]
    NeedsCare,
}

/// One try at writing a batch: what it would leave in memory counts only once it is committed.
struct Attempt<'a> {
    connection: &'a Connection,
    care: Care,
    turns: Turns,
    effects: Effects,
    planted: Planted,
}

struct Written {
    outcomes: Vec<Outcome>,
    turns: Turns,
    effects: Effects,
}

impl<'a> Attempt<'a> {
    fn start(connection: &'a Connection, memory: &Memory, care: Care) -> Self {
        let effects = Effects { hint: memory.hint, ..Effects::default() };
        Self { connection, care, turns: memory.turns.clone(), effects, planted: memory.planted }
    }

    fn write(mut self, batch: &[Job]) -> Result<Written, Failed> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let outcomes = batch.iter().map(|job| self.job(job)).collect::<Result<_, _>>()?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(Written { outcomes, turns: self.turns, effects: self.effects })
    }

    fn job(&mut self, job: &Job) -> Result<Outcome, Failed> {
        match job {
            Job::Commit(bundles, _) => {
                let results = bundles.iter().map(|prepared| self.bundle(prepared));
                results.collect::<Result<_, _>>().map(Outcome::Commit)
            }
            Job::Claim(claim, _) => {
                let runs =
                    claim_runs(self.connection, claim, &mut self.turns, &mut self.effects, self.planted)?;
                Ok(Outcome::Claim(runs))
            }
        }
    }

    fn bundle(&mut self, prepared: &Prepared) -> Result<Result<Committed, Refusal>, Failed> {
        let Prepared { bundle, texts } = prepared;
        match self.planted.judge(bundle, &mut Judge(self.connection))? {
            Verdict::Refuse(refusal) => {
                self.leave_of_refused(prepared)?;
                return Ok(Err(refusal));
            }
            Verdict::Duplicate => {
                return Ok(Ok(Committed { position: self.effects.hint.position, duplicate: true }));
            }
            Verdict::Apply => {}
        }
        let applied = match self.care {
            Care::Trusting => apply(self.connection, &bundle.writes, texts, &mut self.effects),
            Care::Savepoints => self.apply_in_savepoint(prepared),
        };
        match applied {
            Ok(()) => Ok(Ok(Committed { position: self.effects.hint.position, duplicate: false })),
            Err(failed) if self.care == Care::Trusting && failed.clash.is_some() => Err(Failed::NeedsCare),
            Err(failed) => Ok(refused_by_constraint(self.connection, bundle, failed)?),
        }
    }

    /// Nothing, unless a bug is planted.
    fn leave_of_refused(&mut self, Prepared { bundle, texts }: &Prepared) -> Result<(), Failed> {
        let rows = bundle.writes.iter().zip(texts);
        for (write, text) in rows.filter(|_| self.planted.is(Bug::InputsConsumedApart)) {
            if let Write::Consume { .. } = write {
                let (writes, texts) = (slice::from_ref(write), slice::from_ref(text));
                apply(self.connection, writes, texts, &mut self.effects).map_err(rusqlite::Error::from)?;
            }
        }
        Ok(())
    }

    fn apply_in_savepoint(&mut self, Prepared { bundle, texts }: &Prepared) -> Result<(), ApplyError> {
        self.connection.execute_batch("SAVEPOINT bundle")?;
        let Effects { hint, logged, forgotten, ready } = &self.effects;
        let (hint, n_logged, n_forgotten, n_ready) = (*hint, logged.len(), forgotten.len(), ready.len());
        let applied = apply(self.connection, &bundle.writes, texts, &mut self.effects);
        if applied.is_err() {
            self.effects.hint = hint;
            self.effects.logged.truncate(n_logged);
            self.effects.forgotten.truncate(n_forgotten);
            self.effects.ready.truncate(n_ready);
            if self.connection.is_autocommit() {
                return applied;
            }
            if !self.planted.is(Bug::RefusedLeavesRows) {
                self.connection.execute_batch("ROLLBACK TO bundle")?;
            }
        }
        self.connection.execute_batch("RELEASE bundle")?;
        applied
    }
}

/// A row that a constraint kept out refuses its bundle alone. Anything else, and a transaction that SQLite
/// rolled back by itself (a full disk, an I/O error), fails the batch.
fn refused_by_constraint(
    connection: &Connection,
    bundle: &Bundle,
    failed: ApplyError,
) -> rusqlite::Result<Result<Committed, Refusal>> {
    match failed.clash {
        Some(clash) if !connection.is_autocommit() => {
            Ok(Err(Refusal { command: bundle.command, reason: Reason::Clash { clash } }))
        }
        _ => Err(failed.error),
    }
}

impl Job {
    /// Nobody waits any more? Then nobody needs to know.
    fn answer(self, outcome: Outcome) {
        match (self, outcome) {
            (Job::Commit(_, sender), Outcome::Commit(results)) => drop(sender.send(Ok(results))),
            (Job::Claim(_, sender), Outcome::Claim(runs)) => drop(sender.send(Ok(runs))),
            (job, _) => job.fail(&StoreError::Unknown("the answer belongs to another question".into())),
        }
    }

    pub fn fail(self, error: &StoreError) {
        match self {
            Job::Commit(_, sender) => drop(sender.send(Err(error.clone()))),
            Job::Claim(_, sender) => drop(sender.send(Err(error.clone()))),
        }
    }
}
