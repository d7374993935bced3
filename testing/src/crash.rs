//! The crash test: `ostler up`, the real binary, is killed with SIGKILL again and again under load, and what
//! it left behind is compared with what the model and the tools saw.
//!
//! The load, and how it is judged, are those of `load`; model and tool servers run in this process and so outlive
//! every kill. When a kill strikes is chosen in `moment`; after each, before the next start, the log in the dead
//! server's store is read, and only read, which tells what was in flight and which steps had finished.

#![allow(clippy::disallowed_methods, reason = "real processes die in real time")]

mod moment;
mod process;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::load::{self, Feed, Feeder, Ground, Journal, Meddler, Pace, Source, Verdict, workload};
use crate::postgres::{self, Postgres};
use crate::sim::rng::Rng;
use moment::{Classes, Moment, Traffic};
use process::Ostler;

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
    /// What the servers answered and no retry helps against.
    pub refusals: Vec<String>,
    pub elapsed: Duration,
}

/// Kills the server as often as asked, lets it finish, and judges.
pub async fn run(settings: &Settings) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let ground = Arc::new(Ground::start(Pace::default()).await?);
    let postgres = settings.postgres.then(|| Postgres::start(&[])).transpose()?;
    let url = postgres.as_ref().map(Postgres::url);
    let mut ostler = Ostler::prepare(settings, url.clone()).await?;
    ostler.start().await?;
    let client = ostler.client()?;
    workload::apply(&client, &ground).await?;
    let mut feeder = Feeder::start(
        vec![client.clone()],
        Feed::keeping(settings.live, PATIENCE),
        Meddler::new(Pace::default().life(), None),
    );
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
    let finishing = tokio::time::timeout(PATIENCE, feeder.finish());
    finishing.await.context("tasks were still live long after the last kill")?;
    journal.look().await.context("the store can't be read")?;
    let verdict = load::judge(&client, &feeder, &journal, &ground).await?;
    ostler.kill().await?;
    Ok(Outcome {
        kills: settings.kills,
        classes,
        verdict,
        refusals: feeder.refusals(),
        elapsed: began.elapsed(),
    })
}

impl Outcome {
    /// Everything that is wrong; empty if all holds.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = self.verdict.failures.clone();
        failures.extend(self.refusals.iter().cloned());
        if self.verdict.n_late > 0 {
            failures.push(format!("{} steps had finished and were called again", self.verdict.n_late));
        }
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
        let Verdict { n_tasks, n_succeeded, n_cancelled, n_steps, n_repeated, n_gaps, n_unknown, .. } =
            &self.verdict;
        let classes: Vec<_> =
            self.classes.named().iter().map(|(name, n_kills)| format!("{name} {n_kills}")).collect();
        write!(formatter, "crash: {} kills ({}), ", self.kills, classes.join(", "))?;
        if *n_tasks == n_succeeded + n_cancelled {
            write!(formatter, "{n_tasks} tasks all succeeded but for {n_cancelled} that were cancelled, ")?;
        } else {
            write!(formatter, "{n_succeeded} of {n_tasks} tasks succeeded, {n_cancelled} cancelled, ")?;
        }
        write!(formatter, "{n_steps} steps, {n_repeated} repeated, {n_gaps} gaps, ")?;
        write!(formatter, "{n_unknown} outcome_unknown, {:.0} s", self.elapsed.as_secs_f64())
    }
}
