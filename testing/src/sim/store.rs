//! The shipped SQLite store, with crashes right before and right after its commits, answers that get lost,
//! wake-ups that don't come, and the planted bugs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use ostler_kernel::{Bundle, Command, Expect, Refusal, Runtime, Write, run::Ready};
use ostler_store::{
    Answer, Claim, Claimed, Committed, Hint, Query, SqliteStore, Store, StoreError, StoreExt,
};
use tokio::sync::watch;

use super::{
    bug::{Bug, Condition},
    world::World,
};

#[derive(Clone)]
pub struct SimStore {
    inner: Arc<SqliteStore>,
    world: Arc<World>,
    runtime: Arc<dyn Runtime>,
    hints: Arc<watch::Sender<Hint>>,
    /// The store's own hint as it was last looked at.
    seen: Arc<Mutex<Hint>>,
}

/// Where in a commit the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instant {
    Before,
    After,
}

impl SimStore {
    pub fn new(inner: Arc<SqliteStore>, world: Arc<World>, runtime: Arc<dyn Runtime>) -> Self {
        let seen = *inner.watch().borrow();
        let hints = Arc::new(watch::channel(seen).0);
        Self { inner, world, runtime, hints, seen: Arc::new(Mutex::new(seen)) }
    }

    /// A moment in which others may get in between, or the process may die.
    async fn moment(&self) {
        // In calm times never so long that a worker loses its lease over it.
        let most = if self.world.is_calm() { 50 } else { 500 };
        let pause = self.world.draw(|rng| match rng.below(50) {
            0..16 => rng.between(0, 3),
            // Now and then long enough for anything to happen in between.
            16..20 => rng.between(0, most),
            _ => 0,
        });
        if pause > 0 {
            self.runtime.sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Now and then a commit is held back until what it was decided on has changed.
    async fn maybe_hold(&self, bundle: &Bundle) {
        let Some((row, limit)) = self.world.holds_back(bundle) else { return };
        self.world.holds.until_written(&*self.runtime, bundle, &row, limit).await;
    }

    async fn maybe_die(&self, what: &str, instant: Instant) {
        if self.world.dies_at(what, instant) {
            self.world.crash_server();
            std::future::pending::<()>().await;
        }
    }

    async fn commit_one(&self, bundle: Bundle) -> Result<Result<Committed, Refusal>, StoreError> {
        let what = format!("{:?}", bundle.command);
        self.maybe_hold(&bundle).await;
        self.maybe_die(&what, Instant::Before).await;
        if self.world.bug() == Some(Bug::AnswerBeforeCommit) && bundle.command == Command::Accept {
            return Ok(Ok(self.answer_early(bundle)));
        }
        let result = self.apply(bundle).await?;
        self.maybe_die(&what, Instant::After).await;
        Ok(result)
    }

    /// The caller hears of it now; what is on disk follows a moment later, if it does.
    fn answer_early(&self, bundle: Bundle) -> Committed {
        let store = self.clone();
        let delay = Duration::from_millis(self.world.draw(|rng| rng.between(1, 30)));
        let later = async move {
            store.runtime.sleep(delay).await;
            store.maybe_die("AnswerBeforeCommit", Instant::Before).await;
            drop(store.apply(bundle).await);
            store.pass_hints_on();
        };
        self.runtime.spawn("late commit", Box::pin(later)).detach();
        Committed { position: 0, duplicate: false }
    }

    async fn apply(&self, bundle: Bundle) -> Result<Result<Committed, Refusal>, StoreError> {
        let renewal = renewal(&bundle);
        let bundle = self.with_bug(bundle).await?;
        if self.world.bug() == Some(Bug::InputConsumedAlone) {
            self.consume_alone(&bundle).await?;
        }
        let mut results = self.inner.commit(vec![bundle.clone()]).await?;
        let result = results.pop().ok_or_else(|| StoreError::Unknown("no result".into()))?;
        self.world.saw_commit(&self.inner, &bundle, &result).await;
        if let (Some((worker, incarnation, counter)), Ok(_)) = (renewal, &result) {
            self.world.saw_renewal(&worker, incarnation, counter);
        }
        if let Ok(committed) = &result
            && committed.duplicate
            && self.world.bug() == Some(Bug::ResentAppliedTwice)
        {
            let mut again = Bundle::new(bundle.command);
            again.writes =
                bundle.writes.iter().filter(|write| matches!(write, Write::Event { .. })).cloned().collect();
            self.inner.commit(vec![again]).await?.into_iter().for_each(drop);
            self.world.read_log(&self.inner).await;
        }
        Ok(result)
    }

    async fn consume_alone(&self, bundle: &Bundle) -> Result<(), StoreError> {
        for write in bundle.writes.iter().filter(|write| matches!(write, Write::Consume { .. })) {
            let mut alone = Bundle::new(bundle.command).write(write.clone());
            alone.expect = bundle.expect.clone();
            let result = self.inner.commit(vec![alone.clone()]).await?.pop();
            if let Some(result) = result {
                self.world.saw_commit(&self.inner, &alone, &result).await;
            }
            self.maybe_die("InputConsumedAlone", Instant::After).await;
        }
        Ok(())
    }

    /// The bundle as a faulty version would judge it.
    async fn with_bug(&self, mut bundle: Bundle) -> Result<Bundle, StoreError> {
        match self.world.bug() {
            Some(Bug::Unchecked(command, condition)) if bundle.command == command => {
                bundle.expect.retain(|expect| Condition::of(expect) != condition);
            }
            Some(Bug::JournalWithoutEpoch) if bundle.command == Command::Journal => {
                bundle = self.without_epoch(bundle).await?;
            }
            Some(Bug::FinishWithoutEpoch) if bundle.command == Command::Finish => {
                bundle = self.without_epoch(bundle).await?;
            }
            Some(Bug::CancelKeepsEpoch) if bundle.command == Command::Cancel => {
                for write in &mut bundle.writes {
                    if let Write::Run(run) = write
                        && run.is_terminal()
                    {
                        run.epoch -= 1;
                    }
                }
            }
            Some(Bug::TwoLiveRunsInSession) if bundle.command == Command::Accept => {
                for write in &mut bundle.writes {
                    if let Write::NewRun(run) = write {
                        let rank = run.created_at.as_millis();
                        run.state = ostler_kernel::RunState::Queued { ready: Ready::Now { rank } };
                    }
                }
            }
            _ => {}
        }
        Ok(bundle)
    }

    /// Expects whatever epoch and journal the run has now: only its state still counts.
    async fn without_epoch(&self, mut bundle: Bundle) -> Result<Bundle, StoreError> {
        for expect in &mut bundle.expect {
            if let Expect::Run { id, epoch, journal, .. } = expect
                && let Some(run) = self.inner.run(*id).await?
            {
                *epoch = run.epoch;
                *journal = journal.map(|_| run.journal);
            }
        }
        Ok(bundle)
    }

    /// A wake-up that is lost is lost for good: later ones don't make up for it.
    fn pass_hints_on(&self) {
        let hint = *self.inner.watch().borrow();
        let before = std::mem::replace(&mut *self.seen.lock().expect("no panic"), hint);
        let (ready, due) = (hint.ready - before.ready, hint.due - before.due);
        let lost = ready + due > 0 && self.world.loses_wakeup();
        self.hints.send_if_modified(|last| {
            last.position = hint.position;
            if !lost {
                last.ready += ready;
                last.due += due;
            }
            true
        });
    }
}

#[async_trait]
impl Store for SimStore {
    async fn commit(&self, bundles: Vec<Bundle>) -> Result<Vec<Result<Committed, Refusal>>, StoreError> {
        self.moment().await;
        let mut results = Vec::new();
        for bundle in bundles {
            results.push(self.commit_one(bundle).await?);
        }
        self.pass_hints_on();
        self.moment().await;
        if self.world.loses_answer() {
            return Err(StoreError::Unknown("simulated".into()));
        }
        Ok(results)
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.moment().await;
        self.maybe_die("Claim", Instant::Before).await;
        let claimed = self.inner.claim(claim).await?;
        self.world.saw_claim(&self.inner, &claimed).await;
        if !claimed.is_empty() {
            self.maybe_die("Claim", Instant::After).await;
        }
        self.pass_hints_on();
        self.moment().await;
        Ok(claimed)
    }

    async fn read(&self, query: Query) -> Result<Answer, StoreError> {
        self.moment().await;
        let answer = self.inner.read(query).await?;
        self.moment().await;
        Ok(answer)
    }

    fn watch(&self) -> watch::Receiver<Hint> {
        self.hints.subscribe()
    }
}

/// Who renews, as the bundle states it before any bug: worker, incarnation and counter.
fn renewal(bundle: &Bundle) -> Option<(String, u64, u64)> {
    match (bundle.expect.first(), bundle.writes.first()) {
        (Some(Expect::Worker { name, incarnation }), Some(Write::Renewal { counter, .. })) => {
            Some((name.clone(), *incarnation, *counter))
        }
        _ => None,
    }
}
