//! What is written together, and when. A commit costs the database much, and hardly more if it holds much: so more is waited
//! for as long as somebody else is writing, and a moment longer where many write. Who is alone never waits.

use std::{pin::pin, sync::Arc, time::Duration};

use ostler_kernel::{
    Runtime,
    runtime::{BoxFuture, timeout},
};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

use super::{
    apply::raise,
    writer::{Job, Results},
};
use crate::{Claim, Claimed, Hint, StoreError, body::Prepared};

/// How many callers a batch may hold.
const MAX_BATCH: usize = 256;

/// So many are worth a transaction of their own while another one is under way.
const ENOUGH: usize = 64;

/// The longest wait for that many: then the other one is held up, and somebody has to go on.
const GATHERING: Duration = Duration::from_millis(20);

/// So many commits at once are of callers who don't wait for each other.
const MANY: usize = 3;

/// From the beginning of a batch of so many to that of the next.
const PACE: Duration = Duration::from_millis(4);

/// So soon a worker that was given something claims again. What became ready meanwhile is given in its own commit if
/// that waits for the claim; or else in another one.
const BACK_WITHIN: Duration = Duration::from_millis(3);

pub struct Gatherer {
    runtime: Arc<dyn Runtime>,
    queue: Mutex<Queue>,
    writing: watch::Sender<Writing>,
}

/// What waits to be written.
struct Queue {
    jobs: mpsc::Receiver<Job>,
    /// Until the next batch may begin, if the last one held many.
    pace: Option<BoxFuture<'static, ()>>,
}

#[derive(Default)]
struct Writing {
    /// Batches that are being written.
    batches: usize,
    /// Until when, on the monotonic clock, claims are expected of workers that were given something.
    back_until: Duration,
}

pub type Commit = (Vec<Prepared>, oneshot::Sender<Result<Results, StoreError>>);

/// A claim, and where it waits for the answer.
pub type WaitingClaim = (Claim, oneshot::Sender<Result<Vec<Claimed>, StoreError>>);

/// What is written together.
#[derive(Default)]
pub struct Batch {
    pub commits: Vec<Commit>,
    pub claims: Vec<WaitingClaim>,
    /// Something in it becomes ready.
    makes_ready: bool,
}

impl Gatherer {
    pub fn new(runtime: Arc<dyn Runtime>, jobs: mpsc::Receiver<Job>) -> Self {
        let queue = Mutex::new(Queue { jobs, pace: None });
        Self { runtime, queue, writing: watch::Sender::default() }
    }

    /// The next batch, for whoever asks for it first; none when the store is closed. To be followed by [`Self::written`].
    pub async fn next(&self) -> Option<Batch> {
        let mut queue = self.queue.lock().await;
        let mut batch = Batch::default();
        batch.add(queue.jobs.recv().await?);
        let pace = queue.pace.take();
        let turn = timeout(&*self.runtime, GATHERING, self.turn(pace));
        queue.add_until(&mut batch, turn, |batch| batch.len() >= ENOUGH).await;
        if batch.lacks_claim() {
            let left = self.writing.borrow().back_until.saturating_sub(self.runtime.monotonic());
            if !left.is_zero() {
                let is_whole = |batch: &Batch| batch.len() >= ENOUGH || !batch.lacks_claim();
                queue.add_until(&mut batch, self.runtime.sleep(left), is_whole).await;
            }
        }
        queue.pace = (batch.commits.len() >= MANY).then(|| self.runtime.sleep(PACE));
        self.writing.send_modify(|writing| writing.batches += 1);
        Some(batch)
    }

    /// A batch was written, or failed. `gave` says whether a claim in it was given something.
    pub fn written(&self, gave: bool) {
        let back_until = self.runtime.monotonic() + BACK_WITHIN;
        self.writing.send_modify(|writing| {
            writing.batches -= 1;
            if gave {
                writing.back_until = back_until;
            }
        });
    }

    /// Waits until nobody else is writing, and the last batch began long enough ago.
    async fn turn(&self, pace: Option<BoxFuture<'static, ()>>) {
        if let Some(pace) = pace {
            pace.await;
        }
        // Fails only without a sender, which is ours.
        _ = self.writing.subscribe().wait_for(|writing| writing.batches == 0).await;
    }
}

impl Queue {
    /// Adds what comes until then, or until it is enough.
    async fn add_until(&mut self, batch: &mut Batch, until: impl Future, is_enough: impl Fn(&Batch) -> bool) {
        let mut until = pin!(until);
        loop {
            self.add_waiting(batch);
            if is_enough(batch) {
                return;
            }
            tokio::select! {
                biased;
                _ = &mut until => return self.add_waiting(batch),
                job = self.jobs.recv() => match job {
                    Some(job) => batch.add(job),
                    None => return,
                },
            }
        }
    }

    fn add_waiting(&mut self, batch: &mut Batch) {
        while batch.len() < MAX_BATCH
            && let Ok(job) = self.jobs.try_recv()
        {
            batch.add(job);
        }
    }
}

impl Batch {
    fn add(&mut self, job: Job) {
        match job {
            Job::Commit(bundles, sender) => {
                let mut hint = Hint::default();
                bundles
                    .iter()
                    .flat_map(|prepared| &prepared.bundle.writes)
                    .for_each(|write| raise(&mut hint, write));
                self.makes_ready |= hint.ready > 0;
                self.commits.push((bundles, sender));
            }
            Job::Claim(claim, sender) => self.claims.push((claim, sender)),
        }
    }

    fn len(&self) -> usize {
        self.commits.len() + self.claims.len()
    }

    fn lacks_claim(&self) -> bool {
        self.makes_ready && self.claims.is_empty()
    }

    pub fn fail(self, error: &StoreError) {
        self.commits.into_iter().for_each(|(_, sender)| drop(sender.send(Err(error.clone()))));
        self.claims.into_iter().for_each(|(_, sender)| drop(sender.send(Err(error.clone()))));
    }
}

#[cfg(test)]
mod tests;
