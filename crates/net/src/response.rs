//! An answer: its head at once, its body piece by piece, bounded in size and time.

use std::{fmt, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};

use crate::{
    NetError, retry_after,
    watchdog::{Waiting, Watchdog},
};

pub struct Response {
    inner: reqwest::Response,
    watchdog: Watchdog,
    idle: Duration,
    max_body: u64,
    received: u64,
    ended: bool,
}

impl Response {
    pub(crate) fn new(inner: reqwest::Response, watchdog: Watchdog, idle: Duration, max_body: u64) -> Self {
        Self { inner, watchdog, idle, max_body, received: 0, ended: false }
    }

    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// The media type, without its parameters.
    pub fn media_type(&self) -> Option<&str> {
        let value = self.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
        value.split(';').next().map(str::trim).filter(|media_type| !media_type.is_empty())
    }

    /// How long the other side asks us to stay away.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after::read(self.headers(), self.watchdog.runtime().now())
    }

    /// The next piece of the body. Nothing comes behind an error.
    pub async fn next(&mut self) -> Option<Result<Bytes, NetError>> {
        if self.ended {
            return None;
        }
        let piece = self.read().await.transpose();
        self.ended = !matches!(piece, Some(Ok(_)));
        piece
    }

    /// The rest of the body, which must not be longer than `max`.
    pub async fn bytes_up_to(&mut self, max: u64) -> Result<Bytes, NetError> {
        self.max_body = self.max_body.min(self.received.saturating_add(max));
        if self.inner.content_length().is_some_and(|length| length > self.max_body) {
            return Err(NetError::TooLarge { limit: self.max_body });
        }
        let Some(first) = self.next().await.transpose()? else { return Ok(Bytes::new()) };
        let Some(second) = self.next().await.transpose()? else { return Ok(first) };
        let mut whole = BytesMut::from(first);
        whole.extend_from_slice(&second);
        while let Some(piece) = self.next().await.transpose()? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// The beginning of the body, for a message about it: as much as comes without trouble.
    pub async fn beginning(&mut self, max: usize) -> Bytes {
        let mut beginning = BytesMut::new();
        while beginning.len() < max
            && let Some(Ok(piece)) = self.next().await
        {
            beginning.extend_from_slice(&piece);
        }
        beginning.truncate(max);
        beginning.freeze()
    }

    /// Waits shortly for the end of a body that has said all it had to say: only a connection that was read
    /// to its end can be used again.
    pub async fn await_end(&mut self, patience: Duration) {
        self.idle = self.idle.min(patience);
        let _nothing_more_is_of_interest = self.next().await;
    }

    async fn read(&mut self) -> Result<Option<Bytes>, NetError> {
        let idle = self.idle;
        let piece = self.watchdog.watch(|| (Waiting::Idle, idle), self.inner.chunk()).await;
        let piece = piece.map_err(|late| NetError::late(late, true))?;
        let piece = piece.map_err(|error| NetError::in_answer(error, true))?;
        self.received += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        match self.received > self.max_body {
            true => Err(NetError::TooLarge { limit: self.max_body }),
            false => Ok(piece),
        }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("status", &self.status()).finish_non_exhaustive()
    }
}

/// A status for people: `404 Not Found`, or just the number of one that has no name.
pub fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}
