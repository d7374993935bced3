//! The body of a request, which notes when it begins to be written: from then on the other side may have seen
//! the request.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// Whether a byte of the request may have left.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent(Arc<AtomicBool>);

pub(crate) struct NotedBody {
    bytes: Option<Bytes>,
    sent: Sent,
}

impl Sent {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl NotedBody {
    pub(crate) fn new(bytes: Bytes, sent: Sent) -> Self {
        Self { bytes: Some(bytes), sent }
    }

    fn is_empty(&self) -> bool {
        self.bytes.as_ref().is_none_or(Bytes::is_empty)
    }
}

impl Body for NotedBody {
    type Data = Bytes;
    type Error = Infallible;

    /// The connection asks for the body after it has put the head into its buffer and before it writes any
    /// of it to the socket.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.sent.0.store(true, Ordering::Release);
        let bytes = self.bytes.take().filter(|bytes| !bytes.is_empty());
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    /// Not even an empty body has ended before it was asked for, or nothing would be noted. An empty one is never
    /// asked for: that it has not ended is the last that is asked of it, when the connection puts the head together.
    fn is_end_stream(&self) -> bool {
        if self.is_empty() {
            self.sent.0.store(true, Ordering::Release);
        }
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
