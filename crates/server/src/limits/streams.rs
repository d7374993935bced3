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
use http::{StatusCode, header};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use ostler_control::Control;
use ostler_kernel::{Runtime, runtime::BoxFuture};

use super::{Account, bucket::lock};
use crate::{access::Caller, problem::Problem};

/// Those who follow something are counted as long as they do: all of them, and those of each account. Someone who signs in
/// twice is one.
pub struct Streams {
    bounds: Bounds,
    open: Mutex<Open>,
}

/// How many there may be, and what is said where there would be more.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub all: usize,
    pub each: usize,
    pub code: &'static str,
    pub too_many: &'static str,
    pub too_many_of_one: &'static str,
}

#[derive(Default)]
struct Open {
    count: usize,
    each: BTreeMap<Account, usize>,
}

/// Held as long as the stream lives.
pub struct Permit {
    streams: Arc<Streams>,
    account: Account,
}

/// How soon it is worth another try: someone else has to go.
const SOON: Duration = Duration::from_secs(5);

/// What nobody tells of, such as that a token's time is over, is seen no later.
const LOOK_EVERY: Duration = Duration::from_secs(30);

impl Streams {
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, open: Mutex::default() })
    }

    pub fn open(self: &Arc<Self>, account: Account) -> Result<Permit, Problem> {
        let Bounds { all, each, too_many, too_many_of_one, .. } = self.bounds;
        let mut open = lock(&self.open);
        if open.count >= all {
            return Err(self.refusal(too_many));
        }
        let count = open.each.entry(account.clone()).or_default();
        if *count >= each {
            return Err(self.refusal(too_many_of_one));
        }
        *count += 1;
        open.count += 1;
        Ok(Permit { streams: Arc::clone(self), account })
    }

    fn refusal(&self, detail: &str) -> Problem {
        Problem::new(StatusCode::TOO_MANY_REQUESTS, self.bounds.code, detail)
            .remedy("close one that nobody reads, or come back after the time in Retry-After")
            .after(SOON)
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
        if let Some(count) = open.each.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                open.each.remove(&self.account);
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
        if let Ok(holder) = control.still_holds(proof).await
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
    use crate::limits::Limits;

    #[test]
    fn there_are_so_many_of_each_and_of_all() {
        let limits = Limits { streams: 3, streams_per_caller: 2, ..Limits::default() };
        let streams = Streams::new(limits.of_streams());
        let account = |last: u8| Account::Address([192, 0, 2, last].into());
        let first = streams.open(account(1)).unwrap();
        let _second = streams.open(account(1)).unwrap();
        assert!(streams.open(account(1)).is_err(), "it has two");
        let _third = streams.open(account(2)).unwrap();
        assert!(streams.open(account(3)).is_err(), "there are three");
        drop(first);
        assert!(streams.open(account(1)).is_ok());
    }
}
