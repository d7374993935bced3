//! The log of all: every event of the store, in the order of commits, from a position on and as it comes. Whoever falls
//! behind reads on from the store, so nothing is skipped and nothing comes twice.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ostler_kernel::{Event, Runtime};
use ostler_store::{FirmLog, Store, StoreError, StoreExt};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::Control;

const AT_ONCE: usize = 512;

/// Between two looks at a log that is not firm yet.
const A_MOMENT: Duration = Duration::from_millis(4);

pub struct LogFollower {
    store: Arc<dyn Store>,
    runtime: Arc<dyn Runtime>,
    receiver: broadcast::Receiver<Arc<Event>>,
    /// How often the store had been put back when this began.
    put_back: u64,
    /// Of the last event that was given.
    position: u64,
    read: VecDeque<Event>,
    /// Up to here the store has to be read; what comes behind is received. None if it was.
    behind: Option<u64>,
}

impl Control {
    /// The log of all behind a position.
    pub fn follow_all(&self, after: u64) -> LogFollower {
        let put_back = self.store.watch().borrow().put_back;
        let receiver = self.feed.subscribe_to_all();
        LogFollower {
            store: Arc::clone(&self.store),
            runtime: Arc::clone(&self.runtime),
            receiver,
            put_back,
            position: after,
            read: VecDeque::new(),
            // Read behind the subscription: whatever is passed over meanwhile stands in front of it.
            behind: Some(self.store.watch().borrow().position),
        }
    }

    /// Where the log ends now; what is committed from now on stands behind it.
    pub async fn log_end(&self) -> Result<u64, StoreError> {
        let last = self.store.watch().borrow().position;
        Ok(self.store.firm_log(last, 0).await?.upto.min(last))
    }

    /// Whether the log has come as far as this position: one that it has not was given by another store.
    pub async fn has_position(&self, position: u64) -> Result<bool, StoreError> {
        let last = self.store.watch().borrow().position;
        if position <= last {
            return Ok(true);
        }
        // Another server may be ahead of what was heard here.
        Ok(self.store.is_shared() && position <= self.store.firm_log(position, 0).await?.upto)
    }
}

impl LogFollower {
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next event; never ends by itself.
    pub async fn next(&mut self) -> Result<Arc<Event>, StoreError> {
        loop {
            if self.store.watch().borrow().put_back != self.put_back {
                return Err(StoreError::Unavailable("the store was put back".into()));
            }
            if let Some(event) = self.read.pop_front() {
                self.position = event.position;
                return Ok(Arc::new(event));
            }
            if let Some(until) = self.behind {
                self.read_on(until).await?;
                continue;
            }
            match self.receiver.recv().await {
                Ok(event) if event.position <= self.position => {}
                Ok(event) => {
                    self.position = event.position;
                    return Ok(event);
                }
                Err(RecvError::Lagged(_)) => self.behind = Some(self.store.watch().borrow().position),
                Err(RecvError::Closed) => {
                    return Err(StoreError::Unavailable("the log goes on no more".into()));
                }
            }
        }
    }

    async fn read_on(&mut self, until: u64) -> Result<(), StoreError> {
        let FirmLog { events, upto } = self.store.firm_log(self.position, AT_ONCE).await?;
        let is_full = events.len() == AT_ONCE;
        self.read.extend(events);
        if !is_full && upto >= until {
            self.behind = None;
        } else if !is_full {
            self.runtime.sleep(A_MOMENT).await;
        }
        Ok(())
    }
}
