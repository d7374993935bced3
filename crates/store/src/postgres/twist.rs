//! Planted bugs that lie in the words of a statement: it is changed on its way to the database.

use std::borrow::Cow;

use crate::planted::{Bug, Planted};

pub fn twist(sql: &str, planted: Planted) -> Cow<'_, str> {
    // Of which statement, what, and what stands there instead.
    let twists = [
        (Bug::LogWithoutBound, "FROM origin", "pg_snapshot_xmin", "pg_snapshot_xmax"),
        (Bug::ClaimWithoutLock, "rank IS NOT NULL", " FOR UPDATE OF runs SKIP LOCKED", ""),
        (Bug::ClaimsInLine, "rank IS NOT NULL", " SKIP LOCKED", ""),
        (Bug::LaneWithoutLock, "slots FROM lanes", " FOR UPDATE", ""),
        (Bug::JudgedWithoutLocks, "write_number FROM runs", " FOR UPDATE", ""),
    ];
    match twists.into_iter().find(|(bug, of, ..)| planted.is(*bug) && sql.contains(of)) {
        Some((_, _, what, instead)) => sql.replace(what, instead).into(),
        None => sql.into(),
    }
}
