//! Answers that go on: how many there may be at once, and that they end when their caller is not let in any more.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::header;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use ostler_control::Control;
use ostler_kernel::{Runtime, runtime::BoxFuture};

use super::{Limits, Payer, bucket::lock};
use crate::{access::Caller, problem::Problem};

/// Those who follow something are counted as long as they do.
pub struct Streams {
    limits: Limits,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    count: usize,
    each: BTreeMap<Payer, usize>,
}

/// Held as long as the stream lives.
pub struct Permit {
    streams: Arc<Streams>,
    payer: Payer,
}

/// How soon it is worth another try: someone else has to go.
const SOON: Duration = Duration::from_secs(5);

/// What nobody tells of, such as that a token's time is over, is seen no later.
const LOOK_EVERY: Duration = Duration::from_secs(30);

impl Streams {
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, open: Mutex::default() })
    }

    pub fn open(self: &Arc<Self>, payer: Payer) -> Result<Permit, Problem> {
        let mut open = lock(&self.open);
        if open.count >= self.limits.streams {
            return Err(Problem::too_many("as many follow something here as may", SOON));
        }
        let count = open.each.entry(payer).or_default();
        if *count >= self.limits.streams_per_caller {
            return Err(Problem::too_many("this caller follows as much at once as it may", SOON));
        }
        *count += 1;
        open.count += 1;
        Ok(Permit { streams: Arc::clone(self), payer })
    }

    /// Whether an answer is one that goes on.
    pub fn is_stream(response: &Response) -> bool {
        let kind = response.headers().get(header::CONTENT_TYPE);
        kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = lock(&self.streams.open);
        open.count = open.count.saturating_sub(1);
        if let Some(count) = open.each.get_mut(&self.payer) {
            *count -= 1;
            if *count == 0 {
                open.each.remove(&self.payer);
            }
        }
    }
}

/// Returns once what the caller was let in by does not count any more, or gives it other rights: then it may ask again,
/// and is judged anew.
pub async fn is_over(control: Arc<Control>, runtime: Arc<dyn Runtime>, caller: Caller) {
    let Some(proof) = caller.proof() else { return };
    let mut changes = control.watch_credentials();
    loop {
        // Who can't be asked about is let go on for the moment: it was let in, and nothing says otherwise.
        if let Ok(holder) = control.holder(proof).await
            && holder.is_none_or(|holder| holder.grant != *caller.grant())
        {
            return;
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = runtime.sleep(LOOK_EVERY) => {}
        }
    }
}

/// A stream that is counted, and cut when it is over.
pub fn counted(response: Response, permit: Permit, over: Option<BoxFuture<'static, ()>>) -> Response {
    response.map(|body| Body::new(Counted { body: Some(body), over, _permit: permit }))
}

struct Counted {
    body: Option<Body>,
    over: Option<BoxFuture<'static, ()>>,
    _permit: Permit,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.over.as_mut().is_some_and(|over| over.as_mut().poll(context).is_ready()) {
            (self.body, self.over) = (None, None);
        }
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_of_each_and_of_all() {
        let limits = Limits { streams: 3, streams_per_caller: 2, ..Limits::default() };
        let streams = Streams::new(limits);
        let payer = |last: u8| Payer::Address([192, 0, 2, last].into());
        let first = streams.open(payer(1)).unwrap();
        let _second = streams.open(payer(1)).unwrap();
        assert!(streams.open(payer(1)).is_err(), "it has two");
        let _third = streams.open(payer(2)).unwrap();
        assert!(streams.open(payer(3)).is_err(), "there are three");
        drop(first);
        assert!(streams.open(payer(1)).is_ok());
    }
}
