//! Journaled steps per second: a worker without model and tools, which journals as fast as it is answered.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures_util::future::try_join_all;
use ostler_kernel::bundle::WriteKey;
use ostler_kernel::run::journal::{Progress, StepDone};
use ostler_kernel::step::StepState;
use ostler_kernel::{Block, Entry, Role, Runtime, Step, StepKind, StepOutcome, Usage};
use ostler_link::{Assignment, Caller, JournalRequest, WorkerPort, WorkerPortExt};

use super::Bench;
use crate::machine::{Weather, WeatherWatch};
use crate::office::Office;
use crate::report::{Bar, Figure, Report};
use crate::samples::{Samples, millis};

const WARM_UP: usize = 50;

pub fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let taken = taken(bench)?;
    let floor = millis(bench.floors.sync.p50());
    let figure = |what: &str, value| {
        Figure::new(what, millis(value), "ms", taken.weather_alone).beside(floor, "fdatasync p50")
    };
    report.add(figure("one journaled step, alone, p50", taken.alone.p50()).bar(Bar::Under(1.0)));
    report.add(figure("one journaled step, alone, p99", taken.alone.p99()));
    let at_once = bench.settings.at_once;
    let name = format!("journaled steps, {at_once} runs at once");
    let throughput = Figure::new(name, taken.per_second, "steps/s", taken.weather_together)
        .beside(bench.floors.rows_per_second, "batched rows/s")
        .bar(Bar::AtLeast(15_000.0));
    report.add(throughput);
    report.summarize(format!("{:.0} steps/s", taken.per_second));
    Ok(())
}

struct Taken {
    alone: Samples,
    weather_alone: Weather,
    per_second: f64,
    weather_together: Weather,
}

/// On a runtime of its own: as many threads as `ostler up` has, and not the client's single one.
fn taken(bench: &Bench) -> anyhow::Result<Taken> {
    let settings = &bench.settings;
    let (folder, n_runs) = (settings.data.join("journal"), settings.at_once);
    let (n_alone, load) = (settings.tasks * 4, Duration::from_secs(settings.seconds));
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(take(&folder, n_runs, n_alone, load))
        });
        thread.join().ok().context("the journal's thread panicked")?
    })
}

async fn take(folder: &Path, n_runs: usize, n_alone: usize, load: Duration) -> anyhow::Result<Taken> {
    let mut office = Office::open(folder, n_runs).await?;
    let assignments = std::mem::take(&mut office.assignments);
    let hands: anyhow::Result<Vec<Hand>> =
        assignments.into_iter().map(|assignment| Hand::new(&office, assignment)).collect();
    let mut hands = hands?;
    let first = hands.first_mut().context("no runs")?;
    for _ in 0..WARM_UP {
        first.journal_step().await?;
    }
    let mut alone = Samples::default();
    let watch = WeatherWatch::begin()?;
    for _ in 0..n_alone {
        let start = Instant::now();
        first.journal_step().await?;
        alone.since(start);
    }
    let weather_alone = watch.end()?;
    let watch = WeatherWatch::begin()?;
    let start = Instant::now();
    let working = hands.into_iter().map(|hand| tokio::spawn(hand.work_until(start + load)));
    let counts = try_join_all(working).await?.into_iter().collect::<anyhow::Result<Vec<u64>>>()?;
    let per_second = counts.iter().sum::<u64>() as f64 / start.elapsed().as_secs_f64();
    Ok(Taken { alone, weather_alone, per_second, weather_together: watch.end()? })
}

/// Holds one run.
struct Hand {
    port: Arc<dyn WorkerPort>,
    runtime: Arc<dyn Runtime>,
    caller: Caller,
    last: WriteKey,
    open: Step,
}

impl Hand {
    fn new(office: &Office, assignment: Assignment) -> anyhow::Result<Self> {
        let Assignment { run, open_steps, .. } = assignment;
        Ok(Self {
            port: Arc::clone(&office.port),
            runtime: Arc::clone(&office.runtime),
            caller: office.caller.clone(),
            last: WriteKey { run: run.id, epoch: run.epoch, number: run.journal },
            open: open_steps.into_iter().next().context("a run without a step")?,
        })
    }

    async fn work_until(mut self, end: Instant) -> anyhow::Result<u64> {
        let mut n_steps = 0;
        while Instant::now() < end {
            self.journal_step().await?;
            n_steps += 1;
        }
        Ok(n_steps)
    }

    /// Ends the open step with an answer and opens the next one, in one write.
    async fn journal_step(&mut self) -> anyhow::Result<()> {
        let now = self.runtime.now();
        let answer = "The answer is forty-two, and this is about as long as answers are.";
        let mut done = self.open.clone();
        let usage = Usage { input_tokens: 100, output_tokens: 20, estimated: false, ..Usage::default() };
        done.state = StepState::Done { outcome: StepOutcome::Ok, at: now, took_ms: 1, usage };
        let entry = Entry {
            role: Role::Assistant,
            blocks: vec![Block::Text { text: answer.to_owned() }],
            run: done.id.run,
            step: Some(done.id.index),
        };
        let kind = StepKind::model("mock");
        self.open.id.index += 1;
        self.open.opened_at = now;
        self.last.number += 1;
        let progress = Progress {
            done: vec![StepDone::new(done, answer)],
            entries: vec![entry],
            open: vec![kind],
            consumed: None,
            worked_ms: 1,
        };
        let request = JournalRequest { caller: self.caller.clone(), key: self.last, progress };
        Ok(self.port.journal(request).await?)
    }
}
