//! Spans that wait to be sent: bounded, and never waited for by whoever puts one in.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::Span;

pub(crate) struct Buffer {
    spans: Mutex<VecDeque<Span>>,
    room: usize,
    batch: usize,
    filled: Notify,
}

impl Buffer {
    pub fn new(room: usize, batch: usize) -> Self {
        Self { spans: Mutex::default(), room, batch: batch.min(room), filled: Notify::new() }
    }

    /// Whether there was room.
    pub fn put(&self, span: Span) -> bool {
        let mut spans = self.lock();
        if spans.len() >= self.room {
            return false;
        }
        spans.push_back(span);
        if spans.len() == self.batch {
            self.filled.notify_one();
        }
        true
    }

    /// The next to be sent; none if there are none.
    pub fn take(&self) -> Option<Vec<Span>> {
        let mut spans = self.lock();
        let count = spans.len().min(self.batch);
        (count > 0).then(|| spans.drain(..count).collect())
    }

    /// Waits until there are enough to be sent.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Span>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
