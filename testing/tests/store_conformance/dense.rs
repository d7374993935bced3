//! A store whose positions are counted 1, 2, 3, whatever places the one behind it gives: so that two stores can be
//! compared word by word.

use std::sync::Mutex;

use async_trait::async_trait;
use ostler_kernel::{Bundle, Refusal};
use ostler_store::{Answer, Claim, Claimed, Committed, Hint, Query, Store, StoreError, StoreExt};
use tokio::sync::watch;

pub struct Dense<S> {
    inner: S,
    /// The places of all events, in order.
    places: Mutex<Vec<u64>>,
    /// One after the other: whoever comes behind must not count the same again.
    looking: tokio::sync::Mutex<()>,
}

impl<S: Store> Dense<S> {
    pub fn new(inner: S) -> Self {
        Self { inner, places: Mutex::default(), looking: tokio::sync::Mutex::default() }
    }

    async fn look(&self) -> Result<(), StoreError> {
        let _turn = self.looking.lock().await;
        let last = self.places.lock().expect("whole").last().copied().unwrap_or(0);
        let events = self.inner.log(last, usize::MAX).await?;
        self.places.lock().expect("whole").extend(events.iter().map(|event| event.position));
        Ok(())
    }

    /// How many events stand up to this place.
    fn count(&self, position: u64) -> u64 {
        self.places.lock().expect("whole").partition_point(|place| *place <= position) as u64
    }

    /// The place of the event with this number; none has number 0.
    fn place(&self, count: u64) -> u64 {
        let places = self.places.lock().expect("whole");
        let index = usize::try_from(count).unwrap_or(usize::MAX).checked_sub(1);
        index.map_or(0, |index| places.get(index).copied().unwrap_or(u64::MAX))
    }
}

#[async_trait]
impl<S: Store> Store for Dense<S> {
    async fn commit(&self, bundles: Vec<Bundle>) -> Result<Vec<Result<Committed, Refusal>>, StoreError> {
        let results = self.inner.commit(bundles).await?;
        self.look().await?;
        let counted =
            |committed: Committed| Committed { position: self.count(committed.position), ..committed };
        Ok(results.into_iter().map(|result| result.map(counted)).collect())
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        let claimed = self.inner.claim(claim).await;
        self.look().await?;
        claimed
    }

    async fn read(&self, query: Query) -> Result<Answer, StoreError> {
        let query = match query {
            Query::Log { after, limit } => Query::Log { after: self.place(after), limit },
            query => query,
        };
        let mut answer = self.inner.read(query).await?;
        if let Answer::Events(events) = &mut answer {
            events.iter_mut().for_each(|event| event.position = self.count(event.position));
        }
        Ok(answer)
    }

    fn watch(&self) -> watch::Receiver<Hint> {
        self.inner.watch()
    }
}
