//! From the start of `ostler up` to its first answer, and the memory it holds when nothing happens.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::Bench;
use crate::machine::WeatherWatch;
use crate::ostler::Ostler;
use crate::report::{Bar, Figure, Report};
use crate::samples::{Samples, millis};

/// After this much of nothing, memory is looked at.
const IDLE: Duration = Duration::from_secs(2);

const MEGABYTE: f64 = 1024.0 * 1024.0;

pub async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let floor = millis(bare_starts(bench)?.p50());
    let (mut fresh, mut again) = (Samples::default(), Samples::default());
    let watch = WeatherWatch::begin()?;
    for number in 0..bench.settings.starts {
        let data = bench.settings.data.join(format!("start-{number}"));
        for samples in [&mut fresh, &mut again] {
            let ostler = Ostler::start(&bench.binary, &data).await?;
            samples.push(ostler.ready_after());
            ostler.stop()?;
        }
    }
    let weather = watch.end()?;
    let figure = |what: &str, samples: &Samples| {
        let figure = Figure::new(what, millis(samples.p50()), "ms", weather);
        figure.beside(floor, "ostler --version").bar(Bar::Under(200.0))
    };
    report.add(figure("ostler up to ready, new data folder, p50", &fresh));
    report.add(figure("ostler up to ready, data of before, p50", &again));
    let resident = idle_memory(bench, report).await?;
    report.summarize(format!("start {:.0} ms", millis(fresh.p50())));
    report.summarize(format!("{resident:.0} MB"));
    Ok(())
}

/// What it takes to start and end the binary when it does nothing.
fn bare_starts(bench: &Bench) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..bench.settings.starts {
        let start = Instant::now();
        let status = Command::new(&bench.binary).arg("--version").stdout(Stdio::null()).status()?;
        samples.since(start);
        ensure!(status.success(), "ostler --version ended with {status}");
    }
    Ok(samples)
}

async fn idle_memory(bench: &Bench, report: &mut Report) -> anyhow::Result<f64> {
    let ostler = Ostler::start(&bench.binary, &bench.settings.data.join("start-idle")).await?;
    let watch = WeatherWatch::begin()?;
    tokio::time::sleep(IDLE).await;
    let resident = ostler.resident()? as f64 / MEGABYTE;
    report.add(Figure::new("resident when idle", resident, "MB", watch.end()?).bar(Bar::Under(60.0)));
    ostler.stop()?;
    Ok(resident)
}
