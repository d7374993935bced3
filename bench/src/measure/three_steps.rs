//! Model, tool, model over HTTP, from submit to done: one at a time, and many at once.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use futures_util::future::{join, try_join_all};

use super::Bench;
use crate::ground::{Agent, Ground};
use crate::machine::{Weather, WeatherWatch};
use crate::ostler::{Ostler, Used};
use crate::report::{Bar, Figure, Report};
use crate::samples::{Samples, micros, millis};

const WARM_UP: usize = 20;

/// Under load, before counting begins.
const SETTLE: Duration = Duration::from_secs(1);

/// Commits that a task of three steps waits for: accept, claim, two journal writes, end.
const COMMITS: f64 = 4.0;

pub async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let ground = Ground::start().await?;
    let ostler = Ostler::start(&bench.binary, &bench.settings.data.join("three-steps")).await?;
    ground.prepare(&ostler).await?;
    alone(bench, &ground, &ostler, report).await?;
    let load = together(bench, &ground, &ostler).await?;
    ostler.stop()?;
    load.report(bench, report);
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

/// What happened while it was counted.
struct Load {
    done: Samples,
    took: Duration,
    used: Used,
    weather: Weather,
}

async fn together(bench: &Bench, ground: &Ground, ostler: &Ostler) -> anyhow::Result<Load> {
    let mut connections = Vec::new();
    for _ in 0..bench.settings.at_once {
        connections.push(ostler.connect().await?);
    }
    let (counting, stopping) = (Cell::new(false), Cell::new(false));
    let done = RefCell::new(Samples::default());
    let clients = connections.into_iter().map(async |mut connection| {
        while !stopping.get() {
            let times = ground.run_task(&mut connection, Agent::LooksUp).await?;
            if counting.get() {
                done.borrow_mut().push(times.done);
            }
        }
        anyhow::Ok(())
    });
    let counted = async {
        tokio::time::sleep(SETTLE).await;
        let (before, watch, start) = (ostler.used()?, WeatherWatch::begin()?, Instant::now());
        counting.set(true);
        tokio::time::sleep(Duration::from_secs(bench.settings.seconds)).await;
        counting.set(false);
        let took = start.elapsed();
        let (used, weather) = (ostler.used()?.since(before), watch.end()?);
        stopping.set(true);
        anyhow::Ok((took, used, weather))
    };
    let (clients, counted) = join(try_join_all(clients), counted).await;
    clients?;
    let (took, used, weather) = counted?;
    Ok(Load { done: done.into_inner(), took, used, weather })
}

impl Load {
    fn report(&self, bench: &Bench, report: &mut Report) {
        let Self { done, took, used, weather } = self;
        let at_once = bench.settings.at_once;
        let n_tasks = done.len() as f64;
        let per_second = n_tasks / took.as_secs_f64();
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
}
