//! The tables, as migrations: each runs once, in order, in a transaction of its own.
//!
//! A row is its columns that are searched or judged by, and a `body` with all of it as JSON. Indexes on what
//! is live are partial, so that a million finished tasks don't weigh on the next one. What is appended has
//! hardly an index at all: see [`super::chain`].

use rusqlite::{Connection, TransactionBehavior};

pub const MIGRATIONS: &[&str] = &[
    r"
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
",
    // What is appended by many runs at once stands together at the end of its table, and only a small entry of an
    // index stands beside its run: a commit writes whole pages, and so fewer of them. Open steps come and go.
    r"
ALTER TABLE tasks DROP COLUMN next_seq;

ALTER TABLE entries RENAME TO entries_by_session;
CREATE TABLE entries (session BLOB NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL);
INSERT INTO entries (session, seq, body) SELECT session, seq, body FROM entries_by_session;
DROP TABLE entries_by_session;
CREATE UNIQUE INDEX entries_session ON entries (session, seq);

ALTER TABLE steps RENAME TO steps_by_run;
CREATE TABLE open_steps (run BLOB NOT NULL, step INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (run, step)) WITHOUT ROWID;
CREATE TABLE steps (run BLOB NOT NULL, step INTEGER NOT NULL, body TEXT NOT NULL);
INSERT INTO open_steps (run, step, body) SELECT run, step, body FROM steps_by_run WHERE open = 1;
INSERT INTO steps (run, step, body) SELECT run, step, body FROM steps_by_run WHERE open = 0;
DROP TABLE steps_by_run;
CREATE UNIQUE INDEX steps_run ON steps (run, step);
",
    // Chains instead of whole indexes: see the module `chain`.
    r"
CREATE TABLE ends (owner BLOB NOT NULL, kind INTEGER NOT NULL, place INTEGER, count INTEGER NOT NULL,
    PRIMARY KEY (owner, kind)) WITHOUT ROWID;

ALTER TABLE events RENAME TO events_indexed;
CREATE TABLE events (position INTEGER PRIMARY KEY, task BLOB NOT NULL, seq INTEGER NOT NULL, prev INTEGER,
    at INTEGER NOT NULL, body TEXT NOT NULL);
INSERT INTO events (position, task, seq, prev, at, body)
    SELECT position, task, seq, lag(position) OVER (PARTITION BY task ORDER BY seq), at, body FROM events_indexed;
INSERT INTO ends (owner, kind, place, count) SELECT task, 0, max(position), count(*) FROM events GROUP BY task;
DROP TABLE events_indexed;
CREATE UNIQUE INDEX events_marks ON events (task, seq) WHERE seq % 64 = 0;

ALTER TABLE entries RENAME TO entries_indexed;
CREATE TABLE entries (place INTEGER PRIMARY KEY, session BLOB NOT NULL, seq INTEGER NOT NULL, prev INTEGER,
    body TEXT NOT NULL);
INSERT INTO entries (place, session, seq, prev, body)
    SELECT rowid, session, seq, lag(rowid) OVER (PARTITION BY session ORDER BY seq), body FROM entries_indexed;
INSERT INTO ends (owner, kind, place, count) SELECT session, 1, max(place), count(*) FROM entries GROUP BY session;
DROP TABLE entries_indexed;
CREATE UNIQUE INDEX entries_marks ON entries (session, seq) WHERE seq % 64 = 0;

ALTER TABLE steps RENAME TO steps_indexed;
CREATE TABLE steps (place INTEGER PRIMARY KEY, run BLOB NOT NULL, prev INTEGER, body TEXT NOT NULL);
INSERT INTO steps (place, run, prev, body)
    SELECT rowid, run, lag(rowid) OVER (PARTITION BY run ORDER BY rowid), body FROM steps_indexed;
INSERT INTO ends (owner, kind, place, count)
    SELECT run, 2, max(place), count(*) FROM
        (SELECT run, place FROM steps UNION ALL SELECT run, NULL FROM open_steps) GROUP BY run;
DROP TABLE steps_indexed;
",
    // What workers offer and what runs ask for. A class may have several lanes now: their pool is the class.
    r"
ALTER TABLE workers ADD COLUMN offer TEXT NOT NULL DEFAULT '{}';
ALTER TABLE workers ADD COLUMN standing TEXT NOT NULL DEFAULT 'open';
ALTER TABLE lanes ADD COLUMN pool TEXT;
ALTER TABLE lanes ADD COLUMN requires TEXT NOT NULL DEFAULT '';
UPDATE lanes SET pool = class;
",
    // A task can be forgotten; and of a million, those of one namespace are listed, or those that did not succeed.
    r"
CREATE INDEX blockers_task ON blockers (task);
CREATE INDEX tasks_namespace ON tasks (namespace, id);
CREATE INDEX tasks_troubled ON tasks (id) WHERE state IN ('failed', 'dead_letter', 'cancelled', 'dropped');
",
    // A plan that nobody names any more goes. Whoever opens the store knows of none yet, and puts what it uses again.
    r"
ALTER TABLE blobs ADD COLUMN put_at INTEGER NOT NULL DEFAULT 0;
",
];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_first_schema_held_is_still_there() {
        let mut connection = Connection::open_in_memory().expect("memory");
        connection.execute_batch(MIGRATIONS[0]).expect("the first schema");
        let rows = "INSERT INTO steps VALUES (x'01', 0, 0, 'done'), (x'01', 1, 1, 'open');
            INSERT INTO entries VALUES (x'02', 0, 'hello'), (x'03', 0, 'who'), (x'02', 1, 'you');
            INSERT INTO events VALUES (1, x'04', 1, 5, 'begun'), (2, x'05', 1, 5, 'other'), (3, x'04', 2, 6, 'ended');
            PRAGMA user_version = 1;";
        connection.execute_batch(rows).expect("rows");
        migrate(&mut connection).expect("migrated");
        let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).expect("a row");
        let end = |kind: u8, owner: &str| {
            let sql =
                format!("SELECT place || '/' || count FROM ends WHERE kind = {kind} AND owner = x'{owner}'");
            text(&sql)
        };
        assert_eq!(text("SELECT body FROM open_steps WHERE run = x'01' AND step = 1"), "open");
        assert_eq!(text("SELECT body FROM steps WHERE run = x'01'"), "done");
        assert_eq!(end(2, "01"), "1/2", "one of two steps is done");
        assert_eq!(text("SELECT body FROM entries WHERE session = x'02' AND prev IS NULL"), "hello");
        assert_eq!(text("SELECT body FROM entries WHERE prev = 1"), "you");
        assert_eq!(end(1, "02"), "2/2");
        assert_eq!(text("SELECT body FROM events WHERE prev = 1"), "ended");
        assert_eq!((end(0, "04"), end(0, "05")), ("3/2".into(), "2/1".into()));
    }
}
