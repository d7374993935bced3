//! The tables, as migrations: each runs once, in order, in a transaction of its own.
//!
//! A row is its columns that are searched or judged by, and a `body` with all of it as JSON. Indexes on what
//! is live are partial, so that a million finished tasks don't weigh on the next one.

use rusqlite::{Connection, TransactionBehavior};

const MIGRATIONS: &[&str] = &[r"
CREATE TABLE tasks (
    id BLOB NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, key TEXT, state TEXT NOT NULL,
    next_seq INTEGER NOT NULL DEFAULT 1, last_input INTEGER NOT NULL DEFAULT 0,
    consumed_input INTEGER NOT NULL DEFAULT 0, archived_at INTEGER, request TEXT NOT NULL, body TEXT NOT NULL);
CREATE UNIQUE INDEX tasks_id ON tasks (id);
CREATE UNIQUE INDEX tasks_name ON tasks (namespace, name);
CREATE UNIQUE INDEX tasks_key ON tasks (namespace, key) WHERE key IS NOT NULL;

CREATE TABLE lanes (id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, class TEXT NOT NULL, slots INTEGER,
    UNIQUE (namespace, class));

CREATE TABLE runs (
    id BLOB NOT NULL, task BLOB NOT NULL, session BLOB NOT NULL, place INTEGER NOT NULL, lane INTEGER NOT NULL,
    state TEXT NOT NULL, epoch INTEGER NOT NULL, journal INTEGER NOT NULL,
    write_epoch INTEGER, write_number INTEGER,
    rank INTEGER, due INTEGER, live INTEGER, ended INTEGER NOT NULL,
    worker TEXT, incarnation INTEGER, claim INTEGER, body TEXT NOT NULL);
CREATE UNIQUE INDEX runs_id ON runs (id);
CREATE INDEX runs_ready ON runs (lane, rank, id) WHERE rank IS NOT NULL;
CREATE INDEX runs_due ON runs (due, id) WHERE due IS NOT NULL;
CREATE INDEX runs_leased ON runs (worker, id) WHERE worker IS NOT NULL;
CREATE INDEX runs_busy ON runs (lane) WHERE worker IS NOT NULL;
CREATE UNIQUE INDEX runs_live ON runs (session) WHERE live IS NOT NULL;
CREATE INDEX runs_session ON runs (session, place) WHERE ended = 0;

CREATE TABLE sessions (id BLOB NOT NULL, namespace TEXT NOT NULL, subject TEXT NOT NULL, key TEXT,
    version INTEGER NOT NULL, body TEXT NOT NULL);
CREATE UNIQUE INDEX sessions_id ON sessions (id);
CREATE UNIQUE INDEX sessions_key ON sessions (namespace, subject, key) WHERE key IS NOT NULL;

CREATE TABLE steps (run BLOB NOT NULL, step INTEGER NOT NULL, open INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (run, step)) WITHOUT ROWID;
CREATE TABLE entries (session BLOB NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (session, seq)) WITHOUT ROWID;
CREATE TABLE events (position INTEGER PRIMARY KEY, task BLOB NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
    body TEXT NOT NULL);
CREATE UNIQUE INDEX events_task ON events (task, seq);
CREATE TABLE inputs (task BLOB NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (task, number)) WITHOUT ROWID;
CREATE TABLE blockers (id BLOB PRIMARY KEY, task BLOB NOT NULL, body TEXT NOT NULL);
CREATE TABLE workers (name TEXT PRIMARY KEY, incarnation INTEGER NOT NULL, counter INTEGER NOT NULL,
    claims INTEGER NOT NULL, registered_at INTEGER NOT NULL, instance INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE resources (kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    version INTEGER NOT NULL, generation INTEGER NOT NULL, created_at INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (kind, namespace, name)) WITHOUT ROWID;
CREATE TABLE blobs (id BLOB PRIMARY KEY, bytes BLOB NOT NULL);
"];

#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("the store was written by a newer version of ostler (schema {found}, this one knows {known})")]
    Newer { found: usize, known: usize },
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// Brings the file to the schema this binary knows.
pub fn migrate(connection: &mut Connection) -> Result<(), MigrateError> {
    let found: usize = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > MIGRATIONS.len() {
        return Err(MigrateError::Newer { found, known: MIGRATIONS.len() });
    }
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(found) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(migration)?;
        transaction.execute_batch(&format!("PRAGMA user_version = {}", index + 1))?;
        transaction.commit()?;
    }
    Ok(())
}
