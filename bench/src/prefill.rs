//! Fills a store with finished tasks, quickly: takes the one that a server finished in it and writes its rows
//! again and again under fresh ids. What a row looks like is read from the store, not known here.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, ensure};
use ostler_kernel::{ContextId, RunId, SessionId, TaskId, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

/// Tasks in one transaction.
const BATCH: usize = 10_000;

/// The tables of a task, and by which of its ids its rows are found. Behind what is appended, where it ends.
const TABLES: [(&str, &str, IdKind); 9] = [
    ("tasks", "id", IdKind::Task),
    ("runs", "id", IdKind::Run),
    ("sessions", "id", IdKind::Session),
    ("steps", "run", IdKind::Run),
    ("ends", "owner", IdKind::Run),
    ("entries", "session", IdKind::Session),
    ("ends", "owner", IdKind::Session),
    ("events", "task", IdKind::Task),
    ("ends", "owner", IdKind::Task),
];

/// Adds so many finished tasks to the store, which no server may have open.
pub fn prefill(store: &Path, n_tasks: usize) -> anyhow::Result<()> {
    let mut database = Connection::open(store).context("the store can't be opened")?;
    let original = Ids::of_only_task(&database)?;
    let rows = templates(&database, &original)?;
    // Nothing is lost if this breaks: the store is made for this one measurement.
    database.pragma_update(None, "journal_mode", "OFF")?;
    database.pragma_update(None, "synchronous", "OFF")?;
    database.pragma_update(None, "cache_size", -256_000)?;
    for first in (0..n_tasks).step_by(BATCH) {
        let transaction = database.transaction()?;
        for number in first..n_tasks.min(first + BATCH) {
            let ids = original.fresh(number, n_tasks);
            for row in &rows {
                row.insert(&transaction, &ids)?;
            }
        }
        transaction.commit()?;
    }
    database.pragma_update(None, "journal_mode", "WAL")?;
    drop(database);
    // Or the disk would be busy with it while others are measured.
    File::open(store)?.sync_all().context("the store can't be synced")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdKind {
    Task,
    Run,
    Session,
    Context,
}

/// What differs from task to task.
struct Ids {
    accepted: Timestamp,
    task: TaskId,
    run: RunId,
    session: SessionId,
    context: ContextId,
    name: String,
}

impl Ids {
    fn of_only_task(database: &Connection) -> anyhow::Result<Self> {
        let body = |table: &str| -> anyhow::Result<serde_json::Value> {
            let found: Vec<String> = database
                .prepare(&format!("SELECT body FROM {table}"))?
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            ensure!(found.len() == 1, "expected one row in {table}, found {}", found.len());
            Ok(serde_json::from_str(&found[0])?)
        };
        let (task, session) = (body("tasks")?, body("sessions")?);
        let text = |value: &serde_json::Value, pointer: &str| {
            let found = value.pointer(pointer).and_then(serde_json::Value::as_str).map(str::to_owned);
            found.with_context(|| format!("no {pointer} in a row"))
        };
        ensure!(text(&task, "/state")? == "succeeded", "the task that is copied has not succeeded");
        let accepted = task.get("created_at").and_then(serde_json::Value::as_i64);
        Ok(Self {
            accepted: Timestamp::from_millis(accepted.context("a task without a time")?),
            task: text(&task, "/id")?.parse()?,
            run: text(&task, "/run")?.parse()?,
            session: text(&task, "/session")?.parse()?,
            context: text(&session, "/context/id")?.parse()?,
            name: text(&task, "/name")?,
        })
    }

    /// Ids of the past, one task every millisecond up to the one that is copied: indexes grow at their end,
    /// as they do when tasks come one after the other.
    fn fresh(&self, number: usize, n_tasks: usize) -> Self {
        let before = i64::try_from(n_tasks - number).unwrap_or(i64::MAX);
        let accepted = Timestamp::from_millis(self.accepted.as_millis().saturating_sub(before));
        let random = |salt: u64| scramble(number as u64 * 4 + salt);
        let task = TaskId::from_parts(accepted, random(0), random(0).rotate_left(32));
        let stem = self.name.rsplit_once('-').map_or("task", |(stem, _)| stem);
        let letters = task.to_string().split_off(TaskId::PREFIX.len() + 1);
        Self {
            accepted,
            task,
            run: RunId::from_parts(accepted, random(1), random(1).rotate_left(32)),
            session: SessionId::from_parts(accepted, random(2), random(2).rotate_left(32)),
            context: ContextId::from_parts(accepted, random(3), random(3).rotate_left(32)),
            name: format!("{stem}-{}", &letters[..18]),
        }
    }

    fn bytes(&self, kind: IdKind) -> &[u8; 16] {
        match kind {
            IdKind::Task => self.task.as_bytes(),
            IdKind::Run => self.run.as_bytes(),
            IdKind::Session => self.session.as_bytes(),
            IdKind::Context => self.context.as_bytes(),
        }
    }

    /// How they stand in texts.
    fn words(&self) -> [String; 5] {
        let Self { task, run, session, context, name, .. } = self;
        [task.to_string(), run.to_string(), session.to_string(), context.to_string(), name.clone()]
    }
}

/// Spreads numbers over all bits, the same ones each time.
fn scramble(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// One row of the task that is copied.
struct Template {
    sql: String,
    cells: Vec<Cell>,
}

enum Cell {
    Fixed(Value),
    /// The place of the row that was inserted last.
    Last,
    Id(IdKind),
    Text(Vec<Piece>),
}

/// A part of a text: as it is, or the word of [`Ids::words`] with this place.
enum Piece {
    Fixed(String),
    Word(usize),
}

impl Template {
    fn insert(&self, database: &Connection, ids: &Ids) -> rusqlite::Result<()> {
        let words = ids.words();
        let values = self.cells.iter().map(|cell| match cell {
            Cell::Fixed(value) => value.clone(),
            Cell::Last => Value::Integer(database.last_insert_rowid()),
            Cell::Id(kind) => Value::Blob(ids.bytes(*kind).to_vec()),
            Cell::Text(pieces) => Value::Text(pieces.iter().map(|piece| piece.fill(&words)).collect()),
        });
        database.prepare_cached(&self.sql)?.execute(params_from_iter(values))?;
        Ok(())
    }
}

impl Piece {
    fn fill<'a>(&'a self, words: &'a [String; 5]) -> &'a str {
        match self {
            Piece::Fixed(text) => text,
            Piece::Word(place) => &words[*place],
        }
    }
}

fn templates(database: &Connection, ids: &Ids) -> anyhow::Result<Vec<Template>> {
    let mut templates = Vec::new();
    for (table, column, kind) in TABLES {
        let sql = format!("SELECT * FROM {table} WHERE {column} = ?1");
        let mut statement = database.prepare(&sql)?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let places = vec!["?"; columns.len()].join(", ");
        let insert = format!("INSERT INTO {table} ({}) VALUES ({places})", columns.join(", "));
        let mut rows = statement.query([ids.bytes(kind)])?;
        let before = templates.len();
        while let Some(row) = rows.next()? {
            let cells = columns.iter().enumerate().map(|(index, column)| {
                let value = row.get(index)?;
                Ok(match (table, column.as_str(), value) {
                    (_, "prev", Value::Integer(_)) | ("ends", "place", _) => Cell::Last,
                    // The next free one.
                    ("events", "position", _) | ("steps" | "entries", "place", _) => Cell::Fixed(Value::Null),
                    (_, _, value) => cell(value, ids),
                })
            });
            templates.push(Template { sql: insert.clone(), cells: cells.collect::<rusqlite::Result<_>>()? });
        }
        ensure!(templates.len() > before, "the task that is copied has nothing in {table}");
    }
    Ok(templates)
}

fn cell(value: Value, ids: &Ids) -> Cell {
    match value {
        Value::Blob(bytes) => {
            let kinds = [IdKind::Task, IdKind::Run, IdKind::Session, IdKind::Context];
            let kind = kinds.into_iter().find(|kind| ids.bytes(*kind).as_slice() == bytes);
            kind.map_or(Cell::Fixed(Value::Blob(bytes)), Cell::Id)
        }
        Value::Text(text) => Cell::Text(pieces(&text, &ids.words())),
        Value::Null | Value::Integer(_) | Value::Real(_) => Cell::Fixed(value),
    }
}

fn pieces(text: &str, words: &[String; 5]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let next = |rest: &str| {
        let found = words.iter().enumerate().filter_map(|(place, word)| Some((rest.find(word)?, place)));
        found.min()
    };
    while let Some((start, place)) = next(rest) {
        pieces.push(Piece::Fixed(rest[..start].to_owned()));
        pieces.push(Piece::Word(place));
        rest = &rest[start + words[place].len()..];
    }
    pieces.push(Piece::Fixed(rest.to_owned()));
    pieces
}

#[cfg(test)]
mod tests;
