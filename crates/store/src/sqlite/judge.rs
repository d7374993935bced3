//! What the kernel's judge looks up, from inside the writing transaction.

use ostler_kernel::{
    RunId, RunTag, SessionId, TaskId,
    bundle::{InputsAt, Rows, RunAt},
    resource::ResourceKey,
};
use rusqlite::{Connection, OptionalExtension, Params};

use super::row::Key;

pub struct Judge<'a>(pub &'a Connection);

impl Judge<'_> {
    fn number(&self, sql: &str, params: impl Params) -> rusqlite::Result<u64> {
        let found = self.0.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?;
        Ok(found.unwrap_or(0))
    }

    fn exists(&self, sql: &str, params: impl Params) -> rusqlite::Result<bool> {
        self.0.prepare_cached(sql)?.exists(params)
    }
}

impl Rows for Judge<'_> {
    type Error = rusqlite::Error;

    fn run(&mut self, id: RunId) -> rusqlite::Result<Option<RunAt>> {
        let sql = "SELECT state, epoch, journal, write_epoch, write_number FROM runs WHERE id = ?1";
        let mut statement = self.0.prepare_cached(sql)?;
        let found = statement.query_row([Key(&id)], |row| {
            let state = RunTag::from_name(row.get_ref(0)?.as_str()?).ok_or(rusqlite::Error::InvalidQuery)?;
            let write_epoch: Option<u64> = row.get(3)?;
            let write_number: Option<u64> = row.get(4)?;
            Ok(RunAt {
                state,
                epoch: row.get(1)?,
                journal: row.get(2)?,
                last_write: write_epoch.zip(write_number),
            })
        });
        found.optional()
    }

    fn session_version(&mut self, id: SessionId) -> rusqlite::Result<u64> {
        self.number("SELECT version FROM sessions WHERE id = ?1", [Key(&id)])
    }

    fn inputs(&mut self, task: TaskId) -> rusqlite::Result<InputsAt> {
        let sql = "SELECT last_input, consumed_input FROM tasks WHERE id = ?1";
        let mut statement = self.0.prepare_cached(sql)?;
        let found =
            statement.query_row([Key(&task)], |row| Ok(InputsAt { last: row.get(0)?, taken: row.get(1)? }));
        Ok(found.optional()?.unwrap_or_default())
    }

    fn task_name_taken(&mut self, namespace: &str, name: &str) -> rusqlite::Result<bool> {
        self.exists("SELECT 1 FROM tasks WHERE namespace = ?1 AND name = ?2", [namespace, name])
    }

    fn task_key_taken(&mut self, namespace: &str, key: &str) -> rusqlite::Result<bool> {
        self.exists("SELECT 1 FROM tasks WHERE namespace = ?1 AND key = ?2", [namespace, key])
    }

    fn session_key_taken(&mut self, namespace: &str, subject: &str, key: &str) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM sessions WHERE namespace = ?1 AND subject = ?2 AND key = ?3";
        self.exists(sql, [namespace, subject, key])
    }

    fn incarnation(&mut self, worker: &str) -> rusqlite::Result<u64> {
        self.number("SELECT incarnation FROM workers WHERE name = ?1", [worker])
    }

    fn counter(&mut self, worker: &str) -> rusqlite::Result<u64> {
        self.number("SELECT counter FROM workers WHERE name = ?1", [worker])
    }

    fn resource_version(&mut self, key: &ResourceKey) -> rusqlite::Result<u64> {
        let sql = "SELECT version FROM resources WHERE kind = ?1 AND namespace = ?2 AND name = ?3";
        self.number(sql, [&key.kind, &key.namespace, &key.name])
    }
}
