//! The reference store: plain maps behind one lock, with nothing clever in it, so that it is right for the eye.
//! It keeps the promises of the port word for word; what it does is what any other store must do. Nothing is
//! kept when it goes away.

mod claim;
mod constraints;
mod read;
mod tables;

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ostler_kernel::{
    Bundle, Refusal,
    bundle::{Reason, Verdict},
};
use ostler_store::{Answer, Claim, Claimed, Committed, Hint, Query, Store, StoreError};
use tokio::sync::watch;

use tables::Tables;

pub struct ReferenceStore {
    tables: Mutex<Tables>,
    hint: watch::Sender<Hint>,
}

impl ReferenceStore {
    pub fn new() -> Self {
        Self { tables: Mutex::default(), hint: watch::Sender::new(Hint::default()) }
    }

    /// Does all of `work` at one moment, and tells whoever watches if it changed something.
    fn at_once<T>(&self, work: impl FnOnce(&mut Tables) -> T) -> T {
        let mut tables: MutexGuard<'_, Tables> = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut tables);
        let hint = tables.hint();
        self.hint.send_if_modified(|before| std::mem::replace(before, hint) != hint);
        result
    }
}

impl Default for ReferenceStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Store for ReferenceStore {
    async fn commit(&self, bundles: Vec<Bundle>) -> Result<Vec<Result<Committed, Refusal>>, StoreError> {
        Ok(self.at_once(|tables| bundles.into_iter().map(|bundle| take(tables, bundle)).collect()))
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        Ok(self.at_once(|tables| tables.claim(&claim)))
    }

    async fn read(&self, query: Query) -> Result<Answer, StoreError> {
        Ok(self.at_once(|tables| tables.read(query)))
    }

    fn watch(&self) -> watch::Receiver<Hint> {
        self.hint.subscribe()
    }
}

fn take(tables: &mut Tables, bundle: Bundle) -> Result<Committed, Refusal> {
    let verdict = match bundle.judge(tables) {
        Ok(verdict) => verdict,
        Err(never) => match never {},
    };
    match verdict {
        Verdict::Refuse(refusal) => Err(refusal),
        Verdict::Duplicate => Ok(Committed { position: tables.position(), duplicate: true }),
        Verdict::Apply => match constraints::clash(tables, &bundle.writes) {
            Some(clash) => Err(Refusal { command: bundle.command, reason: Reason::Clash { clash } }),
            None => {
                bundle.writes.into_iter().for_each(|write| tables.apply(write));
                Ok(Committed { position: tables.position(), duplicate: false })
            }
        },
    }
}
