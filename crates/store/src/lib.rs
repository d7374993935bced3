//! The one durable place.
//!
//! A store has four verbs: [`Store::commit`], [`Store::claim`], [`Store::read`] and [`Store::watch`]. What
//! they promise is written at each of them and tried by [`conformance`]. Implementations: [`sqlite`], [`postgres`], and the
//! reference store in `testing`, which is plain maps.

mod body;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod planted;
pub mod postgres;
pub mod query;
pub mod sqlite;

#[cfg(test)]
mod compatibility;
mod turns;

use async_trait::async_trait;
use ostler_kernel::{Bundle, Lease, Refusal, Run, Session, Task, Timestamp, queue::Shares};
use tokio::sync::watch;

pub use postgres::PostgresStore;
pub use query::{
    Accepted, Answer, DuePlace, FirmLog, Query, ResourceFilter, SessionPlace, StoreExt, TaskFilter, TaskPage,
    TaskRef, TaskRow,
};
pub use sqlite::SqliteStore;

#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Judges each bundle against the rows as they are, in order, and applies those that hold: all of a
    /// bundle or nothing. When this returns, what was applied survives a power cut. A bundle with the key of
    /// the last one its run took is answered as that was, and writes nothing.
    ///
    /// An error means that nobody knows: some may have been applied. Ask, or send keyed ones again.
    async fn commit(&self, bundles: Vec<Bundle>) -> Result<Vec<Result<Committed, Refusal>>, StoreError>;

    /// Gives up to `slots` ready runs to the lease: by weight between namespaces, by rank inside one, within the
    /// limits of their classes and namespaces, and only those whose requirements the worker meets. The same claim asked
    /// again gets the same runs, as far as they still hold; one that got nothing, or of which nothing is left, may be
    /// given something then. A claim of a former incarnation, or one that a later claim overtook, gets nothing; nor does
    /// that of a worker that is cordoned get anything new.
    ///
    /// Of claims that got nothing a store need not know after it was opened anew. So a late copy of one may
    /// take runs that its worker never hears of: its next renewal, which names what it holds, frees them.
    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError>;

    /// Answers from one moment that is no older than any commit answered before the call.
    async fn read(&self, query: Query) -> Result<Answer, StoreError>;

    /// Tells that something was committed. Hints are coalesced; a reader looks and then waits again.
    fn watch(&self) -> watch::Receiver<Hint>;

    /// Whether other servers may write to it. What they do to runs that were handed out here is then told by the log
    /// alone.
    fn is_shared(&self) -> bool {
        false
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// Every event of this bundle stands at or below it, in the order of commits.
    pub position: u64,
    /// It had been applied before.
    pub duplicate: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub lease: Lease,
    pub slots: usize,
    /// How namespaces share, as far as the caller knows.
    pub shares: Shares,
    pub now: Timestamp,
}

impl Claim {
    /// Between namespaces that are all alike.
    pub fn new(lease: Lease, slots: usize, now: Timestamp) -> Self {
        Self { lease, slots, shares: Shares::default(), now }
    }
}

/// A run that now belongs to the claiming lease, with the rows around it. The first time it is given, its message comes
/// whole, as it enters the conversation; the row keeps only who sent it.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    pub task: Task,
    pub run: Run,
    pub session: Session,
}

/// Each number only ever grows, but for the position of a store that was put back; which it is tells what there may be to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hint {
    /// The position of the last event.
    pub position: u64,
    /// Rises when a run became ready, or when there may be room or a worker for one that was.
    pub ready: u64,
    /// Rises when a run got a time at which it wakes or expires.
    pub due: u64,
    /// Rises when a resource changed. Of its own server's commits, before they are answered.
    pub resources: u64,
    /// Rises when the store turned out to lack what was committed to it: it is a copy now that had not got all of it.
    /// Positions that were told before are given again.
    pub put_back: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store is closed or was never opened right; nothing was written.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The commit was under way when something broke: it may or may not be there.
    #[error("nobody knows whether the commit is there: {0}")]
    Unknown(String),
    /// The answer could not be read; nothing was written.
    #[error("the store could not answer: {0}")]
    Read(String),
}
