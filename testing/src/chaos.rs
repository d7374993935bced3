//! Chaos: two servers, three workers and a PostgreSQL, all real processes, under a load of tasks while everything is
//! done to them that happens to processes, databases, disks, networks and clocks. Then all is calmed, and what came of
//! it is judged as after the crash test, with what the store itself shows beside it (`invariants`).
//!
//! Three hands work at once (`faults`): one on the processes and their clocks, one on the database, one on the
//! connections. Each draws its faults from the seed; when they strike is up to the machine.

#![allow(clippy::disallowed_methods, reason = "real processes suffer in real time")]

mod cluster;
mod database;
mod faults;
mod invariants;
mod member;
mod report;
pub mod rolling;

pub use report::Outcome;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;

use crate::{
    load::{self, Feed, Feeder, Ground, Journal, Pace, Source, workload},
    loopback::pause,
    sim::rng::Rng,
};
use cluster::Cluster;
use faults::{Fault, Hands};
use member::fake_time;
use report::Progress;

/// A worker that is silent for so long has lost its runs.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// Tasks that are live at once, at the most: beyond that the feeder waits.
const LIVE: usize = 60;

/// What is left may take so long to end once all is calm.
const PATIENCE: Duration = Duration::from_secs(180);

const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// At the beginning nothing but clocks are touched: no lease may mind.
const CLOCKS_ALONE: Duration = Duration::from_secs(12);

/// Slow enough that most faults meet a dozen calls under way.
const PACE: Pace = Pace { model: Duration::from_millis(900), tool: Duration::from_millis(400) };

/// What to do, and to whom.
pub struct Settings {
    pub binary: PathBuf,
    /// For data and logs; kept if anything fails.
    pub folder: PathBuf,
    pub duration: Duration,
    pub tasks: u64,
    pub seed: u64,
    /// What is mounted goes with this process: the database may have a disk of its own.
    pub has_own_mounts: bool,
    /// Say every so often how it goes.
    pub progress: Option<fn(&str)>,
}

/// Lets everything happen for as long as asked, lets the tasks finish, and judges.
pub async fn run(settings: &Settings) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let ground = Arc::new(Ground::start(PACE).await?);
    let cluster = Cluster::start(settings, 2, 3).await?;
    let clients = cluster.clients()?;
    workload::apply(&clients[0], &ground).await?;
    let source = Source::Postgres(Box::new(cluster.store().await?));
    let mut journal = Journal::open(source, Arc::clone(&ground));
    // The last task comes a little before the last fault.
    let every = settings.duration.mul_f64(0.95) / u32::try_from(settings.tasks.max(1))?;
    let feed = Feed { live: LIVE, most: settings.tasks, every, unread: PATIENCE };
    let mut feeder = Feeder::start(clients.clone(), feed, cluster.meddler(PACE).await?);
    let figures = feeder.figures();
    let progress = Progress::new(settings, began, figures.clone());
    let hands = Hands::new(&cluster, Rng::new(settings.seed));

    let clocks = hands.clocks_alone(CLOCKS_ALONE.min(settings.duration / 4));
    watched(clocks, &mut journal, &hands, &progress).await?;
    journal.look().await.context("the store can't be read")?;
    let lost_by_clocks = journal.attempts().n_lost + journal.attempts().n_yielded;
    watched(hands.work(began + settings.duration), &mut journal, &hands, &progress).await?;
    cluster.calm().await?;
    let finishing = tokio::time::timeout(PATIENCE, feeder.finish());
    let finished = watched(finishing, &mut journal, &hands, &progress).await;

    journal.look().await.context("the store can't be read")?;
    let mut verdict = load::judge(&clients[1], &feeder, &journal, &ground).await?;
    if finished.is_err() {
        verdict.failures.insert(0, format!("tasks were still live {PATIENCE:?} after the last fault"));
    }
    let store = cluster.store().await?;
    verdict.failures.extend(invariants::check(&store, journal.attempts(), &feeder.meddled()).await?);
    verdict.failures.extend(feeder.refusals());
    verdict.failures.extend(cluster.complaints().await);
    Ok(Outcome {
        verdict,
        survived: hands.survived(),
        attempts: (journal.attempts().n_lost, journal.attempts().n_yielded),
        lost_by_clocks,
        n_off: journal.n_off(),
        again: figures.again(),
        n_false_starts: cluster.n_false_starts().await,
        skipped: skipped(settings),
        n_given: feeder.meddled().given.len(),
        tasks: settings.tasks,
        duration: settings.duration,
        elapsed: began.elapsed(),
    })
}

/// What this machine can't do.
fn skipped(settings: &Settings) -> Vec<Fault> {
    let clocks = [Fault::ClockForward, Fault::ClockBack].into_iter().filter(|_| fake_time().is_none());
    clocks.chain((!settings.has_own_mounts).then_some(Fault::DiskFull)).collect()
}

/// Reads the log beside whatever else happens.
async fn watched<T>(
    happening: impl Future<Output = T>,
    journal: &mut Journal,
    hands: &Hands<'_>,
    progress: &Progress,
) -> T {
    let watching = async {
        loop {
            // The database may be away: the next look shows more.
            let _: Result<_, _> = tokio::time::timeout(LOOK_WITHIN, journal.look()).await;
            progress.look(journal, hands);
            pause(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        happened = happening => happened,
        never = watching => never,
    }
}
