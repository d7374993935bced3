//! The tables, as migrations: each runs once, in order, under a lock that keeps other servers' starts apart.
//!
//! A row is its columns that are searched or judged by, and a `body` with all of it as JSON, as in SQLite.
//! Indexes on what is live are partial, so that a million finished tasks don't weigh on the next one. Text is
//! compared byte by byte, so that every store sorts alike.

use std::{collections::BTreeMap, time::Duration};

use ostler_kernel::Runtime;
use tokio_postgres::{Client, error::SqlState};

use super::{OpenError, Options};
use crate::planted::Bug;

pub const MIGRATIONS: &[&str] = &[
    r#"
CREATE TABLE tasks (
    id uuid PRIMARY KEY, namespace text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    key text COLLATE "C", state text NOT NULL, last_input bigint NOT NULL DEFAULT 0,
    consumed_input bigint NOT NULL DEFAULT 0, archived_at bigint, request text NOT NULL, body text NOT NULL,
    CONSTRAINT tasks_name UNIQUE (namespace, name), CONSTRAINT tasks_key UNIQUE (namespace, key));

CREATE TABLE lanes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, namespace text COLLATE "C" NOT NULL,
    class text COLLATE "C" NOT NULL, slots bigint, UNIQUE (namespace, class));

CREATE TABLE runs (
    id uuid PRIMARY KEY, task uuid NOT NULL, session uuid NOT NULL, place bigint NOT NULL, lane bigint NOT NULL,
    state text NOT NULL, epoch bigint NOT NULL, journal bigint NOT NULL, write_epoch bigint, write_number bigint,
    rank bigint, due bigint, live boolean, ended boolean NOT NULL DEFAULT false,
    worker text COLLATE "C", incarnation bigint, claim bigint, body text NOT NULL) WITH (fillfactor = 70);
CREATE INDEX runs_ready ON runs (lane, rank, id) WHERE rank IS NOT NULL;
CREATE INDEX runs_due ON runs (due, id) WHERE due IS NOT NULL;
CREATE INDEX runs_leased ON runs (worker, id) WHERE worker IS NOT NULL;
CREATE INDEX runs_busy ON runs (lane) WHERE worker IS NOT NULL;
CREATE UNIQUE INDEX runs_live ON runs (session) WHERE live;
CREATE INDEX runs_session ON runs (session, place) WHERE NOT ended;

CREATE TABLE sessions (id uuid PRIMARY KEY, namespace text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL, key text COLLATE "C", version bigint NOT NULL, body text NOT NULL,
    CONSTRAINT sessions_key UNIQUE (namespace, subject, key));

CREATE TABLE steps (run uuid NOT NULL, step bigint NOT NULL, open boolean NOT NULL, body text NOT NULL,
    PRIMARY KEY (run, step)) WITH (fillfactor = 80);
CREATE TABLE entries (session uuid NOT NULL, seq bigint NOT NULL, body text NOT NULL, PRIMARY KEY (session, seq));
CREATE TABLE events (position bigint PRIMARY KEY, task uuid NOT NULL, seq bigint NOT NULL, at bigint NOT NULL,
    body text NOT NULL, UNIQUE (task, seq));
CREATE TABLE inputs (task uuid NOT NULL, number bigint NOT NULL, consumed_by uuid, body text NOT NULL,
    PRIMARY KEY (task, number));
CREATE TABLE blockers (id uuid PRIMARY KEY, task uuid NOT NULL, body text NOT NULL);
CREATE TABLE workers (name text COLLATE "C" PRIMARY KEY, incarnation bigint NOT NULL, counter bigint NOT NULL,
    claims bigint NOT NULL, registered_at bigint NOT NULL, instance bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE resources (kind text COLLATE "C" NOT NULL, namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL, version bigint NOT NULL, generation bigint NOT NULL, created_at bigint NOT NULL,
    body text NOT NULL, PRIMARY KEY (kind, namespace, name));
CREATE TABLE blobs (id bytea PRIMARY KEY, bytes bytea NOT NULL);

-- Positions are made of transaction numbers, which begin anew in another cluster: so much is added to them.
CREATE TABLE origin (base bigint NOT NULL);
INSERT INTO origin VALUES (0);
"#,
    // What workers offer and what runs ask for. A class may have several lanes now: their pool is the class. A server
    // that does not know of it yet makes lanes without one.
    r#"
ALTER TABLE workers ADD COLUMN offer text NOT NULL DEFAULT '{}';
ALTER TABLE workers ADD COLUMN standing text NOT NULL DEFAULT 'open';
ALTER TABLE lanes ADD COLUMN pool text COLLATE "C";
ALTER TABLE lanes ADD COLUMN requires text NOT NULL DEFAULT '';
"#,
    // A task can be forgotten; and of a million, those of one namespace are listed, or those that did not succeed.
    r#"
CREATE INDEX blockers_task ON blockers (task);
CREATE INDEX tasks_namespace ON tasks (namespace, id);
CREATE INDEX tasks_troubled ON tasks (id) WHERE state IN ('failed', 'dead_letter', 'cancelled', 'dropped');
"#,
    // Nobody searches by what a row says, and statistics of it took half of the time of looking at a table.
    r#"
ALTER TABLE tasks ALTER COLUMN request SET STATISTICS 0, ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE runs ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE sessions ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE steps ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE entries ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE events ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE inputs ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE blockers ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE resources ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE blobs ALTER COLUMN bytes SET STATISTICS 0;
"#,
    // Every question is answered by an index that it names the beginning of, so coarse statistics do; looking at a table
    // takes a tenth of the time with a sample of a tenth of the rows.
    r#"
DO $$ DECLARE of record; BEGIN
    FOR of IN SELECT attrelid::regclass AS rows, attname AS name FROM pg_attribute
        WHERE attrelid = ANY (ARRAY['tasks', 'runs', 'sessions', 'steps', 'entries', 'events', 'inputs']::regclass[])
        AND attnum > 0 AND NOT attisdropped AND attstattarget <> 0
    LOOP EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 10', of.rows, of.name); END LOOP;
END $$;
"#,
    // A plan that nobody names any more goes. Servers that do not know of it yet put theirs without a time: it is the
    // time at which they do.
    r#"
ALTER TABLE blobs ADD COLUMN put_at bigint NOT NULL DEFAULT (extract(epoch FROM now()) * 1000)::bigint;
"#,
    // Whether resources have changed is asked at every sweep, and answered by a number. A trigger raises it, so that it
    // counts for servers too that do not know of it yet; and a sequence, since a row would make changes wait for each other.
    // A session changes with every step, in its page if that has room.
    r#"
CREATE SEQUENCE resource_changes;
CREATE FUNCTION note_resource_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM nextval(format('%I.resource_changes', TG_TABLE_SCHEMA)::regclass); RETURN NULL; END $$;
CREATE TRIGGER note_change AFTER INSERT OR UPDATE OR DELETE ON resources
    FOR EACH STATEMENT EXECUTE FUNCTION note_resource_change();
ALTER TABLE sessions SET (fillfactor = 75);
"#,
];

/// So long a migration waits for a table. Whoever needs that table meanwhile waits behind it, so no longer than they can
/// bear (`lock_timeout` of every connection).
const WAIT_FOR_A_TABLE: &str = "SET LOCAL lock_timeout = '2s'";

/// Between two looks at whether those who were in the way are done.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How often is said that one still waits.
const SAY_EVERY: Duration = Duration::from_secs(30);

/// Brings the schema to the version this binary knows. The connection's search path leads there. Where somebody reads for
/// long, such as a backup, nothing is changed until that is done, and others go on meanwhile.
pub async fn migrate(client: &mut Client, options: &Options, runtime: &dyn Runtime) -> Result<(), OpenError> {
    loop {
        match try_migrate(client, options).await {
            Err(OpenError::Database(error)) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                wait_for_others(client, options, runtime).await?;
            }
            done => return done,
        }
    }
}

async fn try_migrate(client: &mut Client, options: &Options) -> Result<(), OpenError> {
    let schema = &options.schema;
    let transaction = client.transaction().await?;
    // Whoever comes second waits here as long as it takes, and then finds nothing left to do.
    transaction.batch_execute("SET LOCAL lock_timeout = 0").await?;
    transaction.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 7))", &[&schema]).await?;
    transaction.batch_execute(WAIT_FOR_A_TABLE).await?;
    let quoted = quote(schema);
    transaction
        .batch_execute(&format!(
            "CREATE SCHEMA IF NOT EXISTS {quoted}; \
             CREATE TABLE IF NOT EXISTS {quoted}.migrations (version bigint PRIMARY KEY)"
        ))
        .await?;
    let row = transaction.query_one("SELECT coalesce(max(version), 0) FROM migrations", &[]).await?;
    let (found, known) = (row.get::<_, i64>(0), MIGRATIONS.len() as i64);
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    for (version, migration) in (1_i64..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(0)) {
        transaction.batch_execute(migration).await?;
        transaction.execute("INSERT INTO migrations VALUES ($1)", &[&version]).await?;
    }
    if options.planted.is(Bug::TwoLiveRuns) {
        transaction.batch_execute("DROP INDEX IF EXISTS runs_live").await?;
    }
    keep_positions_rising(&transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// Transactions of others that are at the tables, and who they are. What they ask is not said: there may be anything in it.
const AT_THE_TABLES: &str = "SELECT virtualtransaction, min(concat_ws(' ', 'process ' || pid, 'of ' || usename, \
        nullif(application_name, ''), 'at ' || relname, 'since ' || date_trunc('second', xact_start))) \
    FROM pg_locks JOIN pg_class ON pg_class.oid = relation JOIN pg_namespace ON pg_namespace.oid = relnamespace \
    LEFT JOIN pg_stat_activity USING (pid) \
    WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND granted \
    AND nspname = $1 AND pid IS DISTINCT FROM pg_backend_pid() GROUP BY 1";

/// Ends when all transactions have that are at the tables now: those that begin meanwhile are not waited for.
async fn wait_for_others(client: &Client, options: &Options, runtime: &dyn Runtime) -> Result<(), OpenError> {
    let mut in_the_way = at_the_tables(client, options).await?;
    let mut say_at = runtime.monotonic() + LOOK_EVERY;
    while !in_the_way.is_empty() {
        runtime.sleep(LOOK_EVERY).await;
        let there = at_the_tables(client, options).await?;
        in_the_way.retain(|transaction, _| there.contains_key(transaction));
        if !in_the_way.is_empty() && runtime.monotonic() >= say_at {
            let by: Vec<&str> = in_the_way.values().map(String::as_str).collect();
            tracing::warn!(
                by = by.join(", "),
                "the tables can't be brought up to date while others are at them: waiting"
            );
            say_at = runtime.monotonic() + SAY_EVERY;
        }
    }
    Ok(())
}

/// By their number.
async fn at_the_tables(client: &Client, options: &Options) -> Result<BTreeMap<String, String>, OpenError> {
    let rows = client.query(AT_THE_TABLES, &[&options.schema]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// After a restore into another cluster transaction numbers may be smaller than they were.
async fn keep_positions_rising(transaction: &tokio_postgres::Transaction<'_>) -> Result<(), OpenError> {
    let sql = "UPDATE origin SET base = last - pg_current_xact_id()::text::bigint + 1 \
        FROM (SELECT coalesce(max(position), 0) >> 16 AS last FROM events) AS log \
        WHERE last >= base + pg_current_xact_id()::text::bigint";
    transaction.execute(sql, &[]).await?;
    Ok(())
}

/// As an identifier, whatever is in it.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
