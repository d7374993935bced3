//! What the tools were asked, by request id, and the effect that can be counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyper::HeaderMap;
use serde::Serialize;

use crate::loopback::Desk;

/// What is known of one request id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallRecord {
    /// The tool that was called first under it.
    pub tool: String,
    /// How often it came.
    pub count: u64,
    /// How often the answer was handed over whole.
    pub answered: u64,
    /// How many different bodies came under it; more than one is a mistake of the caller.
    pub distinct_bodies: usize,
    /// The first body, as text.
    pub first_body: String,
    /// The last one.
    pub last_body: String,
    /// The trace that each call said it belongs to, if it did.
    pub traceparents: Vec<String>,
}

#[derive(Default)]
pub(super) struct Calls {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_id: BTreeMap<String, Seen>,
    counter: u64,
}

struct Seen {
    tool: String,
    count: u64,
    first: Bytes,
    last: Bytes,
    bodies: BTreeSet<Bytes>,
    traceparents: Vec<String>,
}

impl Calls {
    /// Remembers a call; returns how often its request id has come.
    pub fn record(&self, request_id: &str, tool: &str, headers: &HeaderMap, body: &Bytes) -> u64 {
        let mut state = self.state();
        let seen = state.by_id.entry(request_id.to_owned()).or_insert_with(|| Seen {
            tool: tool.to_owned(),
            count: 0,
            first: body.clone(),
            last: Bytes::new(),
            bodies: BTreeSet::new(),
            traceparents: Vec::new(),
        });
        let traceparent = headers.get("traceparent").and_then(|value| value.to_str().ok());
        seen.traceparents.extend(traceparent.map(str::to_owned));
        seen.count += 1;
        seen.last = body.clone();
        seen.bodies.insert(body.clone());
        seen.count
    }

    pub fn count_up(&self) -> u64 {
        let mut state = self.state();
        state.counter += 1;
        state.counter
    }

    pub fn counter(&self) -> u64 {
        self.state().counter
    }

    pub fn all(&self, desk: &Desk) -> BTreeMap<String, CallRecord> {
        let state = self.state();
        let records = state.by_id.iter().map(|(id, seen)| (id.clone(), seen.record(desk.of(id).answered)));
        records.collect()
    }

    pub fn reset(&self) {
        *self.state() = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn record(&self, answered: u64) -> CallRecord {
        CallRecord {
            tool: self.tool.clone(),
            count: self.count,
            answered,
            distinct_bodies: self.bodies.len(),
            first_body: String::from_utf8_lossy(&self.first).into_owned(),
            last_body: String::from_utf8_lossy(&self.last).into_owned(),
            traceparents: self.traceparents.clone(),
        }
    }
}
