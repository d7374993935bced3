//! A rolling restart: every server and every worker in turn is told to stop and started again, under load, round after
//! round. Whoever retries as documented must not notice: no request fails, no step is lost or repeated, no attempt is
//! lost to a lease, and who reads a task's events over SSE sees each once and in order, from whichever server.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use futures_util::StreamExt as _;
use ostler_client::{Client, ClientError, Followed};
use tokio::task::JoinSet;

use super::{Settings, cluster::Cluster, invariants};
use crate::{
    load::{self, Feed, Feeder, Ground, Journal, Pace, Source, Verdict, workload},
    loopback::pause,
};

const LIVE: usize = 24;

const PACE: Pace = Pace { model: Duration::from_millis(150), tool: Duration::from_millis(100) };

/// One of the two servers is always there, so a client that turns to the other one is answered.
const UNREAD: Duration = Duration::from_secs(10);

/// So many tasks are accepted between one restart and the next.
const BETWEEN: u64 = 20;

/// Nothing here takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What came of it.
pub struct Rolled {
    pub verdict: Verdict,
    pub n_restarts: u32,
    /// Attempts that were lost to a lease, and those that were given back.
    pub attempts: (u64, u64),
    pub again: u64,
    /// Tasks that were given an input while they were worked on.
    pub n_given: usize,
    /// Events that readers saw, and how often one of them went on at the other server.
    pub read: (u64, u64),
    pub elapsed: Duration,
}

/// What one reader saw.
struct Read {
    n_events: u64,
    n_resumed: u64,
    problem: Option<String>,
}

pub async fn run(settings: &Settings, n_rounds: u32) -> anyhow::Result<Rolled> {
    let began = Instant::now();
    let ground = Arc::new(Ground::start(PACE).await?);
    let cluster = Cluster::start(settings, 2, 2).await?;
    let clients = cluster.clients()?;
    workload::apply(&clients[0], &ground).await?;
    let mut feeder =
        Feeder::start(clients.clone(), Feed::keeping(LIVE, UNREAD), cluster.meddler(PACE).await?);
    let mut readers = JoinSet::new();
    let restarting = async {
        for round in 1..=n_rounds {
            for member in &cluster.members {
                let accepted = feeder.figures().answered() + BETWEEN;
                waited("tasks to be accepted", async || feeder.figures().answered() >= accepted).await?;
                let mut member = member.lock().await;
                if let Some(say) = settings.progress {
                    say(&format!("round {round}: {} stops and starts again", member.name));
                }
                member.stop().await?;
                member.start()?;
                member.wait_until_ready().await?;
            }
        }
        anyhow::Ok(())
    };
    let reading = async {
        let mut n_readers = 0;
        loop {
            for key in (n_readers..feeder.keys().len() as u64).map(workload::key) {
                readers.spawn(read(clients.clone(), key));
                n_readers += 1;
            }
            pause(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        restarted = restarting => restarted?,
        () = reading => {}
    }
    tokio::time::timeout(PATIENCE, feeder.finish()).await.context("tasks don't end")?;
    let read = tokio::time::timeout(PATIENCE, readers.join_all()).await.context("readers don't end")?;

    let source = Source::Postgres(Box::new(cluster.store().await?));
    let mut journal = Journal::open(source, Arc::clone(&ground));
    journal.look().await?;
    let mut verdict = load::judge(&clients[0], &feeder, &journal, &ground).await?;
    let store = cluster.store().await?;
    verdict.failures.extend(invariants::check(&store, journal.attempts(), &feeder.meddled()).await?);
    verdict.failures.extend(feeder.refusals());
    verdict.failures.extend(cluster.complaints().await);
    verdict.failures.extend(read.iter().filter_map(|read| read.problem.clone()));
    let sum = |count: fn(&Read) -> u64| read.iter().map(count).sum();
    Ok(Rolled {
        verdict,
        n_restarts: n_rounds * cluster.members.len() as u32,
        attempts: (journal.attempts().n_lost, journal.attempts().n_yielded),
        again: feeder.figures().again(),
        n_given: feeder.meddled().given.len(),
        read: (sum(|read| read.n_events), sum(|read| read.n_resumed)),
        elapsed: began.elapsed(),
    })
}

/// Reads a task's events to the end. When a connection is lost, it goes on at the next server behind the last event.
async fn read(clients: Vec<Client>, task: String) -> Read {
    let mut read = Read { n_events: 0, n_resumed: 0, problem: None };
    for client in clients.iter().cycle() {
        match read_on(client, &task, &mut read).await {
            Ok(true) => break,
            // It may not be accepted yet.
            Err(error) if error.code() != Some("not_found") && !error.may_pass() => {
                read.problem = Some(format!("{task} can't be read: {error}"));
                break;
            }
            Ok(false) | Err(_) => {}
        }
        read.n_resumed += u64::from(read.n_events > 0);
        pause(LOOK_EVERY).await;
    }
    read
}

/// Whether the task's last event was read.
async fn read_on(client: &Client, task: &str, read: &mut Read) -> Result<bool, ClientError> {
    let mut events = client.follow(task, read.n_events);
    while let Some(followed) = events.next().await {
        match followed? {
            Followed::Event(event) => {
                read.n_events += 1;
                if event.seq != read.n_events {
                    let (seq, wanted) = (event.seq, read.n_events);
                    read.problem
                        .get_or_insert(format!("a reader of {task} saw {seq} where {wanted} belongs"));
                }
                if event.is_last() {
                    return Ok(true);
                }
            }
            Followed::Reconnecting { error, .. } => return Err(error),
            _ => {}
        }
    }
    Ok(false)
}

async fn waited(what: &str, is_so: impl AsyncFn() -> bool) -> anyhow::Result<()> {
    let waiting = async {
        while !is_so().await {
            pause(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.with_context(|| format!("waited in vain for {what}"))
}

impl Rolled {
    /// Everything that is wrong; empty if all holds.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = self.verdict.failures.clone();
        let never: BTreeMap<&str, u64> = BTreeMap::from([
            ("attempts were lost to a lease", self.attempts.0),
            ("finished steps were called again", self.verdict.n_late as u64),
            ("calls were cut off", self.verdict.n_unknown as u64),
        ]);
        failures.extend(never.iter().filter(|(_, n)| **n > 0).map(|(what, n)| format!("{n} {what}")));
        failures
    }
}

impl fmt::Display for Rolled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { n_tasks, n_succeeded, n_cancelled, n_steps, n_repeated, .. } = &self.verdict;
        write!(
            formatter,
            "rolling: {} restarts, {n_succeeded} of {n_tasks} tasks succeeded, ",
            self.n_restarts
        )?;
        write!(formatter, "{n_cancelled} cancelled, {} given an input, ", self.n_given)?;
        write!(formatter, "{n_steps} steps, {n_repeated} repeated, {} attempts lost, ", self.attempts.0)?;
        write!(formatter, "{} given back, {} requests sent again, ", self.attempts.1, self.again)?;
        write!(formatter, "{} events read, {} readers moved, ", self.read.0, self.read.1)?;
        write!(formatter, "{:.0} s", self.elapsed.as_secs_f64())
    }
}
