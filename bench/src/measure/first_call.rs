//! From a task's acceptance to the first call of the model, while nothing else happens.

use super::Bench;
use crate::ground::{Agent, Ground};
use crate::machine::WeatherWatch;
use crate::ostler::Ostler;
use crate::report::{Bar, Figure, Report};
use crate::samples::{Samples, millis};

/// Connections, plans and caches are made by the first ones.
const WARM_UP: usize = 20;

pub async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let ground = Ground::start().await?;
    let ostler = Ostler::start(&bench.binary, &bench.settings.data.join("first-call")).await?;
    ground.prepare(&ostler).await?;
    let mut connection = ostler.connect().await?;
    for _ in 0..WARM_UP {
        ground.run_task(&mut connection, Agent::Answers).await?;
    }
    let (mut accepted, mut first_call) = (Samples::default(), Samples::default());
    let watch = WeatherWatch::begin()?;
    for _ in 0..bench.settings.tasks {
        let times = ground.run_task(&mut connection, Agent::Answers).await?;
        accepted.push(times.accepted);
        first_call.push(times.first_call);
    }
    let weather = watch.end()?;
    ostler.stop()?;
    let floor = millis(bench.floors.sync.p50());
    let figure =
        |what: &str, value| Figure::new(what, millis(value), "ms", weather).beside(floor, "fdatasync p50");
    report.add(figure("accept answered, idle system, p50", accepted.p50()));
    report.add(figure("accept answered, idle system, p99", accepted.p99()));
    report.add(figure("accept to first model call, p50", first_call.p50()).bar(Bar::Under(2.0)));
    report.add(figure("accept to first model call, p99", first_call.p99()).bar(Bar::Under(10.0)));
    let (p50, p99) = (millis(first_call.p50()), millis(first_call.p99()));
    report.summarize(format!("first call p50 {p50:.2} ms p99 {p99:.2} ms"));
    Ok(())
}
