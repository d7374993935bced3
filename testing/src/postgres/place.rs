//! A store of its own in the PostgreSQL that all tests of a program share, and who looks at it from outside.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use ostler_store::{
    Store,
    planted::{Bug, Planted},
    postgres::{Options, PostgresStore},
};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, types::ToSql};

use super::{Postgres, open_with};

/// A role whose defaults are meant for anything but this.
pub(super) const STRANGER: &str = "CREATE ROLE stranger LOGIN;
    GRANT CREATE ON DATABASE postgres TO stranger;
    ALTER ROLE stranger SET default_transaction_isolation = 'repeatable read';
    ALTER ROLE stranger SET default_transaction_read_only = on;
    ALTER ROLE stranger SET synchronous_commit = off;
    ALTER ROLE stranger SET statement_timeout = '300ms';
    ALTER ROLE stranger SET lock_timeout = '1ms';
    ALTER ROLE stranger SET idle_in_transaction_session_timeout = '20ms';
    ALTER ROLE stranger SET idle_session_timeout = '500ms';
    ALTER ROLE stranger SET search_path = pg_catalog;
    ALTER ROLE stranger SET standard_conforming_strings = off;
    ALTER ROLE stranger SET transform_null_equals = on;
    ALTER ROLE stranger SET array_nulls = off;
    ALTER ROLE stranger SET bytea_output = 'escape';
    ALTER ROLE stranger SET DateStyle = 'SQL, DMY';
    ALTER ROLE stranger SET TimeZone = 'Pacific/Chatham';
    ALTER ROLE stranger SET plan_cache_mode = force_custom_plan;
    ALTER ROLE stranger SET enable_indexscan = off;
    ALTER ROLE stranger SET enable_nestloop = off;";

/// As many servers as one likes may open it.
#[derive(Clone)]
pub struct Place {
    options: Options,
}

impl Place {
    pub fn fresh() -> anyhow::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let schema = format!("store_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut options = Options { writers: 2, ..Options::at(Postgres::shared()?)? };
        options.database.application_name(&schema);
        options.schema = schema;
        Ok(Self { options })
    }

    /// Every server that opens it has this bug.
    #[must_use]
    pub fn planted(mut self, bug: Bug) -> Self {
        self.options.planted = Planted::with(bug);
        self
    }

    /// Servers open it as a role that has defaults of its own for all that it matters to.
    #[must_use]
    pub fn of_a_stranger(mut self) -> Self {
        self.options.database.user("stranger");
        self
    }

    /// For those who do one small thing after the other: one connection writes, and each statement is planned once. Left to
    /// itself the database plans most of them anew each time, which takes longer than to carry them out; where tables
    /// grow that is right.
    #[must_use]
    pub fn for_small_things(mut self) -> Self {
        self.options.writers = 1;
        self.options.database.options("-c plan_cache_mode=force_generic_plan");
        self
    }

    pub async fn open(&self) -> anyhow::Result<PostgresStore> {
        open_with(self.options.clone()).await
    }

    pub async fn servers(&self, count: usize) -> anyhow::Result<Vec<Arc<dyn Store>>> {
        let mut servers: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..count {
            servers.push(Arc::new(self.open().await?));
        }
        Ok(servers)
    }

    pub async fn visitor(&self) -> anyhow::Result<Visitor> {
        let mut database = self.options.database.clone();
        let (client, connection) = database.user("ostler").application_name("visitor").connect(NoTls).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move { drop(connection.await) });
        let schema = self.options.schema.clone();
        client.batch_execute(&format!("SET search_path = {schema}")).await?;
        Ok(Visitor { client, schema, _driver: driver })
    }
}

/// Who is at the database beside the servers: holds rows, so that they stand still where they need them, and ends their
/// connections.
pub struct Visitor {
    client: Client,
    schema: String,
    _driver: JoinSet<()>,
}

impl Visitor {
    /// Holds a row of this table until it is let go.
    pub async fn hold(&self, table: &str, id: &[u8; 16]) -> anyhow::Result<()> {
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let sql = format!("BEGIN; SELECT 1 FROM {table} WHERE id = '{id}' FOR UPDATE");
        Ok(self.client.batch_execute(&sql).await?)
    }

    /// Takes the number of a task's next event, and keeps it until it is let go.
    pub async fn hold_next_event(&self, task: &[u8; 16]) -> anyhow::Result<()> {
        let id: String = task.iter().map(|byte| format!("{byte:02x}")).collect();
        let sql = format!(
            "BEGIN; INSERT INTO events (task, seq, position, at, body) \
            SELECT task, max(seq) + 1, -1, 0, '' FROM events WHERE task = '{id}' GROUP BY task"
        );
        Ok(self.client.batch_execute(&sql).await?)
    }

    pub async fn let_go(&self) -> anyhow::Result<()> {
        Ok(self.client.batch_execute("ROLLBACK").await?)
    }

    /// Leaves the store as it was when it was made, in a tenth of the time that it takes to make one. No server may have
    /// it open: it would remember what was in it.
    pub async fn empty(&self) -> anyhow::Result<()> {
        let sql = "SELECT string_agg(format('DELETE FROM %I', tablename), ';') FROM pg_tables \
            WHERE schemaname = $1 AND tablename NOT IN ('migrations', 'origin')";
        let params: &[&(dyn ToSql + Sync)] = &[&self.schema];
        let delete: String = self.client.query_one(sql, params).await?.try_get(0)?;
        Ok(self.client.batch_execute(&delete).await?)
    }

    /// How many connections of the servers wait for a row.
    pub async fn n_waiting(&self) -> anyhow::Result<i64> {
        // Inside a transaction the database would go on telling how things stood at first.
        self.client.batch_execute("SELECT pg_stat_clear_snapshot()").await?;
        self.count(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'",
        )
        .await
    }

    /// Ends every connection of the servers, in the middle of whatever they do. Tells how many.
    pub async fn end_connections(&self) -> anyhow::Result<i64> {
        self.count(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1",
        )
        .await
    }

    pub async fn execute(&self, sql: &str) -> anyhow::Result<()> {
        Ok(self.client.batch_execute(sql).await?)
    }

    pub async fn number(&self, sql: &str) -> anyhow::Result<i64> {
        Ok(self.client.query_one(sql, &[]).await?.try_get(0)?)
    }

    async fn count(&self, sql: &str) -> anyhow::Result<i64> {
        let params: &[&(dyn ToSql + Sync)] = &[&self.schema];
        Ok(self.client.query_one(sql, params).await?.try_get(0)?)
    }
}
