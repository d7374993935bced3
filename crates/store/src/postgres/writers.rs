//! The tasks that write: each takes what waits, writes it on a connection of its own, and answers.

use std::{pin::pin, sync::Arc, time::Duration};

use ostler_kernel::Runtime;
use tokio::sync::{Mutex, mpsc, oneshot, watch};

use super::{
    Failed, Options,
    connection::{Connection, timely},
    watch::Notices,
    writer::{self, Job, Results, Written},
};
use crate::{Claim, Claimed, StoreError, body::Prepared, planted::Bug, turns::Turns};

/// How many callers a batch may hold.
const MAX_BATCH: usize = 256;

/// So many are worth a transaction of their own while another one is under way.
const ENOUGH: usize = 16;

/// The longest wait for that many: the other one may be held up.
const GATHERING: Duration = Duration::from_millis(5);

/// What they have in common.
pub struct Writers {
    options: Options,
    runtime: Arc<dyn Runtime>,
    jobs: Mutex<mpsc::Receiver<Job>>,
    /// How many are writing.
    busy: watch::Sender<usize>,
    claims: mpsc::UnboundedSender<WaitingClaim>,
    waiting_claims: Mutex<mpsc::UnboundedReceiver<WaitingClaim>>,
    turns: Mutex<Turns>,
    notices: Arc<Notices>,
}

impl Writers {
    pub fn new(
        options: Options,
        runtime: Arc<dyn Runtime>,
        jobs: mpsc::Receiver<Job>,
        notices: Arc<Notices>,
    ) -> Arc<Self> {
        let (claims, waiting_claims) = mpsc::unbounded_channel();
        Arc::new(Self {
            options,
            runtime,
            jobs: Mutex::new(jobs),
            busy: watch::Sender::default(),
            claims,
            waiting_claims: Mutex::new(waiting_claims),
            turns: Mutex::default(),
            notices,
        })
    }

    /// One of them, as long as the store is open.
    pub async fn write_batches(&self) {
        let mut connection = None;
        while let Some(batch) = self.gather().await {
            self.write(&mut connection, batch).await;
            self.busy.send_modify(|busy| *busy -= 1);
        }
    }

    /// The first job and all that waits behind it; none when the store is closed. A commit costs the database much, and
    /// hardly more if it holds much: while another one is under way, more is waited for.
    async fn gather(&self) -> Option<Vec<Job>> {
        let mut jobs = self.jobs.lock().await;
        let mut batch = vec![jobs.recv().await?];
        let mut busy = self.busy.subscribe();
        let mut alone = pin!(busy.wait_for(|busy| *busy == 0));
        let mut patience = self.runtime.sleep(GATHERING);
        loop {
            while batch.len() < MAX_BATCH
                && let Ok(job) = jobs.try_recv()
            {
                batch.push(job);
            }
            if batch.len() >= ENOUGH {
                break;
            }
            tokio::select! {
                biased;
                _ = &mut alone => break,
                () = &mut patience => break,
                job = jobs.recv() => match job {
                    Some(job) => batch.push(job),
                    None => break,
                },
            }
        }
        self.busy.send_modify(|busy| *busy += 1);
        Some(batch)
    }

    async fn write(&self, connection: &mut Option<Connection>, batch: Vec<Job>) {
        if connection.as_ref().is_none_or(Connection::is_closed) {
            *connection = match self.connect().await {
                Ok(connection) => Some(connection),
                Err(error) => {
                    tracing::error!(%error, "the database can't be reached");
                    let error = StoreError::Unavailable(error.to_string());
                    return batch.into_iter().for_each(|job| job.fail(&error));
                }
            };
        }
        let Some(open) = connection else { return };
        if let Err(error) = self.write_on(open, batch).await {
            tracing::error!(%error, "a batch failed; the connection is opened again");
            *connection = None;
        }
    }

    async fn connect(&self) -> Result<Connection, Failed> {
        let mut connection = Connection::open(&self.options, &self.runtime).await?;
        timely(&*self.runtime, writer::prepare(&mut connection)).await?;
        Ok(connection)
    }

    /// Commits first; claims go on behind them, and so find what the commits made ready.
    async fn write_on(&self, connection: &Connection, batch: Vec<Job>) -> Result<(), Failed> {
        let (mut commits, mut claims) = (Vec::new(), Vec::new());
        for job in batch {
            match job {
                Job::Commit(bundles, sender) => commits.push((bundles, sender)),
                Job::Claim(claim, sender) => claims.push((claim, sender)),
            }
        }
        let outcome = self.write_commits(connection, commits).await;
        for claim in claims {
            // The other end is held as long as we are.
            drop(self.claims.send(claim));
        }
        outcome
    }

    /// One after the other, on a connection of their own: no commit waits for a claim.
    pub async fn write_claims(&self) {
        let mut connection = None;
        let mut claims = self.waiting_claims.lock().await;
        while let Some((claim, sender)) = claims.recv().await {
            let claimed = self.write_claim(&mut connection, &claim).await;
            let answer = claimed.map_err(|failed| {
                if !failed.is_of_one() {
                    tracing::error!(error = %failed, "a claim failed; the connection is opened again");
                    connection = None;
                }
                failed.for_caller()
            });
            drop(sender.send(answer));
        }
    }

    async fn write_claim(
        &self,
        connection: &mut Option<Connection>,
        claim: &Claim,
    ) -> Result<Vec<Claimed>, Failed> {
        let open = match connection.take().filter(|open| !open.is_closed()) {
            Some(open) => open,
            None => self.connect().await?,
        };
        let open = connection.insert(open);
        let mut turns = self.turns.lock().await;
        let (claimed, hint) = timely(&*self.runtime, writer::write_claim(open, claim, &mut turns)).await?;
        self.notices.committed(hint);
        Ok(claimed)
    }

    /// All in one transaction if that can be. Where one of them can't be written, or has to wait for long, each is
    /// written by itself.
    async fn write_commits(&self, connection: &Connection, commits: Vec<Commit>) -> Result<(), Failed> {
        let bundles: Vec<&Prepared> = commits.iter().flat_map(|(bundles, _)| bundles).collect();
        match timely(&*self.runtime, writer::write_together(connection, &bundles)).await {
            Ok(Written { results, hint }) => {
                self.notices.committed(hint);
                let mut results = results.into_iter();
                for (bundles, sender) in commits {
                    drop(sender.send(Ok(results.by_ref().take(bundles.len()).collect())));
                }
                Ok(())
            }
            Err(failed) if failed.is_of_one() && !self.options.planted.is(Bug::RefusedBreaksBatch) => {
                self.write_apart(connection, commits).await
            }
            Err(failed) => {
                let error = failed.for_caller();
                commits.into_iter().for_each(|(_, sender)| drop(sender.send(Err(error.clone()))));
                Err(failed)
            }
        }
    }

    async fn write_apart(&self, connection: &Connection, commits: Vec<Commit>) -> Result<(), Failed> {
        let mut outcome = Ok(());
        for (bundles, sender) in commits {
            if outcome.is_err() {
                drop(sender.send(Err(StoreError::Unavailable("the connection was lost".into()))));
                continue;
            }
            match self.write_each(connection, &bundles).await {
                Ok(results) => drop(sender.send(Ok(results))),
                Err(failed) => {
                    // Of several bundles some may count already.
                    drop(sender.send(Err(StoreError::Unknown(failed.to_string()))));
                    if !failed.is_of_one() {
                        outcome = Err(failed);
                    }
                }
            }
        }
        outcome
    }

    async fn write_each(&self, connection: &Connection, bundles: &[Prepared]) -> Result<Results, Failed> {
        let mut all = Vec::with_capacity(bundles.len());
        for bundle in bundles {
            let writing = timely(&*self.runtime, writer::write_alone(connection, bundle));
            let Written { results, hint } = writing.await?;
            self.notices.committed(hint);
            all.extend(results);
        }
        Ok(all)
    }
}

type Commit = (Vec<Prepared>, oneshot::Sender<Result<Results, StoreError>>);

type WaitingClaim = (Claim, oneshot::Sender<Result<Vec<Claimed>, StoreError>>);

impl Job {
    fn fail(self, error: &StoreError) {
        match self {
            Job::Commit(_, sender) => drop(sender.send(Err(error.clone()))),
            Job::Claim(_, sender) => drop(sender.send(Err(error.clone()))),
        }
    }
}
