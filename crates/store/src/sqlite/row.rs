//! Between rows and the kernel's types. Bodies are JSON; a body that can't be read is an error that names
//! what was being read, never a panic.

use ostler_kernel::{
    BlobId, BlockerId, Event, Run, RunId, Session, SessionId, Step, Task, TaskId, Timestamp, Worker,
    resource::{ResourceKey, StoredResource},
    task::TaskRequest,
};
use rusqlite::{
    Row, ToSql,
    types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Type, ValueRef},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::query::TaskRow;

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
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Reads the JSON in a column.
pub fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
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

pub const WORKER: &str = "name, incarnation, counter, claims, registered_at, instance";

pub fn worker(row: &Row<'_>) -> rusqlite::Result<Worker> {
    Ok(Worker {
        name: row.get(0)?,
        incarnation: row.get(1)?,
        counter: row.get(2)?,
        claims: row.get(3)?,
        registered_at: Timestamp::from_millis(row.get(4)?),
        instance: row.get::<_, i64>(5)?.cast_unsigned(),
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

/// A task without its request, which has a column of its own and is written once.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct TaskBody {
    id: TaskId,
    namespace: String,
    name: String,
    session: SessionId,
    run: RunId,
    #[serde(flatten)]
    state: ostler_kernel::TaskState,
    version: u64,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<ostler_kernel::Failure>,
    usage: ostler_kernel::Usage,
}

impl TaskBody {
    pub fn of(task: &Task) -> Self {
        Self {
            id: task.id,
            namespace: task.namespace.clone(),
            name: task.name.clone(),
            session: task.session,
            run: task.run,
            state: task.state.clone(),
            version: task.version,
            created_at: task.created_at,
            started_at: task.started_at,
            ended_at: task.ended_at,
            output: task.output.clone(),
            failure: task.failure.clone(),
            usage: task.usage,
        }
    }

    fn with(self, request: TaskRequest) -> Task {
        Task {
            id: self.id,
            namespace: self.namespace,
            name: self.name,
            session: self.session,
            run: self.run,
            request,
            state: self.state,
            version: self.version,
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            output: self.output,
            failure: self.failure,
            usage: self.usage,
        }
    }
}
