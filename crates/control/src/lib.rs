//! Accepts commands, dispatches to workers, recovers what was lost.
//!
//! Everything decided here is decided on what was read, and counts only if that is still true when it is
//! committed: a refusal means to look again. Nothing that matters is kept in memory alone.

pub mod access;
pub mod commands;
pub mod error;
pub mod feed;

mod dispatch;
mod governance;
mod leases;
mod log;
mod meter;
mod models;
mod plans;
mod quotas;
mod reconcilers;
mod resources;
mod sessions;
mod signals;
mod spans;
mod systems;
mod telling;
mod vault;
mod waiting;
mod watch;
mod workers;

use std::{sync::Arc, time::Duration};

use ostler_kernel::{
    Bundle, Lease, Refusal, Runtime, Write,
    runtime::{AbortOnDrop, BoxFuture},
};
use ostler_secrets::{KeyRing, Redactor};
use ostler_store::{Claim, Committed, Store, StoreError};
use ostler_telemetry::{Span, Telemetry};

pub use commands::{
    create_task::{Created, NewTask, annotated_trace, is_of_trace},
    rerun::Again,
};
pub use error::ControlError;
pub use feed::{Feed, Follower};
pub use meter::{Figures, Gauges, Meter};
pub use ostler_secrets as secrets;
pub use ostler_store as store;
pub use ostler_telemetry as telemetry;
pub use resources::{Effect, Fate, Mistake, Precondition, ResourcePage};
pub use telling::{Heartbeat, Telling};
pub use vault::{FitKeys, KeyCount, SecretKeys};
pub use watch::{EventWatch, Gone, Place, Seen, Sight, Told, Watch, Watched};
pub use workers::{Phase, WorkerView, WorkerWatch};
use {
    access::Credentials,
    dispatch::Portions,
    feed::Hub,
    leases::Leases,
    plans::Plans,
    quotas::Quotas,
    signals::Signals,
    vault::Vault,
    waiting::{Waiting, WaitingClaim},
    workers::Workers,
};

#[derive(Debug, Clone)]
pub struct ControlConfig {
    /// How long a worker may be silent before its runs are given to others.
    pub lease: Duration,
    /// How long a task is kept after its end; or else for ever.
    pub keep: Option<Duration>,
    /// How many tasks of a namespace are kept; or else any number. Those that have not ended always are.
    pub keep_tasks: Option<usize>,
    /// How long after its end a task is put out of sight; or else never.
    pub archive_after: Option<Duration>,
    /// What secrets are sealed with; without it none are kept.
    pub keys: Option<KeyRing>,
    /// Told of every secret that is opened here.
    pub redactor: Redactor,
    /// How long a conversation with a key is kept after its last use; or else for ever.
    pub keep_sessions: Option<Duration>,
    /// How long a worker is kept that gives no sign of life; or else for ever.
    pub keep_workers: Option<Duration>,
    /// How long a plan is kept that no task names; or else for ever. Servers of one store must agree on it.
    pub keep_plans: Option<Duration>,
    /// Names of the model providers that workers have. If there are none, nobody knows, and any will do.
    pub providers: Vec<String>,
    /// Told of tasks and attempts.
    pub telemetry: Telemetry,
}

impl Default for ControlConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            keep: None,
            keep_tasks: None,
            archive_after: None,
            keys: None,
            redactor: Redactor::default(),
            keep_sessions: None,
            keep_workers: None,
            keep_plans: None,
            providers: Vec::new(),
            telemetry: Telemetry::default(),
        }
    }
}

pub struct Control {
    store: Arc<dyn Store>,
    runtime: Arc<dyn Runtime>,
    config: ControlConfig,
    credentials: Credentials,
    leases: Leases,
    plans: Plans,
    quotas: Quotas,
    workers: Workers,
    signals: Signals,
    vault: Vault,
    waiting: Waiting,
    portions: Portions,
    feed: Arc<Hub>,
    meter: Meter,
}

/// Keeps the background work going as long as it is held.
pub struct Background {
    _activities: Vec<AbortOnDrop>,
}

impl Control {
    pub fn new(store: Arc<dyn Store>, runtime: Arc<dyn Runtime>, config: ControlConfig) -> Arc<Self> {
        Arc::new(Self {
            credentials: Credentials::new(store.watch()),
            plans: Plans::new(store.watch()),
            vault: Vault::new(config.keys.clone()),
            store,
            runtime,
            config,
            leases: Leases::default(),
            quotas: Quotas::default(),
            workers: Workers::default(),
            signals: Signals::default(),
            waiting: Waiting::default(),
            portions: Portions::default(),
            feed: Arc::new(Hub::default()),
            meter: Meter::default(),
        })
    }

    /// What has to be known before anybody is served: without its quotas a server would take and hand out too much.
    pub async fn prepare(&self) -> Result<(), ControlError> {
        self.read_quotas().await
    }

    /// Starts what happens by itself: judging leases, waking what is due, forgetting what is old, following the log.
    pub fn start(self: &Arc<Self>) -> Background {
        let judge = Arc::clone(self);
        let waker = Arc::clone(self);
        let follower = Arc::clone(self);
        let quotas = Arc::clone(self);
        let sweeper = Arc::clone(self);
        let planner = Arc::clone(self);
        let sealer = Arc::clone(self);
        let spawn = |name, future| self.runtime.spawn(name, future).abort_on_drop();
        Background {
            _activities: vec![
                spawn("lease judge", Box::pin(async move { judge.judge_leases().await })),
                spawn("due wake", Box::pin(async move { waker.wake_due().await })),
                spawn("quotas", Box::pin(async move { quotas.follow_quotas().await })),
                spawn("retention", Box::pin(async move { sweeper.forget_old_tasks().await })),
                spawn("plan forget", Box::pin(async move { planner.forget_plans().await })),
                spawn("resealing", Box::pin(async move { sealer.reseal_secrets().await })),
                spawn("log follower", Box::pin(async move { follower.follow_log().await })),
            ],
        }
    }

    /// What was counted of all that this server committed.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    pub fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Commits one bundle, and takes a waiting claim along if there will be something for it. The inner result
    /// says whether the bundle counted.
    async fn commit(&self, bundle: Bundle) -> Result<Result<Committed, Refusal>, StoreError> {
        let happened = self.meter.about(&bundle);
        let spans = self.spans_of(&bundle).await;
        let began = self.runtime.monotonic();
        let is_ready = makes_ready(&bundle);
        let waiting = if is_ready { self.waiting.take() } else { None };
        let _unclaimed = (is_ready && waiting.is_none()).then(|| self.waiting.unclaimed());
        let mut commit = self.store.commit(vec![bundle]);
        let results = match waiting {
            Some(waiting) => {
                let mut claim = self.claim_for(waiting);
                // The store is told of both before it answers either. Who commits does not wait for a claim that has to
                // wait for others.
                tokio::select! {
                    biased;
                    results = &mut commit => {
                        self.runtime.spawn("claim", claim).detach();
                        results
                    }
                    () = &mut claim => commit.await,
                }
            }
            None => commit.await,
        };
        self.meter.committed(self.runtime.monotonic().saturating_sub(began));
        let result = results?
            .pop()
            .ok_or_else(|| StoreError::Unknown("the store gave no answer to a bundle".into()))?;
        if result.as_ref().is_ok_and(|committed| !committed.duplicate) {
            self.meter.count(happened);
            spans.into_iter().for_each(|span| self.config.telemetry.tell(span));
        }
        Ok(result)
    }

    /// What there will be to tell of the bundle. Plans are at hand, but for the first time after a start.
    async fn spans_of(&self, bundle: &Bundle) -> Vec<Span> {
        if !self.config.telemetry.is_tracing() {
            return Vec::new();
        }
        let plan = match spans::plan_of(bundle) {
            Some(plan) => self.stored_plan(plan).await.ok(),
            None => None,
        };
        spans::told(&self.config.telemetry, bundle, plan.as_deref())
    }

    fn claim_of(&self, lease: Lease, slots: usize) -> Claim {
        Claim { lease, slots, shares: self.quotas.shares(), now: self.runtime.now() }
    }

    fn claim_for(&self, waiting: WaitingClaim) -> BoxFuture<'static, ()> {
        let WaitingClaim { lease, slots, answer, .. } = waiting;
        let (store, claim) = (Arc::clone(&self.store), self.claim_of(lease, slots));
        Box::pin(async move {
            let claimed = store.claim(claim).await;
            // Nobody waits for it any more? Then its worker's next renewal frees what it was given.
            drop(answer.send(claimed));
        })
    }
}

fn makes_ready(bundle: &Bundle) -> bool {
    bundle.writes.iter().any(|write| match write {
        Write::NewRun(run) | Write::Run(run) => run.rank().is_some(),
        _ => false,
    })
}
