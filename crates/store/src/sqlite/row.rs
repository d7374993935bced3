//! Between rows and the kernel's types. Bodies are JSON; a body that can't be read is an error that names
//! what was being read, never a panic.

use ostler_kernel::{
    BlobId, BlockerId, Event, Run, RunId, Session, SessionId, Step, TaskId, Timestamp, Worker, Write,
    resource::{ResourceKey, StoredResource},
    task::TaskRequest,
    worker::Standing,
};
use rusqlite::{
    Row, ToSql,
    types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Type, ValueRef},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    body::{self, TaskBody},
    query::TaskRow,
};

/// An id as the sixteen bytes it is.
pub struct Key<T>(pub T);

macro_rules! keys {
    ($($id:ty = $length:literal),*) => {$(
        impl ToSql for Key<&$id> {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes())))
            }
        }

        impl FromSql for Key<$id> {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let bytes: [u8; $length] = value.as_blob()?.try_into().map_err(|_| FromSqlError::InvalidType)?;
                Ok(Key(<$id>::from_bytes(bytes)))
            }
        }
    )*};
}

keys!(TaskId = 16, RunId = 16, SessionId = 16, BlockerId = 16, BlobId = 32);

pub fn to_json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(unwritable)
}

pub fn text_of(write: &Write) -> rusqlite::Result<String> {
    body::text_of(write).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// Reads the JSON in a column.
pub fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|error| unreadable(column, error))
}

pub fn unreadable(column: usize, error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

/// As many rows as one can ask for.
pub fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A task's columns as [`task`] reads them.
pub const TASK: &str = "request, body, \
    coalesce((SELECT count FROM ends WHERE owner = tasks.id AND kind = 0), 0), \
    last_input, consumed_input, archived_at";

pub fn task(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    let request: TaskRequest = from_json(row, 0)?;
    let stored: TaskBody = from_json(row, 1)?;
    let archived_at: Option<i64> = row.get(5)?;
    Ok(TaskRow {
        task: stored.with(request),
        last_seq: row.get(2)?,
        last_input: row.get(3)?,
        consumed_input: row.get(4)?,
        archived_at: archived_at.map(Timestamp::from_millis),
    })
}

pub fn run(row: &Row<'_>) -> rusqlite::Result<Run> {
    from_json(row, 0)
}

pub fn session(row: &Row<'_>) -> rusqlite::Result<Session> {
    from_json(row, 0)
}

pub fn step(row: &Row<'_>) -> rusqlite::Result<Step> {
    from_json(row, 0)
}

/// As [`super::chain`] wants it: first its number and the place before.
pub fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        seq: row.get(0)?,
        position: row.get(2)?,
        task: row.get::<_, Key<TaskId>>(3)?.0,
        at: Timestamp::from_millis(row.get(4)?),
        body: from_json(row, 5)?,
    })
}

pub const WORKER: &str = "name, incarnation, counter, claims, registered_at, instance, offer, standing";

pub fn worker(row: &Row<'_>) -> rusqlite::Result<Worker> {
    Ok(Worker {
        name: row.get(0)?,
        incarnation: row.get(1)?,
        counter: row.get(2)?,
        claims: row.get(3)?,
        registered_at: Timestamp::from_millis(row.get(4)?),
        instance: row.get::<_, i64>(5)?.cast_unsigned(),
        offer: from_json(row, 6)?,
        standing: Standing::from_name(row.get_ref(7)?.as_str()?).unwrap_or_default(),
    })
}

pub const RESOURCE: &str = "kind, namespace, name, version, generation, created_at, body";

pub fn resource(row: &Row<'_>) -> rusqlite::Result<StoredResource> {
    Ok(StoredResource {
        key: ResourceKey { kind: row.get(0)?, namespace: row.get(1)?, name: row.get(2)? },
        version: row.get(3)?,
        generation: row.get(4)?,
        created_at: Timestamp::from_millis(row.get(5)?),
        document: from_json(row, 6)?,
    })
}
