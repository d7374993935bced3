//! Random histories on two stores at once: the same commands, made from what was read and from what was read
//! too long ago, sent once or twice, in any order the dice give. Whatever the two answer must be the same.
//!
//! A history is a number: the same seed gives the same one, and a shorter one is the beginning of a longer.

mod commands;
mod people;
mod questions;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use ostler_kernel::{
    BlobId, BlockerId, Bundle, Lease, Refusal, RunId, SessionId, TaskId, Timestamp, Write,
    queue::{Share, Shares},
    run::RunView,
};

use super::dice::Dice;
use crate::{Answer, Claim, Claimed, Committed, Query, Store, StoreError};

/// Drives both stores, which must be empty, through the history of this seed. The error names the seed, the
/// operation, and what each of them answered.
pub async fn compare(a: &dyn Store, b: &dyn Store, seed: u64, n_ops: usize) -> Result<(), String> {
    let mut history = History::new(a, b, seed);
    for op in 0..n_ops {
        history.go_on().await.map_err(|difference| format!("seed {seed}, operation {op}: {difference}"))?;
    }
    history.look_at_everything().await.map_err(|difference| format!("seed {seed}, at the end: {difference}"))
}

struct History<'s> {
    a: &'s dyn Store,
    b: &'s dyn Store,
    dice: Dice,
    now: Timestamp,
    known: Known,
    /// The number of each worker's last claim.
    claims: BTreeMap<String, u64>,
    /// Views of runs, to be used when they are stale.
    views: VecDeque<RunView>,
    /// Bundles, to be sent again.
    sent: VecDeque<Bundle>,
}

/// The ids of all that was ever written, or tried.
#[derive(Default)]
struct Known {
    tasks: Vec<TaskId>,
    runs: Vec<RunId>,
    sessions: Vec<SessionId>,
    blockers: Vec<BlockerId>,
    blobs: Vec<BlobId>,
    /// How often a worker registered.
    registered: u64,
}

/// How many old views and bundles are kept at hand.
const MEMORY: usize = 24;

impl<'s> History<'s> {
    fn new(a: &'s dyn Store, b: &'s dyn Store, seed: u64) -> Self {
        Self {
            a,
            b,
            dice: Dice::new(seed),
            now: Timestamp::from_millis(1_800_000_000_000),
            known: Known::default(),
            claims: BTreeMap::new(),
            views: VecDeque::new(),
            sent: VecDeque::new(),
        }
    }

    async fn go_on(&mut self) -> Result<(), String> {
        self.now = self.later(6);
        match self.dice.below(100) {
            0..20 => self.claim().await,
            20..26 => self.look_around().await,
            _ => self.commit().await,
        }
    }

    /// Now, or up to so many half seconds later: coarse, so that things often fall on the same moment.
    fn later(&mut self, half_seconds: u64) -> Timestamp {
        self.now.after(Duration::from_millis(500 * self.dice.below(half_seconds)))
    }

    /// Commits one bundle, or a few that were decided on the same rows; sometimes with a claim that comes along.
    async fn commit(&mut self) -> Result<(), String> {
        let wanted = if self.dice.one_in(4) { 2 + self.dice.below(3) } else { 1 };
        let mut bundles = Vec::new();
        for _ in 0..wanted {
            bundles.extend(self.command().await?);
        }
        let bundles = without_unseen(bundles);
        let claim = match self.dice.one_in(4) {
            true => Some(self.draw_claim().await?),
            false => None,
        };
        let (commit, claimed) = at_once(self.a, bundles.clone(), claim.clone()).await;
        let (other, also_claimed) = at_once(self.b, bundles.clone(), claim.clone()).await;
        same(&bundles, commit, other)?;
        same(&(claim, &bundles), claimed, also_claimed)?;
        self.sent.extend(bundles);
        while self.sent.len() > MEMORY {
            self.sent.pop_front();
        }
        Ok(())
    }

    async fn claim(&mut self) -> Result<(), String> {
        let claim = self.draw_claim().await?;
        let (one, other) = (self.a.claim(claim.clone()).await, self.b.claim(claim.clone()).await);
        same(&claim, one, other).map(drop)
    }

    async fn draw_claim(&mut self) -> Result<Claim, String> {
        let worker = self.worker_name();
        let present = self.worker_row(&worker).await?.map_or(1, |worker| worker.incarnation);
        let incarnation = if self.dice.one_in(12) { present.saturating_sub(1) } else { present };
        let last = self.claims.entry(worker.clone()).or_default();
        let claim = match self.dice.below(10) {
            0 => last.saturating_sub(1),
            1 | 2 => *last,
            _ => *last + 1,
        };
        *last = claim.max(*last);
        let slots = self.dice.below(5) as usize;
        let lease = Lease { worker, incarnation, claim };
        Ok(Claim { shares: self.shares(), ..Claim::new(lease, slots, self.now) })
    }

    /// How namespaces share: mostly they are alike.
    fn shares(&mut self) -> Shares {
        if !self.dice.one_in(4) {
            return Shares::default();
        }
        let limit = self.dice.pick(&[None, Some(1), Some(3)]).flatten();
        let share = Share { weight: self.dice.below(4) as u32, limit };
        [(self.dice.word(&people::NAMESPACES), share)].into_iter().collect()
    }

    /// Asks both, and gives the answer if it is one.
    async fn ask(&self, query: Query) -> Result<Answer, String> {
        let (one, other) = (self.a.read(query.clone()).await, self.b.read(query.clone()).await);
        same(&query, one, other)
    }
}

/// What is told and forgotten in one commit nobody ever sees, and so nobody can count it: that is tried in a case of its
/// own.
fn without_unseen(mut bundles: Vec<Bundle>) -> Vec<Bundle> {
    let told = |write: &Write| match write {
        Write::Event { task, .. } => Some(*task),
        _ => None,
    };
    let told: BTreeSet<TaskId> =
        bundles.iter().flat_map(|bundle| bundle.writes.iter().filter_map(told)).collect();
    let forgets = |write: &Write| matches!(write, Write::Forget(forgotten) if told.contains(&forgotten.task));
    bundles.retain(|bundle| !bundle.writes.iter().any(forgets));
    bundles
}

type Committing = Result<Vec<Result<Committed, Refusal>>, StoreError>;

/// A claim that comes with a commit is served behind it.
async fn at_once(
    store: &dyn Store,
    bundles: Vec<Bundle>,
    claim: Option<Claim>,
) -> (Committing, Result<Vec<Claimed>, StoreError>) {
    let claiming = async {
        match claim {
            Some(claim) => store.claim(claim).await,
            None => Ok(Vec::new()),
        }
    };
    tokio::join!(biased; store.commit(bundles), claiming)
}

fn same<T: PartialEq + std::fmt::Debug>(
    asked: &impl std::fmt::Debug,
    one: Result<T, StoreError>,
    other: Result<T, StoreError>,
) -> Result<T, String> {
    match (one, other) {
        (Ok(one), Ok(other)) if one == other => Ok(one),
        (one, other) => Err(format!("{asked:#?}\none answers {one:#?}\nthe other {other:#?}")),
    }
}
