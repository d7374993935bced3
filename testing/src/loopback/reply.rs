//! The body of an answer as a list of things done to the wire: bytes, pauses, and misbehaviour.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use hyper::body::{Body, Frame, SizeHint};

use super::{Ticket, pause};

/// One thing done to the wire.
#[derive(Debug, Clone)]
pub enum Write {
    /// These bytes, as one frame.
    Bytes(Bytes),
    /// These bytes, one at a time, with a pause before each.
    Drip(Bytes, Duration),
    /// What came before goes out now, not together with what follows.
    Flush,
    /// Nothing for a while.
    Pause(Duration),
    /// The connection is closed here, without the end that HTTP asks for. Preceded by a flush, or hyper would
    /// drop what it hasn't sent.
    Cut,
    /// Nothing for ever; the connection stays open.
    Stall,
}

/// The connection is closed, on purpose or because the other side went away.
#[derive(Debug, thiserror::Error)]
#[error("the connection was closed")]
pub struct Hangup;

/// A response body that plays its writes in order.
#[derive(Default)]
pub struct Reply {
    /// Apart from `rest`, so that the common answer of one write allocates nothing.
    next: Option<Write>,
    rest: VecDeque<Write>,
    /// The promised length, when the answer has a `content-length`.
    length: Option<u64>,
    pausing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    ticket: Option<Ticket>,
}

impl Reply {
    /// An answer of one write, with its length told.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { length: Some(bytes.len() as u64), next: Some(Write::Bytes(bytes)), ..Self::default() }
    }

    /// An answer of one write, chunked.
    pub fn chunked(bytes: Bytes) -> Self {
        Self { next: Some(Write::Bytes(bytes)), ..Self::default() }
    }

    /// An answer of several writes, chunked.
    pub fn script(writes: impl IntoIterator<Item = Write>) -> Self {
        Self { rest: writes.into_iter().collect(), ..Self::default() }
    }

    /// Promises a `content-length`, kept or not.
    pub fn promising(mut self, length: usize) -> Self {
        self.length = Some(length as u64);
        self
    }

    /// Ties the bookkeeping of the request to its answer.
    pub fn with_ticket(mut self, ticket: Ticket) -> Self {
        self.ticket = Some(ticket);
        self
    }

    /// Wraps the body into a response.
    pub fn into_response(self, status: StatusCode, content_type: &'static str) -> Response<Self> {
        let mut response = Response::new(self);
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        response
    }

    /// A JSON answer.
    pub fn json(status: StatusCode, value: &serde_json::Value) -> Response<Self> {
        Self::whole(value.to_string()).into_response(status, "application/json")
    }

    fn finish(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            ticket.answered();
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Hangup>>> {
        loop {
            if let Some(pausing) = &mut self.pausing {
                ready!(pausing.as_mut().poll(context));
                self.pausing = None;
            }
            match self.next.take().or_else(|| self.rest.pop_front()) {
                None => {
                    self.finish();
                    return Poll::Ready(None);
                }
                Some(Write::Bytes(bytes)) => {
                    // Hyper doesn't ask again once a promised length is reached.
                    if self.rest.is_empty() {
                        self.finish();
                    }
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Some(Write::Pause(duration)) => self.pausing = Some(Box::pin(pause(duration))),
                Some(Write::Drip(bytes, every)) => self.drip(bytes, every),
                Some(Write::Stall) => self.pausing = Some(Box::pin(std::future::pending())),
                Some(Write::Flush) => {
                    // One turn of waiting makes hyper flush.
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Write::Cut) => return Poll::Ready(Some(Err(Hangup))),
            }
        }
    }

    fn drip(&mut self, mut bytes: Bytes, every: Duration) {
        if bytes.is_empty() {
            return;
        }
        let first = bytes.split_to(1);
        if !bytes.is_empty() {
            self.rest.push_front(Write::Drip(bytes, every));
        }
        self.next = Some(Write::Bytes(first));
        self.pausing = Some(Box::pin(pause(every)));
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Hangup;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Hangup>>> {
        self.poll_write(context).map(|write| write.map(|bytes| bytes.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
