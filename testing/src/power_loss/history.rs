//! What was acknowledged, and when: after how many operations of the disk each commit was answered, every row of
//! the store as it stood then, and what the commit said would be there.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
};

use ostler_kernel::{
    BlobId, Bundle, Entry, EventBody, SessionId, Step, TaskId, Write, resource::ResourceKey,
};
use ostler_store::{Store, StoreError, StoreExt, TaskRef};
use rusqlite::{Connection, types::ValueRef};

/// The store from its birth on: `moments[0]` is the empty one, then one for each acknowledgement.
#[derive(Default)]
pub struct History {
    pub moments: Vec<Moment>,
}

pub struct Moment {
    /// How many operations the disk had carried out when the caller got its answer.
    pub n_ops: usize,
    pub what: String,
    pub rows: Rows,
    pub facts: Vec<Fact>,
}

/// Every row of every table: how many, and a hash over all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows(BTreeMap<String, (u64, u64)>);

/// Something that a caller was told is so, and that stays so.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    Task { id: TaskId, name: String },
    Ended { id: TaskId, state: &'static str, output: Option<String> },
    Logged { task: TaskId, body: EventBody },
    Done(Step),
    Said { session: SessionId, seq: u64, entry: Entry },
    Input { task: TaskId, number: u64 },
    Resource { key: ResourceKey, version: u64 },
    Blob { id: BlobId, bytes: Vec<u8> },
}

impl History {
    /// The last moment of which someone had been told when so many operations were carried out.
    pub fn told(&self, n_ops: usize) -> usize {
        self.moments.partition_point(|moment| moment.n_ops <= n_ops).saturating_sub(1)
    }

    /// The last moment at which the store held exactly these rows.
    pub fn find(&self, rows: &Rows) -> Option<usize> {
        self.moments.iter().rposition(|moment| moment.rows == *rows)
    }
}

impl Rows {
    pub fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
        let names: Vec<String> =
            connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let tables = names.into_iter().map(|name| Ok((name.clone(), hash_table(connection, &name)?)));
        Ok(Self(tables.collect::<rusqlite::Result<_>>()?))
    }

    /// The tables in which the two differ.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let tables = self.0.iter().filter(|(name, table)| other.0.get(*name) != Some(table));
        tables.map(|(name, (rows, _))| format!("{name} ({rows} rows)")).collect()
    }
}

fn hash_table(connection: &Connection, name: &str) -> rusqlite::Result<(u64, u64)> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {name}"))?;
    let n_columns = statement.column_count();
    let mut rows = statement.query([])?;
    let (mut n_rows, mut hasher) = (0, DefaultHasher::new());
    while let Some(row) = rows.next()? {
        n_rows += 1;
        for column in 0..n_columns {
            match row.get_ref(column)? {
                ValueRef::Null => hasher.write_u8(0),
                ValueRef::Integer(number) => hasher.write_i64(number),
                ValueRef::Real(number) => hasher.write_u64(number.to_bits()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    hasher.write_usize(bytes.len());
                    hasher.write(bytes);
                }
            }
        }
    }
    Ok((n_rows, hasher.finish()))
}

impl Fact {
    /// What whoever committed the bundle may count on.
    pub fn of(bundle: &Bundle) -> Vec<Self> {
        bundle.writes.iter().filter_map(Self::of_write).collect()
    }

    fn of_write(write: &Write) -> Option<Self> {
        Some(match write {
            Write::NewTask(task) => Fact::Task { id: task.id, name: task.name.clone() },
            Write::Task(task) if task.ended_at.is_some() => {
                Fact::Ended { id: task.id, state: task.state.name(), output: task.output.clone() }
            }
            Write::Event { task, body, .. } => Fact::Logged { task: *task, body: body.clone() },
            Write::Step(step) if !step.is_open() => Fact::Done(step.clone()),
            Write::Entry { session, seq, entry } => {
                Fact::Said { session: *session, seq: *seq, entry: entry.clone() }
            }
            Write::Input(input) => Fact::Input { task: input.task, number: input.number },
            Write::Resource(stored) => Fact::Resource { key: stored.key.clone(), version: stored.version },
            Write::Blob { id, bytes, .. } => Fact::Blob { id: *id, bytes: bytes.clone() },
            // What these leave is overwritten by what comes later.
            Write::Task(_)
            | Write::NewRun(_)
            | Write::Run(_)
            | Write::RunProgress(_)
            | Write::Session(_)
            | Write::Step(_)
            | Write::Consume { .. }
            | Write::Blocker(_)
            | Write::Archive { .. }
            | Write::Forget(_)
            | Write::ForgetSession { .. }
            | Write::ForgetWorker { .. }
            | Write::Worker(_)
            | Write::Renewal { .. }
            | Write::Standing { .. }
            | Write::Limit { .. }
            | Write::DeleteResource(_)
            | Write::ForgetBlob { .. } => return None,
        })
    }

    pub async fn holds(&self, store: &dyn Store) -> Result<bool, StoreError> {
        Ok(match self {
            Fact::Task { id, name } => {
                store.task(TaskRef::Id(*id)).await?.is_some_and(|row| row.task.name == *name)
            }
            Fact::Ended { id, state, output } => store
                .task(TaskRef::Id(*id))
                .await?
                .is_some_and(|row| row.task.state.name() == *state && row.task.output == *output),
            Fact::Logged { task, body } => {
                let events = store.events(*task, 0, 100_000).await?;
                let dense = events.iter().zip(1..).all(|(event, seq)| event.seq == seq);
                dense && events.iter().any(|event| event.body == *body)
            }
            Fact::Done(step) => store.steps(step.id.run).await?.contains(step),
            Fact::Said { session, seq, entry } => {
                store.entries(*session, *seq, Some(seq + 1)).await?.iter().any(|(_, found)| found == entry)
            }
            Fact::Input { task, number } => {
                store.inputs(*task, 0).await?.iter().any(|input| input.number == *number)
            }
            Fact::Resource { key, version } => {
                store.resource(key.clone()).await?.is_some_and(|found| found.version >= *version)
            }
            Fact::Blob { id, bytes } => store.blob(*id).await?.as_ref() == Some(bytes),
        })
    }
}
