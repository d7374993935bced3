//! The tasks that write: each takes what waits, writes it on a connection of its own, and answers.

use std::{pin::pin, sync::Arc, time::Duration};

use ostler_kernel::Runtime;
use tokio::sync::{Mutex, mpsc, oneshot, watch};

use super::{
    Failed, Options,
    along::Along,
    connection::{Connection, timely},
    watch::Notices,
    writer::{self, Job, Results, Written},
};
use crate::{Claim, Claimed, Hint, StoreError, body::Prepared, planted::Bug, turns::SharedTurns};

/// How many callers a batch may hold.
const MAX_BATCH: usize = 256;

/// So many are worth a transaction of their own while another one is under way.
const ENOUGH: usize = 64;

/// The longest wait for that many: then the other one is held up, and somebody has to go on.
const GATHERING: Duration = Duration::from_millis(20);

/// What they have in common.
pub struct Writers {
    options: Options,
    runtime: Arc<dyn Runtime>,
    jobs: Mutex<mpsc::Receiver<Job>>,
    /// How many are writing.
    busy: watch::Sender<usize>,
    claims: mpsc::UnboundedSender<WaitingClaim>,
    turns: SharedTurns,
    notices: Arc<Notices>,
}

impl Writers {
    pub fn new(
        options: Options,
        runtime: Arc<dyn Runtime>,
        jobs: mpsc::Receiver<Job>,
        notices: Arc<Notices>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<WaitingClaim>) {
        let (claims, waiting_claims) = mpsc::unbounded_channel();
        let (jobs, busy, turns) = (Mutex::new(jobs), watch::Sender::default(), SharedTurns::default());
        (Arc::new(Self { options, runtime, jobs, busy, claims, turns, notices }), waiting_claims)
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
    async fn gather(&self) -> Option<Batch> {
        let mut jobs = self.jobs.lock().await;
        let mut batch = Batch::default();
        batch.add(jobs.recv().await?);
        let mut busy = self.busy.subscribe();
        let mut alone = pin!(busy.wait_for(|busy| *busy == 0));
        let mut patience = self.runtime.sleep(GATHERING);
        loop {
            batch.add_waiting(&mut jobs);
            if batch.len() >= ENOUGH {
                break;
            }
            tokio::select! {
                biased;
                _ = &mut alone => break,
                () = &mut patience => break,
                job = jobs.recv() => match job {
                    Some(job) => batch.add(job),
                    None => break,
                },
            }
        }
        self.busy.send_modify(|busy| *busy += 1);
        Some(batch)
    }

    async fn write(&self, connection: &mut Option<Connection>, batch: Batch) {
        if connection.as_ref().is_none_or(Connection::is_closed) {
            *connection = match self.connect().await {
                Ok(connection) => Some(connection),
                Err(error) => {
                    tracing::error!(%error, "the database can't be reached");
                    let error = StoreError::Unavailable(error.to_string());
                    return batch.fail(&error);
                }
            };
        }
        let Some(open) = connection else { return };
        if let Err(error) = self.write_commits(open, batch).await {
            tracing::error!(%error, "a batch failed; the connection is opened again");
            *connection = None;
        }
    }

    async fn connect(&self) -> Result<Connection, Failed> {
        let mut connection = Connection::open(&self.options, &self.runtime).await?;
        timely(&*self.runtime, writer::prepare(&mut connection)).await?;
        Ok(connection)
    }

    /// Those that were passed on, one after the other, on a connection of their own: no commit waits for them.
    pub async fn write_claims(&self, mut claims: mpsc::UnboundedReceiver<WaitingClaim>) {
        let mut connection = None;
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
        let (claimed, hint) = timely(&*self.runtime, writer::write_claim(open, claim, &self.turns)).await?;
        self.notices.committed(hint);
        Ok(claimed)
    }

    /// All in one transaction if that can be. Where one of them can't be written, or has to wait for long, each is
    /// written by itself. Claims that were not served go on behind them, and so find what the commits made ready.
    async fn write_commits(&self, connection: &Connection, batch: Batch) -> Result<(), Failed> {
        let Batch { commits, claims } = batch;
        let bundles: Vec<&Prepared> = commits.iter().flat_map(|(bundles, _)| bundles).collect();
        let claiming: Vec<&Claim> = claims.iter().map(|(claim, _)| claim).collect();
        let mut written = self.write_together(connection, &bundles, &claiming).await;
        // What can't be read of a claim is nothing to the commits.
        if matches!(written, Err(Failed::Body(_))) && !claims.is_empty() && !commits.is_empty() {
            written = self.write_together(connection, &bundles, &[]).await;
        }
        let mut given = Vec::new();
        let outcome = match written {
            Ok(written) => {
                self.notices.committed(written.hint);
                given = written.given;
                let mut results = written.results.into_iter();
                for (bundles, sender) in commits {
                    drop(sender.send(Ok(results.by_ref().take(bundles.len()).collect())));
                }
                Ok(())
            }
            Err(failed) if failed.is_of_one() && !self.options.planted.is(Bug::RefusedBreaksBatch) => {
                self.write_apart(connection, commits).await
            }
            Err(failed) => {
                if !commits.is_empty() {
                    // They may be there after all. For claims alone that would go round in circles.
                    self.notices.committed(Hint { position: 0, ready: 1, due: 1, resources: 1 });
                }
                let error = failed.for_caller();
                commits.into_iter().for_each(|(_, sender)| drop(sender.send(Err(error.clone()))));
                Err(failed)
            }
        };
        given.resize_with(claims.len(), || None);
        for (waiting, given) in claims.into_iter().zip(given) {
            match given {
                Some(runs) => drop(waiting.1.send(Ok(runs))),
                // The other end is held as long as we are.
                None => drop(self.claims.send(waiting)),
            }
        }
        outcome
    }

    async fn write_together(
        &self,
        connection: &Connection,
        bundles: &[&Prepared],
        claims: &[&Claim],
    ) -> Result<Written, Failed> {
        let along = Along { claims, turns: &self.turns };
        timely(&*self.runtime, writer::write_together(connection, bundles, along)).await
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
            let Written { results, hint, .. } = writing.await?;
            self.notices.committed(hint);
            all.extend(results);
        }
        Ok(all)
    }
}

type Commit = (Vec<Prepared>, oneshot::Sender<Result<Results, StoreError>>);

/// A claim, and where it waits for the answer.
pub type WaitingClaim = (Claim, oneshot::Sender<Result<Vec<Claimed>, StoreError>>);

/// What is written together.
#[derive(Default)]
struct Batch {
    commits: Vec<Commit>,
    claims: Vec<WaitingClaim>,
}

impl Batch {
    fn add(&mut self, job: Job) {
        match job {
            Job::Commit(bundles, sender) => self.commits.push((bundles, sender)),
            Job::Claim(claim, sender) => self.claims.push((claim, sender)),
        }
    }

    fn len(&self) -> usize {
        self.commits.len() + self.claims.len()
    }

    fn add_waiting(&mut self, jobs: &mut mpsc::Receiver<Job>) {
        while self.len() < MAX_BATCH
            && let Ok(job) = jobs.try_recv()
        {
            self.add(job);
        }
    }

    fn fail(self, error: &StoreError) {
        self.commits.into_iter().for_each(|(_, sender)| drop(sender.send(Err(error.clone()))));
        self.claims.into_iter().for_each(|(_, sender)| drop(sender.send(Err(error.clone()))));
    }
}
