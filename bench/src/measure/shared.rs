//! The same work on PostgreSQL: by one process, and by workers that dial. How soon a task is picked up, idle and at
//! half load; throughput with one, two and four workers; what a task costs beside a million finished ones; and what is
//! left to be vacuumed.

mod database;
mod workers;

pub use self::database::{Cluster, Database};

use futures_util::future::try_join_all;

use self::database::{Floor, HALF_LOAD_FACTOR};
use self::workers::Workers;
use super::{Bench, history};
use crate::ground::{Agent, Ground};
use crate::load::{Load, Loaded};
use crate::machine::WeatherWatch;
use crate::ostler::{Ostler, Used};
use crate::report::{Bar, Figure, Report};
use crate::samples::{Samples, micros, millis};

const WARM_UP: usize = 50;

/// At half load, p99 in milliseconds.
const PICKED_UP: Bar = Bar::Under(20.0);

pub async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let cluster = Cluster::start()?;
    let floor = cluster.floor(&bench.settings, report)?;
    if bench.settings.workers.contains(&0) {
        one_process(bench, &cluster, floor, report).await?;
    }
    over_the_link(bench, &cluster, floor, report).await?;
    history::measure_on(bench, &cluster, report).await
}

async fn one_process(
    bench: &Bench,
    cluster: &Cluster,
    floor: Floor,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (ground, database) = (Ground::start().await?, cluster.database("alone")?);
    let data = bench.settings.data.join("shared-alone");
    let server = Ostler::start_as(&bench.binary, &data, &["up", "--store", &database.url()]).await?;
    ground.prepare(&server).await?;
    let name = "PostgreSQL, one process".to_owned();
    let site = Site { bench, ground: &ground, server: &server, database: &database, floor, name };
    site.idle(report).await?;
    let rate = site.full_load(report).await?;
    site.half_load(rate, report).await?;
    server.stop()
}

async fn over_the_link(
    bench: &Bench,
    cluster: &Cluster,
    floor: Floor,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (ground, database) = (Ground::start().await?, cluster.database("linked")?);
    let data = bench.settings.data.join("shared-linked");
    let server = Ostler::start_as(&bench.binary, &data, &["server", "--store", &database.url()]).await?;
    ground.prepare(&server).await?;
    for &count in bench.settings.workers.iter().filter(|count| **count > 0) {
        let workers = Workers::start(bench, &server, count).await?;
        let name = format!("PostgreSQL, link, {count} workers");
        let site = Site { bench, ground: &ground, server: &server, database: &database, floor, name };
        site.idle(report).await?;
        let rate = site.full_load(report).await?;
        site.half_load(rate, report).await?;
        workers.stop()?;
    }
    let workers = Workers::start(bench, &server, 2).await?;
    many_tasks(bench, &ground, &server, &database, report).await?;
    workers.stop()?;
    server.stop()
}

/// Who is measured.
struct Site<'a> {
    bench: &'a Bench,
    ground: &'a Ground,
    server: &'a Ostler,
    database: &'a Database<'a>,
    floor: Floor,
    name: String,
}

impl Site<'_> {
    /// One task at a time.
    async fn idle(&self, report: &mut Report) -> anyhow::Result<()> {
        let mut connection = self.server.connect().await?;
        for _ in 0..WARM_UP {
            self.ground.run_task(&mut connection, Agent::LooksUp).await?;
        }
        let (mut first_call, mut done) = (Samples::default(), Samples::default());
        let watch = WeatherWatch::begin()?;
        for _ in 0..self.bench.settings.tasks {
            let times = self.ground.run_task(&mut connection, Agent::LooksUp).await?;
            first_call.push(times.first_call);
            done.push(times.done);
        }
        let weather = watch.end()?;
        let figure = |what: &str, value| {
            let figure = Figure::new(format!("{}: {what}", self.name), millis(value), "ms", weather);
            figure.beside(1e3 / self.floor.alone, "pgbench's transaction")
        };
        report.add(figure("picked up, idle, p50", first_call.p50()));
        report.add(figure("picked up, idle, p99", first_call.p99()));
        report.add(figure("three steps, one at a time, p50", done.p50()));
        Ok(())
    }

    /// Gives the tasks of three steps per second.
    async fn full_load(&self, report: &mut Report) -> anyhow::Result<f64> {
        let claims = self.put(Agent::Answers, None).await?;
        let before = self.database.used()?;
        let steps = self.put(Agent::LooksUp, None).await?;
        self.cost("at full load", &steps, before, report)?;
        let rate = steps.per_second();
        let per_second = rate * f64::from(Agent::LooksUp.n_steps());
        let figures = [
            ("claims (tasks of one step)", claims.per_second(), claims.weather),
            ("steps (tasks of three)", per_second, steps.weather),
        ];
        for (what, value, weather) in figures {
            let figure = Figure::new(format!("{}: {what}", self.name), value, "/s", weather);
            report.add(figure.beside(self.floor.together, "pgbench's transactions"));
        }
        report.summarize(format!(
            "{}: {:.0} claims/s {per_second:.0} steps/s",
            self.name,
            claims.per_second()
        ));
        Ok(rate)
    }

    async fn half_load(&self, full: f64, report: &mut Report) -> anyhow::Result<()> {
        let before = self.database.used()?;
        let half = self.put(Agent::LooksUp, Some(full / 2.0)).await?;
        self.cost("at half load", &half, before, report)?;
        let name =
            |what: &str| format!("{}: picked up at {:.0} tasks/s, {what}", self.name, half.per_second());
        let (p50, p99) = (millis(half.first_call.p50()), millis(half.first_call.p99()));
        report.add(Figure::new(name("p50"), p50, "ms", half.weather));
        let p99_figure = Figure::new(name("p99"), p99, "ms", half.weather).bar(PICKED_UP);
        report.add(p99_figure.beside(self.floor.at_half_load, "pgbench's at half of its load"));
        report.summarize(format!("half load p50 {p50:.1} ms p99 {p99:.1} ms"));
        Ok(())
    }

    /// Of server and database. The database's is taken of the whole load and counted by its share.
    fn cost(&self, when: &str, load: &Loaded, before: Used, report: &mut Report) -> anyhow::Result<()> {
        let database = self.database.used()?.since(before).cpu.mul_f64(load.share());
        let per_task = |cpu| micros(cpu) / load.done.len().max(1) as f64;
        let name = |who: &str| format!("{}: CPU of the {who} per task, {when}", self.name);
        report.add(Figure::new(name("server"), per_task(load.used.cpu), "µs", load.weather));
        report.add(Figure::new(name("database"), per_task(database), "µs", load.weather));
        Ok(())
    }

    async fn put(&self, agent: Agent, rate: Option<f64>) -> anyhow::Result<Loaded> {
        let settings = &self.bench.settings;
        let seconds = settings.seconds * if rate.is_some() { HALF_LOAD_FACTOR } else { 1 };
        self.database.checkpoint()?;
        Load { agent, at_once: settings.at_once, seconds, rate }.put(self.ground, self.server).await
    }
}

/// What updates leave behind, with the database's own cleaning as Debian sets it up.
async fn many_tasks(
    bench: &Bench,
    ground: &Ground,
    server: &Ostler,
    database: &Database<'_>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (before, stored, watch) = (database.rows()?, database.stored()?, WeatherWatch::begin()?);
    let each = bench.settings.shared_tasks.div_ceil(bench.settings.at_once);
    let clients = (0..bench.settings.at_once).map(async |_| {
        let mut connection = server.connect().await?;
        for _ in 0..each {
            ground.run_task(&mut connection, Agent::LooksUp).await?;
        }
        anyhow::Ok(())
    });
    try_join_all(clients).await?;
    let (rows, weather) = (database.rows()?, watch.end()?);
    let n_tasks = each * bench.settings.at_once;
    let name = |what: &str| format!("PostgreSQL: {what} after {n_tasks} tasks");
    let dead = Figure::new(name("dead rows"), rows.dead as f64, "", weather);
    report.add(dead.beside(rows.live as f64, "live rows"));
    let (updates, hot) = (rows.updates - before.updates, rows.hot_updates - before.hot_updates);
    let share = hot as f64 / updates.max(1) as f64 * 100.0;
    report.add(Figure::new(name("updates that touched no index"), share, "%", weather));
    report.add(Figure::new(name("updates per task"), updates as f64 / n_tasks as f64, "", weather));
    let kilobytes = database.stored()?.saturating_sub(stored) as f64 / 1024.0 / n_tasks as f64;
    report.add(Figure::new(name("on disk per task of three steps,"), kilobytes, "KB", weather));
    report.summarize(format!("{} dead rows after {n_tasks} tasks", rows.dead));
    Ok(())
}
