//! A connection to the database, with the statements it has prepared.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::try_join_all;
use ostler_kernel::{
    Runtime,
    runtime::{AbortOnDrop, timeout},
};
use tokio_postgres::{Client, Row, Statement, types::ToSql};

use super::{Failed, Options, schema::quote, twist::twist};
use crate::planted::Planted;

pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The longest that a transaction or an answer may take. Whoever is silent for longer may never speak again, whatever
/// the network pretends; and all that waits behind it would wait as long. Well beyond the longest wait for a row.
const ANSWER_WITHIN: Duration = Duration::from_secs(8);

/// A commit that was answered must be on disk, whatever the database's own default. A server that stands still in the
/// middle of something must not hold up the others for long.
///
/// A role or a database may have defaults of its own, meant for other programs, and what is promised here must not hang on
/// them. Each statement sees what was committed before it: where places are counted behind a lock, an older snapshot would
/// show the last one to two claims. Whatever may write does, texts are read as they are written, and no clock but ours ends
/// what takes long. The connection of a server that is gone ends within half a minute, and not with the system's two hours.
///
/// The rest is about plans. Every statement here finds its rows by an index. What the database knows of a table may be
/// an hour old, or from when it was empty, and then it would read all of it, or plan anew each time, which takes longer
/// than to do it. Bitmaps are off because only plain scans of an index mark what is dead in it: in the indexes of what is
/// ready or leased nearly all is, until it is vacuumed.
const SETTINGS: &str = "SET statement_timeout = 0; SET synchronous_commit = on; SET lock_timeout = '3s'; \
    SET idle_in_transaction_session_timeout = '10s'; \
    SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; \
    SET tcp_user_timeout = '30s'; \
    SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; \
    SET default_transaction_deferrable = off; SET row_security = off; SET standard_conforming_strings = on; \
    SET transform_null_equals = off; SET plan_cache_mode = force_generic_plan; \
    SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
    SET enable_indexscan = on; SET enable_indexonlyscan = on; SET enable_nestloop = on; SET enable_sort = on; \
    SET jit = off; \
    SELECT set_config(name, '0', false) FROM pg_settings \
    WHERE name IN ('idle_session_timeout', 'transaction_timeout') AND setting <> '0'";

/// What a connection is told before all else.
pub fn settings(options: &Options) -> String {
    format!("{SETTINGS}; SET search_path = {}", quote(&options.schema))
}

/// Waits for the database, and not for ever.
pub async fn timely<T, E>(
    runtime: &dyn Runtime,
    asking: impl Future<Output = Result<T, E>>,
) -> Result<T, Failed>
where
    Failed: From<E>,
{
    timeout(runtime, ANSWER_WITHIN, asking).await.map_err(|_| Failed::Silent)?.map_err(Failed::from)
}

pub struct Connection {
    pub client: Client,
    pub planted: Planted,
    statements: Mutex<BTreeMap<String, Statement>>,
    /// Of statements that scripts call, by their text.
    names: BTreeMap<&'static str, String>,
    /// What carries the messages. Ends with the connection.
    _driver: AbortOnDrop,
}

impl Connection {
    pub async fn open(options: &Options, runtime: &Arc<dyn Runtime>) -> Result<Self, Failed> {
        timely(&**runtime, Self::try_open(options, runtime)).await
    }

    async fn try_open(options: &Options, runtime: &Arc<dyn Runtime>) -> Result<Self, tokio_postgres::Error> {
        let (client, connection) = options.database.connect(options.tls.clone()).await?;
        let driver = async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database ended");
            }
        };
        let driver = runtime.spawn("database connection", Box::pin(driver)).abort_on_drop();
        client.batch_execute(&settings(options)).await?;
        Ok(Self {
            client,
            planted: options.planted,
            statements: Mutex::default(),
            names: BTreeMap::new(),
            _driver: driver,
        })
    }

    pub async fn prepare(&self, sql: &str) -> Result<Statement, tokio_postgres::Error> {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(&twist(sql, self.planted)).await?;
        let mut statements = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Gives these statements names that a script can call them by. There they fail where they would pass over what is
    /// in their way: a script is not asked how many rows it wrote.
    pub async fn name_all(
        &mut self,
        statements: impl IntoIterator<Item = &'static str>,
    ) -> Result<(), Failed> {
        let mut script = String::new();
        for sql in statements {
            let name = format!("ostler_{}", self.names.len());
            let failing = twist(sql, self.planted).replace(" ON CONFLICT DO NOTHING", "");
            script.push_str(&format!("PREPARE {name} AS {failing};"));
            self.names.insert(sql, name);
        }
        Ok(self.client.batch_execute(&script).await?)
    }

    pub fn name_of(&self, sql: &str) -> Result<String, Failed> {
        self.names.get(sql).cloned().ok_or_else(|| Failed::Body(format!("not prepared: {sql}")))
    }

    /// Prepares these ahead, so that each is sent the moment it is its turn.
    pub async fn prepare_all(&self, statements: &[&str]) -> Result<(), Failed> {
        try_join_all(statements.iter().map(|sql| self.prepare(sql))).await?;
        Ok(())
    }

    pub async fn all(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Failed> {
        let statement = self.prepare(sql).await?;
        Ok(self.client.query(&statement, params).await?)
    }

    pub async fn one(&self, sql: &str, params: Params<'_>) -> Result<Option<Row>, Failed> {
        let statement = self.prepare(sql).await?;
        Ok(self.client.query_opt(&statement, params).await?)
    }

    pub async fn execute(&self, sql: &str, params: Params<'_>) -> Result<u64, Failed> {
        let statement = self.prepare(sql).await?;
        Ok(self.client.execute(&statement, params).await?)
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}
