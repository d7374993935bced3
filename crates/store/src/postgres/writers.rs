//! The tasks that write: each takes what waits, writes it on a connection of its own, and answers.

use std::sync::Arc;

use ostler_kernel::Runtime;
use tokio::sync::mpsc;

use super::{
    Failed, Options,
    along::Along,
    connection::{Connection, timely},
    gather::{Batch, Commit, Gatherer, WaitingClaim},
    watch::Notices,
    writer::{self, Job, Results, Written},
};
use crate::{Claim, Claimed, Hint, StoreError, body::Prepared, planted::Bug, turns::SharedTurns};

/// What they have in common.
pub struct Writers {
    options: Options,
    runtime: Arc<dyn Runtime>,
    gatherer: Gatherer,
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
        let (gatherer, turns) = (Gatherer::new(Arc::clone(&runtime), jobs), SharedTurns::default());
        (Arc::new(Self { options, runtime, gatherer, claims, turns, notices }), waiting_claims)
    }

    /// One of them, as long as the store is open.
    pub async fn write_batches(&self) {
        let mut connection = None;
        while let Some(batch) = self.gatherer.next().await {
            let gave = self.write(&mut connection, batch).await;
            self.gatherer.written(gave);
        }
    }

    /// Whether claims in it were given something.
    async fn write(&self, connection: &mut Option<Connection>, batch: Batch) -> bool {
        if connection.as_ref().is_none_or(Connection::is_closed) {
            *connection = match self.connect().await {
                Ok(connection) => Some(connection),
                Err(error) => {
                    tracing::error!(%error, "the database can't be reached");
                    let error = StoreError::Unavailable(error.to_string());
                    batch.fail(&error);
                    return false;
                }
            };
        }
        let Some(open) = connection else { return false };
        match self.write_commits(open, batch).await {
            Ok(gave) => gave,
            Err(error) => {
                tracing::error!(%error, "a batch failed; the connection is opened again");
                *connection = None;
                false
            }
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
    /// written by itself. Claims that were not served go on behind them, and so find what the commits made ready. Says
    /// whether one was given something.
    async fn write_commits(&self, connection: &Connection, batch: Batch) -> Result<bool, Failed> {
        let Batch { commits, claims, .. } = batch;
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
                    self.notices.committed(Hint { ready: 1, due: 1, resources: 1, ..Hint::default() });
                }
                let error = failed.for_caller();
                commits.into_iter().for_each(|(_, sender)| drop(sender.send(Err(error.clone()))));
                Err(failed)
            }
        };
        let gave = given.iter().flatten().any(|runs| !runs.is_empty());
        given.resize_with(claims.len(), || None);
        for (waiting, given) in claims.into_iter().zip(given) {
            match given {
                Some(runs) => drop(waiting.1.send(Ok(runs))),
                // The other end is held as long as we are.
                None => drop(self.claims.send(waiting)),
            }
        }
        outcome.map(|()| gave)
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
