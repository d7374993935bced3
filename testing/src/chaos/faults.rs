//! What is done to the cluster, and how often it was done.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{
    LEASE,
    cluster::Cluster,
    member::{Role, fake_time},
};
use crate::{
    loopback::pause,
    postgres::Shutdown,
    proxy::{Proxy, Silence},
    sim::rng::Rng,
};

const HOUR: i64 = 3600;

/// How often one looks after who ended by itself.
const LOOK_AFTER_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    ServerKilled,
    WorkerKilled,
    ServerPaused,
    WorkerPaused,
    WorkerPausedPastLease,
    ClockForward,
    ClockBack,
    PostgresRestarted,
    PostgresCrashed,
    BackendsKilled,
    PoolExhausted,
    DiskFull,
    LinkCut,
    LinkHalfOpen,
    DatabaseCut,
    DatabaseHalfOpen,
}

impl Fault {
    pub fn name(self) -> &'static str {
        match self {
            Fault::ServerKilled => "server killed",
            Fault::WorkerKilled => "worker killed",
            Fault::ServerPaused => "server paused",
            Fault::WorkerPaused => "worker paused",
            Fault::WorkerPausedPastLease => "worker paused past its lease",
            Fault::ClockForward => "clock an hour forward",
            Fault::ClockBack => "clock an hour back",
            Fault::PostgresRestarted => "postgres restarted",
            Fault::PostgresCrashed => "postgres crashed",
            Fault::BackendsKilled => "backends killed",
            Fault::PoolExhausted => "pool exhausted",
            Fault::DiskFull => "disk full",
            Fault::LinkCut => "link cut",
            Fault::LinkHalfOpen => "link half-open",
            Fault::DatabaseCut => "database cut off",
            Fault::DatabaseHalfOpen => "database half-open",
        }
    }

    pub const ALL: [Fault; 16] = [
        Fault::ServerKilled,
        Fault::WorkerKilled,
        Fault::ServerPaused,
        Fault::WorkerPaused,
        Fault::WorkerPausedPastLease,
        Fault::ClockForward,
        Fault::ClockBack,
        Fault::PostgresRestarted,
        Fault::PostgresCrashed,
        Fault::BackendsKilled,
        Fault::PoolExhausted,
        Fault::DiskFull,
        Fault::LinkCut,
        Fault::LinkHalfOpen,
        Fault::DatabaseCut,
        Fault::DatabaseHalfOpen,
    ];

    const PROCESSES: [Fault; 8] = [
        Fault::ServerKilled,
        Fault::WorkerKilled,
        Fault::WorkerKilled,
        Fault::ServerPaused,
        Fault::WorkerPaused,
        Fault::WorkerPausedPastLease,
        Fault::ClockForward,
        Fault::ClockBack,
    ];
    const DATABASE: [Fault; 5] = [
        Fault::PostgresRestarted,
        Fault::PostgresCrashed,
        Fault::BackendsKilled,
        Fault::PoolExhausted,
        Fault::DiskFull,
    ];
    const NETWORK: [Fault; 5] = [
        Fault::LinkCut,
        Fault::LinkHalfOpen,
        Fault::LinkHalfOpen,
        Fault::DatabaseCut,
        Fault::DatabaseHalfOpen,
    ];
    const CLOCKS: [Fault; 2] = [Fault::ClockForward, Fault::ClockBack];
}

/// Those who do it.
pub struct Hands<'c> {
    cluster: &'c Cluster,
    seed: Rng,
    done: Mutex<BTreeMap<Fault, u32>>,
}

/// One of them: what it chooses from, and how long it rests in between, in milliseconds.
struct Hand {
    faults: &'static [Fault],
    rest: (u64, u64),
    rng: Rng,
}

impl<'c> Hands<'c> {
    pub fn new(cluster: &'c Cluster, seed: Rng) -> Self {
        Self { cluster, seed, done: Mutex::default() }
    }

    /// Works until then; what was done is undone when this returns.
    pub async fn work(&self, until: Instant) -> anyhow::Result<()> {
        let mut seed = self.seed.clone();
        let mut hand = |faults, rest| Hand { faults, rest, rng: Rng::new(seed.next()) };
        let processes = hand(&Fault::PROCESSES, (500, 3_000));
        let database = hand(&Fault::DATABASE, (4_000, 12_000));
        let network = hand(&Fault::NETWORK, (500, 4_000));
        tokio::try_join!(
            self.keep_at_it(processes, until),
            self.keep_at_it(database, until),
            self.keep_at_it(network, until),
            self.look_after(until),
        )?;
        Ok(())
    }

    /// Nothing but clocks, those of everybody.
    pub async fn clocks_alone(&self, for_so_long: Duration) -> anyhow::Result<()> {
        let mut seed = self.seed.clone();
        let clocks = Hand { faults: &Fault::CLOCKS, rest: (100, 400), rng: Rng::new(seed.next()) };
        self.keep_at_it(clocks, Instant::now() + for_so_long).await
    }

    /// How often each was survived.
    pub fn survived(&self) -> Vec<(Fault, u32)> {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        Fault::ALL.iter().map(|fault| (*fault, done.get(fault).copied().unwrap_or(0))).collect()
    }

    async fn keep_at_it(&self, mut hand: Hand, until: Instant) -> anyhow::Result<()> {
        loop {
            let rest = Duration::from_millis(hand.rng.between(hand.rest.0, hand.rest.1));
            let left = until.saturating_duration_since(Instant::now());
            pause(rest.min(left)).await;
            if left <= rest {
                return Ok(());
            }
            let fault = hand.faults[hand.rng.below(hand.faults.len() as u64) as usize];
            if self.strike(fault, &mut hand.rng).await? {
                let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
                *done.entry(fault).or_default() += 1;
            }
        }
    }

    async fn look_after(&self, until: Instant) -> anyhow::Result<()> {
        while Instant::now() < until {
            self.cluster.look_after_members()?;
            pause(LOOK_AFTER_EVERY).await;
        }
        Ok(())
    }

    /// Does it and undoes it; false if there was nobody to do it to.
    async fn strike(&self, fault: Fault, rng: &mut Rng) -> anyhow::Result<bool> {
        let database = &self.cluster.database;
        let some_time = |rng: &mut Rng, low, high| Duration::from_millis(rng.between(low, high));
        let lease = LEASE.as_millis() as u64;
        match fault {
            Fault::ServerKilled => self.kill(Role::Server, rng).await,
            Fault::WorkerKilled => self.kill(Role::Worker, rng).await,
            Fault::ServerPaused => self.pause(Role::Server, some_time(rng, lease / 4, 2 * lease), rng).await,
            Fault::WorkerPaused => self.pause(Role::Worker, some_time(rng, lease / 10, lease / 2), rng).await,
            Fault::WorkerPausedPastLease => {
                self.pause(Role::Worker, some_time(rng, 2 * lease, 3 * lease), rng).await
            }
            Fault::ClockForward => self.jump(HOUR, rng).await,
            Fault::ClockBack => self.jump(-HOUR, rng).await,
            Fault::PostgresRestarted => database.restart(Shutdown::Fast).await.map(|()| true),
            Fault::PostgresCrashed => database.restart(Shutdown::Immediate).await.map(|()| true),
            // Nobody to kill is fine: the database may be going down already.
            Fault::BackendsKilled => Ok(database.kill_backends(rng.between(20, 100)).await.is_ok()),
            Fault::PoolExhausted => {
                database.exhaust(some_time(rng, 1_000, 5_000)).await;
                Ok(true)
            }
            Fault::DiskFull if !database.has_disk() => Ok(false),
            Fault::DiskFull => database.fill(some_time(rng, 1_000, 5_000)).await.map(|()| true),
            Fault::LinkCut => Ok(cut(&self.cluster.links, rng)),
            Fault::DatabaseCut => Ok(cut(&self.cluster.to_database, rng)),
            Fault::LinkHalfOpen => Ok(silence(&self.cluster.links, rng).await),
            Fault::DatabaseHalfOpen => Ok(silence(&self.cluster.to_database, rng).await),
        }
    }

    async fn kill(&self, role: Role, rng: &mut Rng) -> anyhow::Result<bool> {
        let Some(mut member) = self.one_of(Some(role), rng).await else { return Ok(false) };
        member.kill().await?;
        pause(Duration::from_millis(rng.between(0, 2_000))).await;
        member.start()?;
        Ok(true)
    }

    async fn pause(&self, role: Role, for_so_long: Duration, rng: &mut Rng) -> anyhow::Result<bool> {
        let Some(member) = self.one_of(Some(role), rng).await else { return Ok(false) };
        member.signal(Signal::STOP)?;
        pause(for_so_long).await;
        member.signal(Signal::CONT)?;
        Ok(true)
    }

    /// Its calendar alone: until the next jump, or for a moment.
    async fn jump(&self, seconds: i64, rng: &mut Rng) -> anyhow::Result<bool> {
        if fake_time().is_none() {
            return Ok(false);
        }
        let Some(member) = self.one_of(None, rng).await else { return Ok(false) };
        member.set_clock(seconds)?;
        if rng.one_in(2) {
            pause(Duration::from_millis(rng.between(1_000, 3_000))).await;
            member.set_clock(0)?;
        }
        Ok(true)
    }

    /// One that runs, any or of this role.
    async fn one_of(
        &self,
        role: Option<Role>,
        rng: &mut Rng,
    ) -> Option<tokio::sync::MutexGuard<'c, super::member::Member>> {
        let members = &self.cluster.members;
        let first = rng.below(members.len() as u64) as usize;
        for member in members.iter().cycle().skip(first).take(members.len()) {
            let mut member = member.lock().await;
            if role.is_none_or(|role| role == member.role) && member.is_running() {
                return Some(member);
            }
        }
        None
    }
}

fn one<'p>(proxies: &'p [Proxy], rng: &mut Rng) -> &'p Proxy {
    &proxies[rng.below(proxies.len() as u64) as usize]
}

/// Closes the connections through one of them, or through all at once.
fn cut(proxies: &[Proxy], rng: &mut Rng) -> bool {
    let n_cut: usize =
        if rng.one_in(4) { proxies.iter().map(Proxy::cut).sum() } else { one(proxies, rng).cut() };
    n_cut > 0
}

/// Holds back what goes through one of them: for a while, and then lets it all arrive late; or for good.
async fn silence(proxies: &[Proxy], rng: &mut Rng) -> bool {
    let proxy = one(proxies, rng);
    if rng.one_in(2) {
        return proxy.forget() > 0;
    }
    let silence = if rng.one_in(2) { Silence::Everything } else { Silence::Answers };
    let n_silent = proxy.silence(silence);
    pause(Duration::from_millis(rng.between(500, 8_000))).await;
    proxy.silence(Silence::Nothing);
    n_silent > 0
}
