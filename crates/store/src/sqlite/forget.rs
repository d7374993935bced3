//! Removes the rows of a task that is forgotten.

use ostler_kernel::{SessionId, task::forget::Forgotten};
use rusqlite::{Connection, OptionalExtension, params};

use super::chain::{self, End, Owner};

/// `last` is where the log ends. If that event goes, the place is written down: it is given once.
pub fn forget(connection: &Connection, forgotten: &Forgotten, last: u64) -> rusqlite::Result<()> {
    let Forgotten { task, runs, sessions, .. } = forgotten;
    let log = Owner::Task(task.as_bytes());
    let end = chain::end(connection, log)?.and_then(|end| end.place);
    if end == Some(last.cast_signed()) {
        let former = chain::end(connection, Owner::Log)?;
        chain::move_end(connection, Owner::Log, former, End { place: end, count: 0 })?;
    }
    remove_chain(connection, log, "events", "position")?;
    for run in runs {
        remove_chain(connection, Owner::Run(run.as_bytes()), "steps", "place")?;
        remove(connection, "DELETE FROM open_steps WHERE run = ?1", run.as_bytes())?;
        remove(connection, "DELETE FROM runs WHERE id = ?1", run.as_bytes())?;
    }
    for session in sessions {
        forget_session(connection, session)?;
    }
    remove(connection, "DELETE FROM inputs WHERE task = ?1", task.as_bytes())?;
    remove(connection, "DELETE FROM blockers WHERE task = ?1", task.as_bytes())?;
    remove(connection, "DELETE FROM tasks WHERE id = ?1", task.as_bytes())
}

/// With all that was said in it.
pub fn forget_session(connection: &Connection, session: &SessionId) -> rusqlite::Result<()> {
    remove_chain(connection, Owner::Session(session.as_bytes()), "entries", "place")?;
    remove(connection, "DELETE FROM sessions WHERE id = ?1", session.as_bytes())
}

fn remove(connection: &Connection, sql: &str, id: &[u8; 16]) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([id]).map(drop)
}

/// From its end on, each row telling of the one before.
fn remove_chain(connection: &Connection, owner: Owner<'_>, table: &str, place: &str) -> rusqlite::Result<()> {
    let sql = format!("DELETE FROM {table} WHERE {place} = ?1 RETURNING prev");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut next = chain::end(connection, owner)?.and_then(|end| end.place);
    while let Some(row) = next {
        next = statement.query_row(params![row], |row| row.get(0)).optional()?.flatten();
    }
    chain::remove_end(connection, owner)
}
