//! The cost of a task with few and with many finished ones in the store. Both servers are up and take turns,
//! so that whatever else the machine does weighs on both alike.

use std::fs;
use std::time::Instant;

use anyhow::Context as _;
use futures_util::future::try_join_all;

use super::Bench;
use crate::ground::{Agent, Ground};
use crate::http::Connection;
use crate::machine::{Weather, WeatherWatch};
use crate::ostler::{Ostler, Used};
use crate::prefill;
use crate::report::{Bar, Figure, Report};
use crate::samples::{Samples, micros, millis};

const FEW: usize = 1000;
const AT_ONCE: usize = 8;

/// Turns that each server gets.
const TURNS: usize = 8;

/// Within ten per cent.
const BAR: Bar = Bar::Under(1.1);

pub async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let ground = Ground::start().await?;
    let many = bench.settings.prefill;
    let mut few_side = Side::prepare(bench, &ground, FEW).await?;
    let mut many_side = Side::prepare(bench, &ground, many).await?;
    // Both once uncounted: caches are filled by it.
    let per_turn = bench.settings.cost_tasks.div_ceil(TURNS);
    for side in [&mut few_side, &mut many_side] {
        side.turn(&ground, per_turn).await?;
        side.cost = Cost::default();
    }
    let watch = WeatherWatch::begin()?;
    for _ in 0..TURNS {
        few_side.turn(&ground, per_turn).await?;
        many_side.turn(&ground, per_turn).await?;
    }
    let weather = watch.end()?;
    compare(report, (FEW, few_side.finish()?), (many, many_side.finish()?), weather);
    Ok(())
}

fn compare(report: &mut Report, few: (usize, Cost), many: (usize, Cost), weather: Weather) {
    let figures = [
        ("server's CPU per task", "µs", few.1.cpu(), many.1.cpu()),
        ("bytes written per task", "KB", few.1.kilobytes(), many.1.kilobytes()),
        ("accept to first model call, p50", "ms", few.1.claim(), many.1.claim()),
    ];
    let mut ratios = Vec::new();
    for (what, unit, with_few, with_many) in figures {
        for (n_finished, value) in [(few.0, with_few), (many.0, with_many)] {
            report.add(Figure::new(format!("{what}, {n_finished} finished"), value, unit, weather));
        }
        let ratio = with_many / with_few.max(f64::MIN_POSITIVE);
        report.add(Figure::new(format!("{what}, ratio"), ratio, "", weather).bar(BAR));
        ratios.push(ratio);
    }
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    let (few, many) = (count(few.0), count(many.0));
    report.summarize(format!("{many}/{few} ratio {worst:.2}"));
}

/// A server over a store with finished tasks.
struct Side {
    ostler: Ostler,
    connections: Vec<Connection>,
    cost: Cost,
}

#[derive(Default)]
struct Cost {
    used: Option<Used>,
    first_call: Samples,
}

impl Side {
    async fn prepare(bench: &Bench, ground: &Ground, n_finished: usize) -> anyhow::Result<Self> {
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
        let mut connections = Vec::new();
        for _ in 0..AT_ONCE {
            connections.push(ostler.connect().await?);
        }
        Ok(Self { ostler, connections, cost: Cost::default() })
    }

    async fn turn(&mut self, ground: &Ground, n_tasks: usize) -> anyhow::Result<()> {
        let before = self.ostler.used()?;
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
        self.cost.add(self.ostler.used()?.since(before));
        Ok(())
    }

    fn finish(self) -> anyhow::Result<Cost> {
        self.ostler.stop()?;
        Ok(self.cost)
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
