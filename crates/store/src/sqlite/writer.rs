//! The one writer: a plain function over a connection and a batch, so that production can run it in a thread
//! of its own and the simulation can call it.

use std::collections::BTreeMap;

use ostler_kernel::{Bundle, Refusal, bundle::Verdict};
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::{apply::apply, claim::claim_runs, judge::Judge};
use crate::{Claim, Claimed, Committed, Hint, StoreError};

/// What one caller wants, and where it waits for the answer.
pub enum Job {
    Commit(Vec<Bundle>, oneshot::Sender<Result<Vec<Result<Committed, Refusal>>, StoreError>>),
    Claim(Claim, oneshot::Sender<Result<Vec<Claimed>, StoreError>>),
}

enum Reply {
    Commit(
        Vec<Result<Committed, Refusal>>,
        oneshot::Sender<Result<Vec<Result<Committed, Refusal>>, StoreError>>,
    ),
    Claim(Vec<Claimed>, oneshot::Sender<Result<Vec<Claimed>, StoreError>>),
}

/// What the writer remembers between batches.
pub struct Memory {
    pub served: BTreeMap<String, u64>,
    pub hint: Hint,
    pub watchers: watch::Sender<Hint>,
}

/// The connection can't be trusted any more: it must be closed and opened anew.
#[derive(Debug)]
pub struct Broken(pub String);

/// Writes a batch in one transaction, syncs it, and only then answers. If the transaction can't be brought
/// to its end, nobody knows what is on disk: everyone in the batch is told so.
pub fn write_batch(connection: &mut Connection, memory: &mut Memory, batch: Vec<Job>) -> Result<(), Broken> {
    let mut hint = memory.hint;
    let mut senders = Vec::with_capacity(batch.len());
    match run_batch(connection, &mut memory.served, &mut hint, batch, &mut senders) {
        Ok(()) => {
            memory.hint = hint;
            senders.into_iter().for_each(Reply::send);
            memory.watchers.send_if_modified(|last| std::mem::replace(last, hint) != hint);
            Ok(())
        }
        Err((error, unanswered)) => {
            let message = error.to_string();
            let error = StoreError::Unknown(message.clone());
            senders.into_iter().for_each(|reply| reply.fail(&error));
            unanswered.into_iter().for_each(|job| job.fail(&error));
            Err(Broken(message))
        }
    }
}

fn run_batch(
    connection: &mut Connection,
    served: &mut BTreeMap<String, u64>,
    hint: &mut Hint,
    batch: Vec<Job>,
    replies: &mut Vec<Reply>,
) -> Result<(), (rusqlite::Error, Vec<Job>)> {
    let mut jobs = batch.into_iter();
    if let Err(error) = connection.execute_batch("BEGIN IMMEDIATE") {
        return Err((error, jobs.collect()));
    }
    while let Some(job) = jobs.next() {
        let outcome = match job {
            Job::Commit(bundles, sender) => {
                let results = bundles.iter().map(|bundle| write_bundle(connection, bundle, hint)).collect();
                keep(results, |results| Reply::Commit(results, sender))
            }
            Job::Claim(claim, sender) => {
                let runs = in_savepoint(connection, hint, |connection, hint| {
                    claim_runs(connection, &claim, served, hint)
                });
                keep(runs, |runs| Reply::Claim(runs, sender))
            }
        };
        match outcome {
            Ok(reply) => replies.push(reply),
            Err((error, reply)) => {
                replies.extend(reply);
                return Err((error, jobs.collect()));
            }
        }
    }
    connection.execute_batch("COMMIT").map_err(|error| (error, Vec::new()))
}

/// Pairs a result with its reply; an error takes the sender along, so that it gets answered too.
fn keep<T: Default>(
    result: rusqlite::Result<T>,
    reply: impl FnOnce(T) -> Reply,
) -> Result<Reply, (rusqlite::Error, Option<Reply>)> {
    match result {
        Ok(value) => Ok(reply(value)),
        Err(error) => Err((error, Some(reply(T::default())))),
    }
}

fn write_bundle(
    connection: &Connection,
    bundle: &Bundle,
    hint: &mut Hint,
) -> rusqlite::Result<Result<Committed, Refusal>> {
    match bundle.judge(&mut Judge(connection))? {
        Verdict::Refuse(refusal) => Ok(Err(refusal)),
        Verdict::Duplicate => Ok(Ok(Committed { position: hint.position, duplicate: true })),
        Verdict::Apply => {
            match in_savepoint(connection, hint, |connection, hint| apply(connection, &bundle.writes, hint)) {
                Ok(()) => Ok(Ok(Committed { position: hint.position, duplicate: false })),
                Err(error) => refused_by_constraint(connection, bundle, error),
            }
        }
    }
}

/// A row that a constraint kept out refuses its bundle alone. Anything else, and a transaction that SQLite
/// rolled back by itself (a full disk, an I/O error), fails the batch.
fn refused_by_constraint(
    connection: &Connection,
    bundle: &Bundle,
    error: rusqlite::Error,
) -> rusqlite::Result<Result<Committed, Refusal>> {
    let is_constraint = matches!(
        &error,
        rusqlite::Error::SqliteFailure(failure, _) if failure.code == rusqlite::ErrorCode::ConstraintViolation
    ) || matches!(&error, rusqlite::Error::StatementChangedRows(_));
    match bundle.expect.first() {
        Some(expect) if is_constraint && !connection.is_autocommit() => {
            let (command, expect) = (bundle.command, expect.clone());
            Ok(Err(Refusal { command, expect, found: format!("a row that is in the way: {error}") }))
        }
        _ => Err(error),
    }
}

fn in_savepoint<T>(
    connection: &Connection,
    hint: &mut Hint,
    work: impl FnOnce(&Connection, &mut Hint) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.prepare_cached("SAVEPOINT bundle")?.execute([])?;
    let before = *hint;
    match work(connection, hint) {
        Ok(value) => {
            connection.prepare_cached("RELEASE bundle")?.execute([])?;
            Ok(value)
        }
        Err(error) => {
            *hint = before;
            if !connection.is_autocommit() {
                connection.execute_batch("ROLLBACK TO bundle; RELEASE bundle")?;
            }
            Err(error)
        }
    }
}

impl Job {
    pub fn fail(self, error: &StoreError) {
        match self {
            Job::Commit(_, sender) => drop(sender.send(Err(error.clone()))),
            Job::Claim(_, sender) => drop(sender.send(Err(error.clone()))),
        }
    }
}

impl Reply {
    /// Nobody waits any more? Then nobody needs to know.
    fn send(self) {
        match self {
            Reply::Commit(results, sender) => drop(sender.send(Ok(results))),
            Reply::Claim(runs, sender) => drop(sender.send(Ok(runs))),
        }
    }

    fn fail(self, error: &StoreError) {
        match self {
            Reply::Commit(_, sender) => drop(sender.send(Err(error.clone()))),
            Reply::Claim(_, sender) => drop(sender.send(Err(error.clone()))),
        }
    }
}
