//! The cost of a task with few and with many finished ones in the store. Both servers are up and take turns,
//! so that whatever else the machine does weighs on both alike.
//!
//! On PostgreSQL, what the database used for a server is counted with what the server used.

use std::fs;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use futures_util::future::try_join_all;

use super::Bench;
use super::shared::{Cluster, Database};
use crate::ground::{Agent, Ground};
use crate::http::{Connection, Request};
use crate::machine::{Weather, WeatherWatch};
use crate::ostler::{Ostler, Used};
use crate::prefill;
use crate::report::{Bar, Figure, Report};
use crate::samples::{Samples, micros, millis};

const FEW: usize = 1000;
const AT_ONCE: usize = 8;

/// Turns that each server gets.
const TURNS: usize = 8;

/// The newest, those that live, those that failed, those of a namespace that has none.
const LISTS: [&str; 4] = [
    "/v1/tasks?limit=50",
    "/v1/tasks?limit=50&state=running",
    "/v1/tasks?limit=50&state=failed",
    "/v1/tasks?limit=50&namespace=empty",
];

/// In each turn.
const TIMES_LISTED: usize = 20;

/// Within ten per cent.
const BAR: Bar = Bar::Under(1.1);

pub async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let ground = Ground::start().await?;
    let few = Side::on_sqlite(bench, &ground, FEW).await?;
    let many = Side::on_sqlite(bench, &ground, bench.settings.prefill).await?;
    take_turns(bench, &ground, "", few, many, report).await
}

pub async fn measure_on(bench: &Bench, cluster: &Cluster, report: &mut Report) -> anyhow::Result<()> {
    let ground = Ground::start().await?;
    let few = Side::on_postgres(bench, &ground, cluster.database("few")?, FEW).await?;
    let many = Side::on_postgres(bench, &ground, cluster.database("many")?, bench.settings.prefill).await?;
    take_turns(bench, &ground, "PostgreSQL: ", few, many, report).await
}

async fn take_turns(
    bench: &Bench,
    ground: &Ground,
    place: &str,
    mut few: Side<'_>,
    mut many: Side<'_>,
    report: &mut Report,
) -> anyhow::Result<()> {
    // Both once uncounted: caches are filled by it.
    let per_turn = bench.settings.cost_tasks.div_ceil(TURNS);
    for side in [&mut few, &mut many] {
        side.connect().await?;
        side.turn(ground, per_turn).await?;
        side.cost = Cost::default();
    }
    let watch = WeatherWatch::begin()?;
    for _ in 0..TURNS {
        few.turn(ground, per_turn).await?;
        many.turn(ground, per_turn).await?;
    }
    let weather = watch.end()?;
    compare(report, place, few.finish()?, many.finish()?, weather);
    Ok(())
}

fn compare(report: &mut Report, place: &str, few: (usize, Cost), many: (usize, Cost), weather: Weather) {
    let figures = [
        ("CPU per task", "µs", few.1.cpu(), many.1.cpu()),
        ("bytes written per task", "KB", few.1.kilobytes(), many.1.kilobytes()),
        ("accept to first model call, p50", "ms", few.1.claim(), many.1.claim()),
        ("slowest of four lists, p50", "ms", few.1.listing(), many.1.listing()),
    ];
    let mut ratios = Vec::new();
    for (what, unit, with_few, with_many) in figures {
        for (n_finished, value) in [(few.0, with_few), (many.0, with_many)] {
            report.add(Figure::new(format!("{place}{what}, {n_finished} finished"), value, unit, weather));
        }
        let ratio = with_many / with_few.max(f64::MIN_POSITIVE);
        report.add(Figure::new(format!("{place}{what}, ratio"), ratio, "", weather).bar(BAR));
        ratios.push(ratio);
    }
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    let (few, many) = (count(few.0), count(many.0));
    report.summarize(format!("{place}{many}/{few} ratio {worst:.2}"));
}

/// A server over a store with finished tasks.
struct Side<'a> {
    n_finished: usize,
    ostler: Ostler,
    /// If that is where the store is.
    database: Option<Database<'a>>,
    connections: Vec<Connection>,
    cost: Cost,
}

#[derive(Default)]
struct Cost {
    used: Option<Used>,
    first_call: Samples,
    lists: [Samples; LISTS.len()],
}

impl<'a> Side<'a> {
    async fn on_sqlite(bench: &Bench, ground: &Ground, n_finished: usize) -> anyhow::Result<Self> {
        let data = bench.settings.data.join(format!("history-{n_finished}"));
        let ostler = Ostler::start(&bench.binary, &data).await?;
        ground.prepare(&ostler).await?;
        ground.run_task(&mut ostler.connect().await?, Agent::Answers).await?;
        let store = ostler.store_file();
        ostler.stop()?;
        let start = Instant::now();
        prefill::prefill(&store, n_finished)?;
        let size = fs::metadata(&store).context("the store is gone")?.len() >> 20;
        eprintln!("prefilled {n_finished} finished tasks in {:.1?}: {size} MiB", start.elapsed());
        let ostler = Ostler::start(&bench.binary, &data).await?;
        Ok(Self::beside(ostler, None, n_finished))
    }

    async fn on_postgres(
        bench: &Bench,
        ground: &Ground,
        database: Database<'a>,
        n_finished: usize,
    ) -> anyhow::Result<Self> {
        let data = bench.settings.data.join(format!("shared-history-{n_finished}"));
        let ostler = Ostler::start_as(&bench.binary, &data, &["up", "--store", &database.url()]).await?;
        ground.prepare(&ostler).await?;
        ground.run_task(&mut ostler.connect().await?, Agent::Answers).await?;
        let start = Instant::now();
        database.prefill(n_finished)?;
        eprintln!("prefilled {n_finished} finished tasks in {:.1?}", start.elapsed());
        Ok(Self::beside(ostler, Some(database), n_finished))
    }

    fn beside(ostler: Ostler, database: Option<Database<'a>>, n_finished: usize) -> Self {
        Self { n_finished, ostler, database, connections: Vec::new(), cost: Cost::default() }
    }

    /// Once both sides are there: a connection that is idle for long is closed.
    async fn connect(&mut self) -> anyhow::Result<()> {
        for _ in 0..AT_ONCE {
            self.connections.push(self.ostler.connect().await?);
        }
        Ok(())
    }

    fn used(&self) -> anyhow::Result<Used> {
        let used = self.ostler.used()?;
        Ok(match &self.database {
            Some(database) => used.plus(database.used()?),
            None => used,
        })
    }

    async fn turn(&mut self, ground: &Ground, n_tasks: usize) -> anyhow::Result<()> {
        let before = self.used()?;
        let each = n_tasks.div_ceil(AT_ONCE);
        let clients = self.connections.iter_mut().map(async |connection| {
            let mut first_call = Samples::default();
            for _ in 0..each {
                first_call.push(ground.run_task(connection, Agent::LooksUp).await?.first_call);
            }
            anyhow::Ok(first_call)
        });
        for samples in try_join_all(clients).await? {
            self.cost.first_call.extend(samples);
        }
        self.cost.add(self.used()?.since(before));
        self.list().await
    }

    async fn list(&mut self) -> anyhow::Result<()> {
        let connection = self.connections.first_mut().context("nobody is connected")?;
        for _ in 0..TIMES_LISTED {
            for (path, samples) in LISTS.into_iter().zip(&mut self.cost.lists) {
                let start = Instant::now();
                let answer =
                    connection.call(&Request { method: "GET", path, accept: "*/*", body: "" }).await?;
                samples.since(start);
                ensure!(answer.status == 200, "{path} was refused: {}", answer.status);
            }
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<(usize, Cost)> {
        self.ostler.stop()?;
        Ok((self.n_finished, self.cost))
    }
}

impl Cost {
    fn add(&mut self, used: Used) {
        let sum = self.used.map_or(used, |before| before.plus(used));
        self.used = Some(sum);
    }

    fn cpu(&self) -> f64 {
        self.used.map_or(0.0, |used| micros(used.cpu)) / self.n_tasks()
    }

    fn kilobytes(&self) -> f64 {
        self.used.map_or(0.0, |used| used.written as f64 / 1024.0) / self.n_tasks()
    }

    fn claim(&self) -> f64 {
        millis(self.first_call.p50())
    }

    fn listing(&self) -> f64 {
        self.lists.iter().map(|samples| millis(samples.p50())).fold(0.0, f64::max)
    }

    fn n_tasks(&self) -> f64 {
        self.first_call.len().max(1) as f64
    }
}

/// As people say it: 1k, 1M.
fn count(number: usize) -> String {
    match number {
        1_000_000.. if number.is_multiple_of(1_000_000) => format!("{}M", number / 1_000_000),
        1000.. if number.is_multiple_of(1000) => format!("{}k", number / 1000),
        _ => number.to_string(),
    }
}
