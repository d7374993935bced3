//! The crash test: `ostler up`, the real binary, is killed with SIGKILL again and again under load, and what
//! it left behind is compared with what the model and the tools saw.
//!
//! A feeder (`feeder`) keeps tasks of five steps live (`workload`); model and tool servers run in this
//! process and so outlive every kill. When a kill strikes is chosen in `moment`; after each, before the next
//! start, the log in the dead server's store is read, and only read (`journal`), which tells what was in
//! flight and which steps had finished. At the end every task is read back through the HTTP API (`verdict`).

#![allow(clippy::disallowed_methods, reason = "real processes die in real time")]

mod feeder;
mod journal;
mod moment;
mod process;
mod verdict;
mod workload;

pub use process::find_binary;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::model_server::{self, ModelServer, Script};
use crate::postgres::{self, Postgres};
use crate::sim::rng::Rng;
use crate::tool_server::ToolServer;
use feeder::Feeder;
use journal::{Journal, Source};
use moment::{Classes, Moment, Traffic};
use process::Ostler;
use verdict::Verdict;

/// How long the model thinks before each answer.
const MODEL_LATENCY: Duration = Duration::from_millis(200);

/// How long what is left may take to end after the last kill.
const PATIENCE: Duration = Duration::from_secs(120);

/// From so many kills on, each kind of moment has to make up a tenth of them.
const COVERAGE_FROM: u32 = 100;

/// What to do, and to whom.
pub struct Settings {
    pub binary: PathBuf,
    /// The folder for the server's data and its log.
    pub folder: PathBuf,
    pub kills: u32,
    /// Tasks kept live.
    pub live: usize,
    pub seed: u64,
    /// On PostgreSQL, a real one that syncs, instead of a file.
    pub postgres: bool,
}

/// What came of it.
pub struct Outcome {
    pub kills: u32,
    pub classes: Classes,
    pub verdict: Verdict,
    pub elapsed: Duration,
}

/// The servers that outlive the kills.
struct Ground {
    model: ModelServer,
    tools: ToolServer,
}

/// Kills the server as often as asked, lets it finish, and judges.
pub async fn run(settings: &Settings) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let ground = Arc::new(Ground::start().await?);
    let postgres = settings.postgres.then(|| Postgres::start(&[])).transpose()?;
    let url = postgres.as_ref().map(Postgres::url);
    let mut ostler = Ostler::prepare(settings, url.clone()).await?;
    ostler.start().await?;
    let client = ostler.client()?;
    workload::apply(&client, &ground).await?;
    let feeder = Feeder::start(client.clone(), settings.live);
    let log = match url {
        Some(url) => Source::Postgres(Box::new(postgres::open(&url).await?)),
        None => Source::File(ostler.store()),
    };
    let mut journal = Journal::open(log, Arc::clone(&ground));
    let mut rng = Rng::new(settings.seed);
    let mut classes = Classes::default();
    for _ in 0..settings.kills {
        let moment = Moment::draw(&mut rng);
        let traffic = Traffic { ground: &ground, feeder: &feeder };
        let ready_at = ostler.ready_at();
        moment.wait(ready_at, &traffic).await;
        let before = traffic.count();
        let killed_at = Instant::now();
        ostler.kill().await?;
        let after = traffic.count();
        let seen = journal.look().await.context("the store can't be read")?;
        ostler.start().await?;
        classes.add(&before, &after, &seen, feeder.was_cut_off(killed_at));
    }
    let keys = tokio::time::timeout(PATIENCE, feeder.finish());
    let keys = keys.await.context("tasks were still live long after the last kill")?;
    journal.look().await.context("the store can't be read")?;
    let verdict = verdict::judge(&client, &keys, &journal, &ground).await?;
    ostler.kill().await?;
    Ok(Outcome { kills: settings.kills, classes, verdict, elapsed: began.elapsed() })
}

impl Ground {
    async fn start() -> anyhow::Result<Self> {
        let settings =
            model_server::Settings { latency: MODEL_LATENCY, forget_bodies: true, ..Default::default() };
        let model = ModelServer::start_with(Script::Plan, settings).await.context("no model server")?;
        Ok(Self { model, tools: ToolServer::start().await.context("no tool server")? })
    }

    /// How often a request id arrived, and how often it was answered, at either server.
    fn calls(&self, request_id: &str) -> (u64, u64) {
        let (model, tool) = (self.model.desk().of(request_id), self.tools.desk().of(request_id));
        (model.received + tool.received, model.answered + tool.answered)
    }
}

impl Outcome {
    /// Everything that is wrong; empty if all holds.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = self.verdict.failures.clone();
        if self.kills >= COVERAGE_FROM {
            let least = self.kills.div_ceil(10);
            let rare = self.classes.named().into_iter().filter(|(_, n_kills)| *n_kills < least);
            failures.extend(rare.map(|(name, n)| format!("only {n} kills in {name}, {least} are needed")));
            if self.verdict.n_unknown == 0 {
                failures.push("no call of the tool that is not idempotent was interrupted".to_owned());
            }
        }
        failures
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { n_tasks, n_succeeded, n_steps, n_repeated, n_gaps, n_unknown, .. } = &self.verdict;
        let classes: Vec<_> =
            self.classes.named().iter().map(|(name, n_kills)| format!("{name} {n_kills}")).collect();
        write!(formatter, "crash: {} kills ({}), ", self.kills, classes.join(", "))?;
        if n_tasks == n_succeeded {
            write!(formatter, "{n_tasks} tasks all succeeded, ")?;
        } else {
            write!(formatter, "{n_succeeded} of {n_tasks} tasks succeeded, ")?;
        }
        write!(formatter, "{n_steps} steps, {n_repeated} repeated, {n_gaps} gaps, ")?;
        write!(formatter, "{n_unknown} outcome_unknown, {:.0} s", self.elapsed.as_secs_f64())
    }
}
