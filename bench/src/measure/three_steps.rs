//! Model, tool, model over HTTP, from submit to done: one at a time, and many at once.

use super::Bench;
use crate::ground::{Agent, Ground};
use crate::load::{Load, Loaded};
use crate::machine::WeatherWatch;
use crate::ostler::Ostler;
use crate::report::{Bar, Figure, Report};
use crate::samples::{Samples, micros, millis};
use crate::settings::Settings;

const WARM_UP: usize = 20;

/// Commits that a task of three steps waits for: accept, claim, two journal writes, end.
const COMMITS: f64 = 4.0;

pub async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let ground = Ground::start().await?;
    let ostler = Ostler::start(&bench.binary, &bench.settings.data.join("three-steps")).await?;
    ground.prepare(&ostler).await?;
    alone(bench, &ground, &ostler, report).await?;
    let Settings { at_once, seconds, .. } = bench.settings;
    let load = Load { agent: Agent::LooksUp, at_once, seconds, rate: None }.put(&ground, &ostler).await?;
    ostler.stop()?;
    report_load(bench, &load, report);
    Ok(())
}

async fn alone(bench: &Bench, ground: &Ground, ostler: &Ostler, report: &mut Report) -> anyhow::Result<()> {
    let mut connection = ostler.connect().await?;
    for _ in 0..WARM_UP {
        ground.run_task(&mut connection, Agent::LooksUp).await?;
    }
    let mut done = Samples::default();
    let watch = WeatherWatch::begin()?;
    for _ in 0..bench.settings.tasks {
        done.push(ground.run_task(&mut connection, Agent::LooksUp).await?.done);
    }
    let weather = watch.end()?;
    let floor = COMMITS * millis(bench.floors.sync.p50()) + 3.0 * millis(bench.floors.round_trip.p50());
    let figure = |what: &str, value| {
        Figure::new(what, millis(value), "ms", weather).beside(floor, "(4 fdatasync + 3 round trips)")
    };
    report.add(figure("three steps, one at a time, p50", done.p50()).bar(Bar::Under(3.0)));
    report.add(figure("three steps, one at a time, p99", done.p99()));
    report.summarize(format!("3 steps alone p50 {:.2} ms", millis(done.p50())));
    Ok(())
}

fn report_load(bench: &Bench, load: &Loaded, report: &mut Report) {
    let Loaded { done, took, used, weather, .. } = load;
    let at_once = bench.settings.at_once;
    let n_tasks = done.len() as f64;
    let per_second = load.per_second();
    let name = |what: &str| format!("three steps, {at_once} at once: {what}");
    let throughput = Figure::new(name("throughput"), per_second, "tasks/s", *weather)
        .beside(bench.floors.sync.per_second(), "fdatasync/s")
        .bar(Bar::AtLeast(2500.0));
    report.add(throughput);
    report.add(Figure::new(name("submit to done, p50"), millis(done.p50()), "ms", *weather));
    report.add(Figure::new(name("submit to done, p99"), millis(done.p99()), "ms", *weather));
    let cpu = micros(used.cpu) / n_tasks.max(1.0);
    let per_step = cpu / f64::from(Agent::LooksUp.n_steps());
    let round_trip = micros(bench.floors.round_trip.p50());
    let beside = |figure: Figure| figure.beside(round_trip, "round trip p50");
    report.add(beside(Figure::new(name("server's CPU per task"), cpu, "µs", *weather)));
    report.add(beside(Figure::new(name("server's CPU per step"), per_step, "µs", *weather)));
    let share = used.cpu.as_secs_f64() / took.as_secs_f64();
    report.add(Figure::new(name("cores the server used"), share, "", *weather));
    report.summarize(format!("{at_once} at once {per_second:.0} tasks/s"));
}
