//! The database that is measured on: Debian's, synced, set up as the guide for many machines says.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;
use ostler_testing::postgres::Postgres;

use crate::machine::{WeatherWatch, settle_disk};
use crate::ostler::{Used, cpu_of};
use crate::report::{Figure, Report};
use crate::samples::{Samples, millis};
use crate::settings::Settings;

pub struct Cluster(Postgres);

/// As in the guide.
const SETTINGS: [&str; 4] =
    ["shared_buffers=1GB", "backend_flush_after=256kB", "min_wal_size=1GB", "max_wal_size=4GB"];

/// So many files of its log, of 16 MiB each, will do for what is measured between two checkpoints, and `min_wal_size` keeps
/// as many.
const LOG_FILES: usize = 64;

/// What the database does by itself, with small transactions that are synced.
#[derive(Debug, Clone, Copy)]
pub struct Floor {
    /// Transactions per second of one client.
    pub alone: f64,
    /// And of many.
    pub together: f64,
    /// Milliseconds at half of that, p99: what the machine keeps from anybody.
    pub at_half_load: f64,
}

/// Measured for so many times as long as throughput: of ten seconds, a tenth that the machine is away is a hundredth.
pub const HALF_LOAD_FACTOR: u64 = 3;

/// Rows of all our tables, as the statistics have them.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    pub live: u64,
    pub dead: u64,
    pub updates: u64,
    /// Updates that left nothing behind in an index.
    pub hot_updates: u64,
}

impl Cluster {
    pub fn start() -> anyhow::Result<Self> {
        Ok(Self(Postgres::start(&SETTINGS)?))
    }

    pub fn floor(&self, settings: &Settings, report: &mut Report) -> anyhow::Result<Floor> {
        self.0.pgbench(&["--initialize", "--quiet", "--scale=10"])?;
        let mut floor = |clients: usize| -> anyhow::Result<f64> {
            let watch = WeatherWatch::begin()?;
            let said = self.pgbench(clients, settings.seconds, &[])?;
            let tps =
                said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
            let tps = tps.context("pgbench said no tps")?;
            let name = format!("floor: pgbench --skip-some-updates, {clients} at once");
            report.add(Figure::new(name, tps, "transactions/s", watch.end()?));
            Ok(tps)
        };
        let (alone, together) = (floor(1)?, floor(settings.at_once)?);
        self.have_worked()?;
        let watch = WeatherWatch::begin()?;
        let p99 = millis(self.latencies(together / 2.0, settings)?.p99());
        let name = "floor: pgbench --skip-some-updates, at half of that, p99";
        report.add(Figure::new(name, p99, "ms", watch.end()?));
        Ok(Floor { alone, together, at_half_load: p99 })
    }

    fn pgbench(&self, clients: usize, seconds: u64, more: &[&str]) -> anyhow::Result<String> {
        let (of_clients, of_time) = (format!("--client={clients}"), format!("--time={seconds}"));
        settle_disk();
        let all = ["--skip-some-updates", "--protocol=prepared", "--jobs=2", &of_clients, &of_time];
        self.0.pgbench(&[&all, more].concat())
    }

    /// Of transactions that come at this rate, each from when it was due.
    fn latencies(&self, rate: f64, settings: &Settings) -> anyhow::Result<Samples> {
        let prefix = format!("--log-prefix={}", settings.data.join("pgbench").display());
        let seconds = settings.seconds * HALF_LOAD_FACTOR;
        self.pgbench(settings.at_once, seconds, &["--log", &prefix, &format!("--rate={rate:.0}")])?;
        let mut samples = Samples::default();
        for file in fs::read_dir(&settings.data)? {
            let file = file?;
            if file.file_name().to_string_lossy().starts_with("pgbench.") {
                for line in fs::read_to_string(file.path())?.lines() {
                    let micros = line.split(' ').nth(2).context("pgbench logged no time")?;
                    samples.push(Duration::from_micros(micros.parse()?));
                }
            }
        }
        Ok(samples)
    }

    /// Leaves the database like one that has worked for a while: it writes its log over files that it has written before.
    /// A new one makes each of them while everybody waits.
    fn have_worked(&self) -> anyhow::Result<()> {
        for _ in 0..LOG_FILES {
            self.0.ask("SELECT pg_logical_emit_message(true, 'bench', repeat('x', 15 << 20)); SELECT pg_switch_wal()")?;
        }
        self.0.ask("CHECKPOINT")?;
        Ok(())
    }

    /// A new one, which has no tables.
    pub fn database(&self, name: &'static str) -> anyhow::Result<Database<'_>> {
        self.0.ask(&format!("CREATE DATABASE {name}"))?;
        Ok(Database { postgres: &self.0, name })
    }
}

pub struct Database<'a> {
    postgres: &'a Postgres,
    name: &'static str,
}

impl Database<'_> {
    pub fn url(&self) -> String {
        self.postgres.url_of(self.name)
    }

    /// Has the database write over the files of its log again, as one does that has worked for long: by itself it would
    /// come to that only after minutes, and make new files until then, each while everybody waits.
    pub fn checkpoint(&self) -> anyhow::Result<()> {
        self.ask("CHECKPOINT").map(drop)
    }

    fn ask(&self, sql: &str) -> anyhow::Result<String> {
        self.postgres.ask(&format!("\\connect {}\n{sql}", self.name))
    }

    /// Adds so many finished tasks, by copies of the one that is there. Their texts are its own: nobody reads them.
    /// What is searched by differs, with ids of the past, a millisecond apart, so that indexes grow at their ends.
    pub fn prefill(&self, finished: usize) -> anyhow::Result<()> {
        let id = |salt: u8| {
            format!(
                "(lpad(to_hex(1500000000000 + n), 12, '0') || '700{salt}8' || substr(md5(n || '-{salt}'), 1, 15))::uuid"
            )
        };
        let (task, run, session) = (id(1), id(2), id(3));
        let copies = [
            // Of the task, and not of what was declared before it; first, while that is one run to look at and not a million.
            // Below all that are there.
            self.copy(
                "events WHERE task IN (SELECT task FROM ostler.runs)",
                finished,
                &[("task", &task), ("position", "n * 16 + seq")],
            )?,
            self.copy("tasks", finished, &[("id", &task), ("name", "name || '-' || n")])?,
            self.copy("runs", finished, &[("id", &run), ("task", &task), ("session", &session)])?,
            self.copy("sessions", finished, &[("id", &session)])?,
            self.copy("steps", finished, &[("run", &run)])?,
            self.copy("entries", finished, &[("session", &session)])?,
        ];
        self.ask(&format!("SET synchronous_commit = off;\n{}", copies.concat()))?;
        self.ask("VACUUM ANALYZE")?;
        self.ask("CHECKPOINT")?;
        Ok(())
    }

    /// SQL that writes the rows of a table, or those of them that are meant, so many times again, with these changes.
    fn copy(&self, meant: &str, times: usize, changes: &[(&str, &str)]) -> anyhow::Result<String> {
        let (table, condition) = meant.split_once(' ').unwrap_or((meant, ""));
        let columns = self.ask(&format!(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'ostler' AND table_name = '{table}'"
        ))?;
        let columns: Vec<&str> = columns.lines().collect();
        let mut values = columns.clone();
        for &(name, changed) in changes {
            let place = columns.iter().position(|column| *column == name);
            values[place.with_context(|| format!("no {name} in {table}"))?] = changed;
        }
        Ok(format!(
            "INSERT INTO ostler.{table} ({}) SELECT {} FROM generate_series(1, {times}) AS n, ostler.{table} {condition} ORDER BY n;\n",
            columns.join(", "),
            values.join(", ")
        ))
    }

    /// By the processes that serve those who are connected, and bytes of log by all.
    pub fn used(&self) -> anyhow::Result<Used> {
        let answer = self.ask(&format!(
            "SELECT pg_current_wal_insert_lsn() - '0/0'; SELECT pid FROM pg_stat_activity \
             WHERE datname = '{}' AND pid <> pg_backend_pid()",
            self.name
        ))?;
        let mut lines = answer.lines();
        let written = lines.next().context("no place in the log")?.parse()?;
        let mut cpu = Duration::ZERO;
        for process in lines {
            cpu += cpu_of(process.parse()?).context("a connection ended while it was measured")?;
        }
        Ok(Used { cpu, written })
    }

    /// What all tables and indexes take on the disk.
    pub fn stored(&self) -> anyhow::Result<u64> {
        let sql =
            "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables WHERE schemaname = 'ostler'";
        Ok(self.ask(sql)?.trim().parse()?)
    }

    pub fn rows(&self) -> anyhow::Result<Rows> {
        let answer = self.ask(
            "SELECT sum(n_live_tup), sum(n_dead_tup), sum(n_tup_upd), sum(n_tup_hot_upd) \
             FROM pg_stat_user_tables WHERE schemaname = 'ostler'",
        )?;
        let numbers: Vec<u64> = answer.split('|').map(str::parse).collect::<Result<_, _>>()?;
        let &[live, dead, updates, hot_updates] = numbers.as_slice() else {
            anyhow::bail!("not four numbers: {answer}");
        };
        Ok(Rows { live, dead, updates, hot_updates })
    }
}
