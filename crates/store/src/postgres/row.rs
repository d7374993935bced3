//! Between rows and the kernel's types. Bodies are JSON, as text; one that can't be read is an error, never a
//! panic.

use bytes::BytesMut;
use ostler_kernel::{
    BlobId, BlockerId, Event, RunId, SessionId, Task, TaskId, Timestamp, Worker,
    resource::{ResourceKey, StoredResource},
    task::input::Input,
    worker::Standing,
};
use serde::de::DeserializeOwned;
use tokio_postgres::{
    Row,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

use super::Failed;
use crate::{
    body::TaskBody,
    query::{Accepted, TaskRow},
};

/// An id as the sixteen bytes it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(pub [u8; 16]);

macro_rules! ids {
    ($($id:ty),*) => {$(
        impl From<&$id> for Id {
            fn from(id: &$id) -> Self {
                Id(*id.as_bytes())
            }
        }

        impl From<Id> for $id {
            fn from(id: Id) -> Self {
                <$id>::from_bytes(id.0)
            }
        }
    )*};
}

ids!(TaskId, RunId, SessionId, BlockerId);

type AnyError = Box<dyn std::error::Error + Sync + Send>;

impl ToSql for Id {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, AnyError> {
        Ok(Id(raw.try_into()?))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }
}

/// Numbers are stored signed; none that is counted comes near the end.
pub fn signed(number: u64) -> i64 {
    number.cast_signed()
}

pub fn number(row: &Row, column: usize) -> Result<u64, Failed> {
    Ok(row.try_get::<_, i64>(column)?.cast_unsigned())
}

pub fn id<T: From<Id>>(row: &Row, column: usize) -> Result<T, Failed> {
    Ok(row.try_get::<_, Id>(column)?.into())
}

pub fn accepted(row: &Row) -> Result<Accepted, Failed> {
    let first = row.try_get::<_, Option<Id>>(1)?.map(TaskId::from);
    Ok(Accepted::of(usize::try_from(number(row, 0)?).unwrap_or(usize::MAX), first))
}

pub fn blob_id(row: &Row) -> Result<BlobId, Failed> {
    let bytes: [u8; 32] =
        row.try_get::<_, &[u8]>(0)?.try_into().map_err(|_| Failed::Body("no hash of a blob".to_owned()))?;
    Ok(BlobId::from_bytes(bytes))
}

pub fn from_json<T: DeserializeOwned>(row: &Row, column: usize) -> Result<T, Failed> {
    parse(row.try_get(column)?)
}

pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Failed> {
    serde_json::from_str(text).map_err(|error| Failed::Body(error.to_string()))
}

/// As many rows as one can ask for.
pub fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A task's columns as [`task`] reads them.
pub const TASK: &str = "request, body, coalesce((SELECT max(seq) FROM events WHERE events.task = tasks.id), 0), \
    last_input, consumed_input, archived_at";

pub fn task(row: &Row) -> Result<TaskRow, Failed> {
    let archived_at: Option<i64> = row.try_get(5)?;
    Ok(TaskRow {
        task: task_alone(row)?,
        last_seq: number(row, 2)?,
        last_input: number(row, 3)?,
        consumed_input: number(row, 4)?,
        archived_at: archived_at.map(Timestamp::from_millis),
    })
}

/// A task alone, from its request and its body.
pub fn task_alone(row: &Row) -> Result<Task, Failed> {
    let stored: TaskBody = from_json(row, 1)?;
    Ok(stored.with(from_json(row, 0)?))
}

/// Who took an input stands in a column of its own, so that taking it needs no look at the rest.
pub fn input(row: &Row) -> Result<Input, Failed> {
    let consumed_by: Option<Id> = row.try_get(1)?;
    Ok(Input { consumed_by: consumed_by.map(RunId::from), ..from_json(row, 0)? })
}

pub const EVENT: &str = "seq, position, task, at, body";

pub fn event(row: &Row) -> Result<Event, Failed> {
    Ok(Event {
        seq: number(row, 0)?,
        position: number(row, 1)?,
        task: id(row, 2)?,
        at: Timestamp::from_millis(row.try_get(3)?),
        body: from_json(row, 4)?,
    })
}

pub const WORKER: &str = "name, incarnation, counter, claims, registered_at, instance, offer, standing";

pub fn worker(row: &Row) -> Result<Worker, Failed> {
    Ok(Worker {
        name: row.try_get(0)?,
        incarnation: number(row, 1)?,
        counter: number(row, 2)?,
        claims: number(row, 3)?,
        registered_at: Timestamp::from_millis(row.try_get(4)?),
        instance: number(row, 5)?,
        offer: from_json(row, 6)?,
        standing: Standing::from_name(row.try_get(7)?).unwrap_or_default(),
    })
}

pub const RESOURCE: &str = "kind, namespace, name, version, generation, created_at, body";

pub fn resource(row: &Row) -> Result<StoredResource, Failed> {
    Ok(StoredResource {
        key: ResourceKey { kind: row.try_get(0)?, namespace: row.try_get(1)?, name: row.try_get(2)? },
        version: number(row, 3)?,
        generation: number(row, 4)?,
        created_at: Timestamp::from_millis(row.try_get(5)?),
        document: from_json(row, 6)?,
    })
}
