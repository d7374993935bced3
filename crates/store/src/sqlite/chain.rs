//! Rows that are only ever appended, each to its owner: a task's events, a session's entries, a run's steps.
//!
//! A row names the place of the one before it, and `ends` knows the place of the last. A whole index would be
//! written at a page of its own for each run that lives long, at every step; the ends of those who are live stand
//! together. Of long chains every 64th row is in an index, so that one can begin there.

use rusqlite::{Connection, OptionalExtension, Row, params};

/// Whose rows they are. One id can't stand for two kinds of owners by accident.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    Task(&'a [u8; 16]),
    Session(&'a [u8; 16]),
    Run(&'a [u8; 16]),
    /// All events there ever were. Where they end is written down only if that one is forgotten.
    Log,
}

/// Where a chain ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Of the last row, if there is one.
    pub place: Option<i64>,
    /// How many there are.
    pub count: u64,
}

impl Owner<'_> {
    fn key(&self) -> (&[u8; 16], i64) {
        match self {
            Owner::Task(id) => (id, 0),
            Owner::Session(id) => (id, 1),
            Owner::Run(id) => (id, 2),
            Owner::Log => (&[0; 16], 3),
        }
    }
}

pub fn end(connection: &Connection, owner: Owner<'_>) -> rusqlite::Result<Option<End>> {
    let (id, kind) = owner.key();
    let mut statement =
        connection.prepare_cached("SELECT place, count FROM ends WHERE owner = ?1 AND kind = ?2")?;
    let found =
        statement.query_row(params![id, kind], |row| Ok(End { place: row.get(0)?, count: row.get(1)? }));
    found.optional()
}

/// Moves the end of a chain from where it was read.
pub fn move_end(
    connection: &Connection,
    owner: Owner<'_>,
    from: Option<End>,
    to: End,
) -> rusqlite::Result<()> {
    let (id, kind) = owner.key();
    let sql = match from {
        None => "INSERT INTO ends (owner, kind, place, count) VALUES (?1, ?2, ?3, ?4)",
        Some(_) => "UPDATE ends SET place = ?3, count = ?4 WHERE owner = ?1 AND kind = ?2",
    };
    connection.prepare_cached(sql)?.execute(params![id, kind, to.place, to.count])?;
    Ok(())
}

pub fn remove_end(connection: &Connection, owner: Owner<'_>) -> rusqlite::Result<()> {
    let (id, kind) = owner.key();
    let mut statement = connection.prepare_cached("DELETE FROM ends WHERE owner = ?1 AND kind = ?2")?;
    statement.execute(params![id, kind]).map(drop)
}

/// Appends a row behind the end that was read, and moves the end to it. Who inserts is told the place before.
pub fn append(
    connection: &Connection,
    owner: Owner<'_>,
    before: Option<End>,
    insert: impl FnOnce(Option<i64>) -> rusqlite::Result<()>,
) -> rusqlite::Result<i64> {
    insert(before.and_then(|end| end.place))?;
    let place = connection.last_insert_rowid();
    let count = before.map_or(0, |end| end.count) + 1;
    move_end(connection, owner, before, End { place: Some(place), count })?;
    Ok(place)
}

/// How the rows of one kind are found.
pub struct Table {
    /// The place of the first marked row that stands at or behind a number.
    pub mark: &'static str,
    /// The row at a place: its number, the place before it, and what else is asked of it.
    pub row: &'static str,
}

/// The rows with numbers from `from` up to and without `to`, in order.
pub fn range<T>(
    connection: &Connection,
    table: &Table,
    owner: Owner<'_>,
    (from, to): (u64, u64),
    mut map: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut found = Vec::new();
    if from >= to {
        return Ok(found);
    }
    let (id, _) = owner.key();
    let number = i64::try_from(to - 1).unwrap_or(i64::MAX);
    let mark = connection.prepare_cached(table.mark)?.query_row(params![id, number], |row| row.get(0));
    let mut next: Option<i64> = match mark.optional()? {
        Some(place) => Some(place),
        None => end(connection, owner)?.and_then(|end| end.place),
    };
    let mut statement = connection.prepare_cached(table.row)?;
    while let Some(place) = next {
        let mut rows = statement.query([place])?;
        let Some(row) = rows.next()? else { break };
        let number: u64 = row.get(0)?;
        if number < from {
            break;
        }
        if number < to {
            found.push(map(row)?);
        }
        next = row.get(1)?;
    }
    found.reverse();
    Ok(found)
}
