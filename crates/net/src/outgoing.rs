//! What surrounds a call, for whoever makes it: the trace that it belongs to, and how long it waited for the other side.
//!
//! It is handed over beside the call and not with it, so that no way to call a model or a tool has to know of it.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue};
use ostler_kernel::TraceContext;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

tokio::task_local! {
    static OUTGOING: Arc<Outgoing>;
}

/// Of the calls that one step makes.
#[derive(Debug, Default)]
pub struct Outgoing {
    trace: Option<TraceContext>,
    waited_ns: AtomicU64,
    turn_ns: AtomicU64,
    secret_ns: AtomicU64,
}

/// What holds a call up before it goes out, and is no work of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// A turn, where there are limits.
    Turn,
    /// Whoever keeps the secrets.
    Secret,
}

impl Held {
    /// A call was held up for so long.
    pub fn for_(self, time: Duration) {
        add(time, |outgoing| outgoing.counter(self));
    }
}

impl Outgoing {
    pub fn new(trace: Option<TraceContext>) -> Arc<Self> {
        Arc::new(Self { trace, ..Self::default() })
    }

    /// How long its calls have waited for the other side, connecting included.
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed))
    }

    /// How long they were held up before; none if they never were.
    pub fn held(&self, by: Held) -> Option<Duration> {
        let nanos = self.counter(by).load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    fn counter(&self, by: Held) -> &AtomicU64 {
        match by {
            Held::Turn => &self.turn_ns,
            Held::Secret => &self.secret_ns,
        }
    }

    /// Makes calls for this one.
    pub fn scope<T>(self: &Arc<Self>, calls: impl Future<Output = T>) -> impl Future<Output = T> {
        OUTGOING.scope(Arc::clone(self), calls)
    }

    /// The same of a moment, as where a stream is looked at.
    pub fn sync_scope<T>(self: &Arc<Self>, look: impl FnOnce() -> T) -> T {
        OUTGOING.sync_scope(Arc::clone(self), look)
    }
}

/// Says where the call belongs, unless its maker has said so. Nothing that signs a request signs these.
pub(crate) fn stamp(headers: &mut HeaderMap) {
    let _outside_of_any = OUTGOING.try_with(|outgoing| {
        let Some(trace) = &outgoing.trace else { return };
        let mut put = |name: HeaderName, text: &str| {
            if let Ok(value) = HeaderValue::from_str(text) {
                headers.entry(name).or_insert(value);
            }
        };
        put(TRACEPARENT, &trace.parent.to_string());
        if let Some(state) = &trace.state {
            put(TRACESTATE, state);
        }
    });
}

pub(crate) fn waited(time: Duration) {
    add(time, |outgoing| &outgoing.waited_ns);
}

fn add(time: Duration, counter: impl FnOnce(&Outgoing) -> &AtomicU64) {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let _outside_of_any = OUTGOING.try_with(|outgoing| counter(outgoing).fetch_add(nanos, Ordering::Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_call_says_where_it_belongs_unless_its_maker_did() {
        let outgoing = Outgoing::new(TraceContext::read(SENT, Some("a=1")).ok());
        let mut headers = HeaderMap::new();
        outgoing.sync_scope(|| stamp(&mut headers));
        assert_eq!(
            (&headers["traceparent"], &headers["tracestate"]),
            (&SENT.parse().unwrap(), &"a=1".parse().unwrap())
        );
        let mut own = HeaderMap::from_iter([(TRACEPARENT, HeaderValue::from_static("own"))]);
        outgoing.sync_scope(|| stamp(&mut own));
        assert_eq!(own["traceparent"], "own");
        let mut outside = HeaderMap::new();
        stamp(&mut outside);
        assert!(outside.is_empty());
    }
}
