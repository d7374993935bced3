//! The model gateway as workers use it, and LiteLLM's proxy, both in front of the same scripted model: what each adds to
//! asking the model directly, alone and at a rate that it can hold, and how much each can carry. The server has no route of
//! its own through which others could ask models, so ours is measured in a worker: that is the way of every agent's call.

mod equipped;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures_util::future::{join, try_join_all};
use ostler_testing::model_server::{ModelServer, Script, Settings, Turn};

use self::equipped::{Desk, Equipped};
use super::Bench;
use crate::http::{Connection, Request};
use crate::litellm::{self, LiteLlm};
use crate::load::moments;
use crate::machine::{Weather, WeatherWatch};
use crate::report::{Bar, Figure, Report};
use crate::samples::{Samples, micros, millis};

const WARM_UP: usize = 50;

/// Before counting begins, under load.
const SETTLE: Duration = Duration::from_secs(1);

/// Calls in a second at which the gateway must not be felt.
const RATE: f64 = 1000.0;

/// Of all that one can carry, as much as it can hold without a growing queue.
const HELD: f64 = 0.8;

const ANSWER: &str = "The answer is forty-two, as it has been since somebody asked for the first time.";

const BODY: &str = r#"{"model":"scripted","messages":[{"role":"system","content":"Answer."},{"role":"user","content":"What is it?"}],"stream":true,"stream_options":{"include_usage":true}}"#;

/// One who asks, one question at a time.
enum Asker {
    /// The model itself, or a proxy that speaks as it does.
    Wire(Connection),
    /// A worker's run.
    Gateway(Desk),
}

/// What was measured of one way to ask.
#[derive(Default)]
struct Taken {
    first: Samples,
    all: Samples,
    took: Duration,
}

pub async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let script = Script::function(|_| Turn::text(ANSWER).chunk(6).usage(20, 18));
    let settings = Settings { forget_bodies: true, fast: true, ..Settings::default() };
    let model = ModelServer::start_with(script, settings).await?;
    let address: SocketAddr = model.root_url().trim_start_matches("http://").parse()?;
    let equipped = Equipped::start(&bench.settings.data.join("gateway"), &model.base_url()).await?;
    let ask_ours = async || equipped.desk().await.map(Asker::Gateway);
    let ask_model = async || Connection::open(address, None).await.map(Asker::Wire);

    let direct = Measured::take(bench, ask_model).await?;
    let ours = Measured::take(bench, ask_ours).await?;
    let other = match litellm::find() {
        None => {
            eprintln!(
                "skipped: LiteLLM is not installed (scripts/bench.sh installs it, or name it in LITELLM_BIN)"
            );
            report.summarize("LiteLLM not installed".to_owned());
            None
        }
        Some(binary) => {
            let folder = bench.settings.data.join("litellm");
            let proxy = LiteLlm::start(&binary, &folder, &model.base_url()).await?;
            let at = proxy.address();
            let ask_other = async || Connection::open(at, Some("sk-bench")).await.map(Asker::Wire);
            let measured = async {
                let measured = Measured::take(bench, ask_other).await?;
                report_held(report, bench, "LiteLLM", &measured, ask_model, ask_other).await?;
                anyhow::Ok(measured)
            };
            let measured = measured.await;
            proxy.stop().await?;
            Some(measured?)
        }
    };
    report_held(report, bench, "gateway", &ours, ask_model, ask_ours).await?;
    report_alone(report, &direct, &ours, other.as_ref());
    report_carried(report, &direct, &ours, other.as_ref());

    let seconds = bench.settings.seconds;
    let watch = WeatherWatch::begin()?;
    let calm = load(askers(bench, ask_model).await?, Some(RATE), seconds).await?;
    let steady = load(askers(bench, ask_ours).await?, Some(RATE), seconds).await?;
    report_steady(report, &calm, &steady, watch.end()?);
    Ok(())
}

/// One way to ask: one at a time, and by many at once as fast as it goes.
struct Measured {
    alone: Taken,
    carried: Taken,
    weather: Weather,
}

impl Measured {
    async fn take(bench: &Bench, asker: impl AsyncFn() -> anyhow::Result<Asker>) -> anyhow::Result<Self> {
        let watch = WeatherWatch::begin()?;
        let mut one = asker().await?;
        for _ in 0..WARM_UP {
            one.ask().await?;
        }
        let mut alone = Taken::default();
        for _ in 0..bench.settings.tasks {
            alone.push(one.ask().await?);
        }
        let carried = load(askers(bench, asker).await?, None, bench.settings.seconds).await?;
        Ok(Self { alone, carried, weather: watch.end()? })
    }
}

async fn askers(bench: &Bench, asker: impl AsyncFn() -> anyhow::Result<Asker>) -> anyhow::Result<Vec<Asker>> {
    let mut all = Vec::new();
    for _ in 0..bench.settings.at_once {
        all.push(asker().await?);
    }
    Ok(all)
}

impl Asker {
    /// How long it took to the first words, and to the last.
    async fn ask(&mut self) -> anyhow::Result<(Duration, Duration)> {
        let began = Instant::now();
        match self {
            Asker::Wire(connection) => {
                let request = Request {
                    method: "POST",
                    path: "/v1/chat/completions",
                    accept: "text/event-stream",
                    body: BODY,
                };
                let answer = connection.call(&request).await?;
                let text = || String::from_utf8_lossy(&answer.body);
                ensure!(answer.status == 200, "asked in vain: {} {}", answer.status, text());
                let first = answer.began.context("an empty answer")?;
                Ok((first.saturating_duration_since(began), began.elapsed()))
            }
            Asker::Gateway(desk) => desk.ask().await,
        }
    }
}

impl Taken {
    fn push(&mut self, (first, all): (Duration, Duration)) {
        self.first.push(first);
        self.all.push(all);
    }

    fn per_second(&self) -> f64 {
        self.all.len() as f64 / self.took.as_secs_f64()
    }
}

/// Many at once for a while: each asks again when it was answered, or all of them at a rate.
async fn load(askers: Vec<Asker>, rate: Option<f64>, seconds: u64) -> anyhow::Result<Taken> {
    let (counting, stopping) = (Cell::new(false), Cell::new(false));
    let (taken, begin, at_once) = (RefCell::new(Taken::default()), Instant::now(), askers.len());
    let asking = askers.into_iter().enumerate().map(async |(place, mut asker)| {
        let mut times = rate.map(|rate| moments(begin, place, at_once, rate));
        while !stopping.get() {
            if let Some(next) = times.as_mut().and_then(Iterator::next) {
                tokio::time::sleep_until(next.into()).await;
            }
            let took = asker.ask().await?;
            if counting.get() {
                taken.borrow_mut().push(took);
            }
        }
        anyhow::Ok(())
    });
    let counted = async {
        tokio::time::sleep(SETTLE).await;
        let start = Instant::now();
        counting.set(true);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        counting.set(false);
        stopping.set(true);
        start.elapsed()
    };
    let (asked, took) = join(try_join_all(asking), counted).await;
    asked?;
    Ok(Taken { took, ..taken.into_inner() })
}

/// What one way adds to another, at a quantile.
fn added(with: &Samples, without: &Samples, quantile: fn(&Samples) -> Duration) -> Duration {
    quantile(with).saturating_sub(quantile(without))
}

type Quantile = (&'static str, fn(&Samples) -> Duration);

const QUANTILES: [Quantile; 2] = [("p50", Samples::p50), ("p99", Samples::p99)];

fn report_alone(report: &mut Report, direct: &Measured, ours: &Measured, other: Option<&Measured>) {
    let floor = Figure::new(
        "model asked directly, one connection, p50",
        micros(direct.alone.all.p50()),
        "µs",
        direct.weather,
    );
    report.add(floor);
    for (name, quantile) in QUANTILES {
        let adds = |measured: &Measured| micros(added(&measured.alone.all, &direct.alone.all, quantile));
        let delays =
            |measured: &Measured| micros(added(&measured.alone.first, &direct.alone.first, quantile));
        let mut figure =
            Figure::new(format!("gateway adds, one connection, {name}"), adds(ours), "µs", ours.weather);
        let mut first =
            Figure::new(format!("gateway delays the first token, {name}"), delays(ours), "µs", ours.weather)
                .bar(Bar::Under(300.0));
        if let Some(other) = other {
            figure = figure.beside(adds(other), "LiteLLM");
            first = first.beside(delays(other), "LiteLLM");
            report.add(Figure::new(
                format!("LiteLLM adds, one connection, {name}"),
                adds(other),
                "µs",
                other.weather,
            ));
            let what = format!("LiteLLM delays the first token, {name}");
            report.add(Figure::new(what, delays(other), "µs", other.weather));
        }
        report.add(figure);
        report.add(first);
    }
    let p50 = |measured: &Measured| micros(added(&measured.alone.all, &direct.alone.all, Samples::p50));
    let beside = other.map(|other| format!(" (LiteLLM {:.0} µs)", p50(other))).unwrap_or_default();
    report.summarize(format!("gateway adds p50 {:.0} µs{beside}", p50(ours)));
}

/// How much each can carry. The scripted model alone is the most that could be seen.
fn report_carried(report: &mut Report, direct: &Measured, ours: &Measured, other: Option<&Measured>) {
    let alone = direct.carried.per_second();
    report.add(Figure::new("calls of the scripted model, directly", alone, "/s", direct.weather));
    let mut figure = Figure::new("calls through the gateway", ours.carried.per_second(), "/s", ours.weather)
        .beside(alone, "directly")
        .bar(Bar::AtLeast(RATE));
    let mut beside = String::new();
    if let Some(other) = other {
        let theirs = other.carried.per_second();
        report
            .add(Figure::new("calls through LiteLLM", theirs, "/s", other.weather).beside(alone, "directly"));
        figure = figure.beside(theirs, "LiteLLM");
        beside = format!(" (LiteLLM {theirs:.0}/s)");
    }
    report.add(figure);
    report.summarize(format!("gateway carries {:.0}/s{beside}", ours.carried.per_second()));
}

/// One way to ask beside the model itself, where both are asked as often as it can hold. Not as a difference: close to what
/// the machine can do the model itself is what is waited for.
async fn report_held(
    report: &mut Report,
    bench: &Bench,
    name: &str,
    measured: &Measured,
    ask_model: impl AsyncFn() -> anyhow::Result<Asker>,
    ask: impl AsyncFn() -> anyhow::Result<Asker>,
) -> anyhow::Result<()> {
    let (rate, seconds) = (HELD * measured.carried.per_second(), bench.settings.seconds);
    let watch = WeatherWatch::begin()?;
    let calm = load(askers(bench, ask_model).await?, Some(rate), seconds).await?;
    let held = load(askers(bench, ask).await?, Some(rate), seconds).await?;
    let weather = watch.end()?;
    let mut said = Vec::new();
    for (quantile_name, quantile) in QUANTILES {
        let (through, directly) = (millis(quantile(&held.all)), millis(quantile(&calm.all)));
        let what = format!("{name} at {rate:.0}/s, four fifths of what it carries, {quantile_name}");
        report.add(Figure::new(what, through, "ms", weather).beside(directly, "directly at that rate"));
        said.push(format!("{quantile_name} {through:.2} ms ({directly:.2} directly)"));
    }
    report.summarize(format!("{name} at {rate:.0}/s {}", said.join(", ")));
    Ok(())
}

fn report_steady(report: &mut Report, calm: &Taken, steady: &Taken, weather: Weather) {
    report.add(Figure::new(
        "calls through the gateway, asked for 1,000/s",
        steady.per_second(),
        "/s",
        weather,
    ));
    for (name, quantile) in QUANTILES {
        let adds = millis(added(&steady.all, &calm.all, quantile));
        let figure = Figure::new(format!("gateway adds at 1,000/s, {name}"), adds, "ms", weather);
        report.add(if name == "p99" { figure.bar(Bar::Under(1.0)) } else { figure });
    }
    let p99 = millis(added(&steady.all, &calm.all, Samples::p99));
    report.summarize(format!("at 1,000/s p99 {p99:.2} ms"));
}
