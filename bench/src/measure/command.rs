//! A command that a person types, from its start to its end: `ostler get agents` beside a server that is warm, and
//! beside the least that starting any program takes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::ensure;

use super::Bench;
use crate::http::Request;
use crate::machine::WeatherWatch;
use crate::ostler::{Ostler, unset};
use crate::report::{Bar, Figure, Report};
use crate::samples::{Samples, millis};

/// How often the command is typed.
const RUNS: usize = 100;

/// So that the list has something to show.
const AGENT: &str = r#"{"kind":"Agent","metadata":{"name":"porter"},"spec":{"model_ref":"mock"}}"#;
const MODEL: &str = r#"{"kind":"ModelEndpoint","metadata":{"name":"mock"},"spec":{"provider":"mock","default_model":"mock-1"}}"#;

pub async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let data = bench.settings.data.join("command");
    let ostler = Ostler::start(&bench.binary, &data).await?;
    declare(&ostler).await?;
    let get = || get_agents(&bench.binary, &data);
    // The first of each finds nothing in the caches of the machine.
    for mut command in [get(), Command::new("/bin/true")] {
        run(&mut command)?;
    }
    let (mut typed, mut floor) = (Samples::default(), Samples::default());
    let watch = WeatherWatch::begin()?;
    // In turn, so that both see the same weather.
    for _ in 0..RUNS {
        floor.since(run(&mut Command::new("/bin/true"))?);
        typed.since(run(&mut get())?);
    }
    let weather = watch.end()?;
    let figure = |quantile: &str, value| {
        Figure::new(format!("ostler get agents, warm server, {quantile}"), millis(value), "ms", weather)
    };
    let (p50, p99) = (typed.p50(), typed.p99());
    report.add(figure("p50", p50).beside(millis(floor.p50()), "/bin/true p50").bar(Bar::Under(10.0)));
    report.add(figure("p99", p99).beside(millis(floor.p99()), "/bin/true p99"));
    report.summarize(format!("get p50 {:.1} ms p99 {:.1} ms", millis(p50), millis(p99)));
    ostler.stop()
}

async fn declare(ostler: &Ostler) -> anyhow::Result<()> {
    let mut connection = ostler.connect().await?;
    for (path, body) in [("/v1/model-endpoints", MODEL), ("/v1/agents", AGENT)] {
        let answer = connection.call(&Request { method: "POST", path, accept: "*/*", body }).await?;
        ensure!(answer.status == 201, "{path} answered {}", answer.status);
    }
    Ok(())
}

fn get_agents(binary: &Path, data: &Path) -> Command {
    let mut command = Command::new(binary);
    unset(&mut command);
    command.arg("--data").arg(data).args(["get", "agents"]);
    command
}

/// Runs it to its end; when it began.
fn run(command: &mut Command) -> anyhow::Result<Instant> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let status = command.status()?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(start)
}
