//! A store that notes what came of the bundles it was given, to see where random histories lead.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use ostler_kernel::{Bundle, Command, Refusal, bundle::Reason};
use ostler_store::{Answer, Claim, Claimed, Committed, Hint, Query, Store, StoreError};
use ostler_testing::reference_store::ReferenceStore;
use tokio::sync::watch;

#[derive(Default)]
pub struct Noting {
    store: ReferenceStore,
    notes: Mutex<BTreeSet<(Command, Outcome)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Applied,
    Duplicate,
    /// By something it expected.
    Refused,
    /// By a row that was in the way.
    KeptOut,
    /// It took inputs that were not there, or were taken before.
    TookWrongly,
}

impl Noting {
    pub fn into_notes(self) -> BTreeSet<(Command, Outcome)> {
        self.notes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, command: Command, result: &Result<Committed, Refusal>) {
        let outcome = match result {
            Ok(Committed { duplicate: false, .. }) => Outcome::Applied,
            Ok(Committed { duplicate: true, .. }) => Outcome::Duplicate,
            Err(Refusal { reason: Reason::Clash { .. }, .. }) => Outcome::KeptOut,
            Err(Refusal { reason: Reason::Inputs { .. }, .. }) => Outcome::TookWrongly,
            Err(Refusal { reason: Reason::Unmet { .. }, .. }) => Outcome::Refused,
        };
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert((command, outcome));
    }
}

#[async_trait]
impl Store for Noting {
    async fn commit(&self, bundles: Vec<Bundle>) -> Result<Vec<Result<Committed, Refusal>>, StoreError> {
        let commands: Vec<Command> = bundles.iter().map(|bundle| bundle.command).collect();
        let results = self.store.commit(bundles).await?;
        commands.iter().zip(&results).for_each(|(command, result)| self.note(*command, result));
        Ok(results)
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.store.claim(claim).await
    }

    async fn read(&self, query: Query) -> Result<Answer, StoreError> {
        self.store.read(query).await
    }

    fn watch(&self) -> watch::Receiver<Hint> {
        self.store.watch()
    }
}
