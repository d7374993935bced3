//! What the server was sent: requests, the rules they broke, and how often each fault has struck.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use serde::Serialize;
use serde_json::Value;

use super::completion::tokens;
use super::conversation::Prefix;
use super::fault::Fault;
use super::rules::Violation;
use super::wire::Wire;
use crate::loopback::Desk;

/// A request to the model, as it came.
#[derive(Debug, Clone)]
pub struct CapturedRequest {
    /// The wire it came on.
    pub wire: Wire,
    /// Its path, with the query.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, byte for byte.
    pub body: Bytes,
}

/// Everything the server remembers.
pub(super) struct Ledger {
    pub desk: Arc<Desk>,
    records: Mutex<Records>,
    log: Option<Mutex<File>>,
}

/// One line of the log file.
#[derive(Serialize)]
pub(super) struct LogLine<'l> {
    pub id: &'l str,
    pub turn: usize,
    pub fault: Option<&'l str>,
    pub violations: &'l [Violation],
}

#[derive(Default)]
struct Records {
    requests: Vec<CapturedRequest>,
    violations: Vec<Violation>,
    /// How often a fault struck a transcript.
    strikes: BTreeMap<(u64, Fault), u32>,
    /// Beginnings of prompts that a caller asked to have cached.
    cached: BTreeSet<u64>,
}

impl CapturedRequest {
    /// The body as JSON; null if it isn't.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Ledger {
    pub fn new(log: Option<File>) -> Self {
        Self { desk: Arc::default(), records: Mutex::default(), log: log.map(Mutex::new) }
    }

    pub fn capture(&self, request: CapturedRequest) {
        self.records().requests.push(request);
    }

    pub fn requests(&self) -> Vec<CapturedRequest> {
        self.records().requests.clone()
    }

    pub fn violate(&self, violations: &[Violation]) {
        if !violations.is_empty() {
            self.records().violations.extend_from_slice(violations);
        }
    }

    pub fn violations(&self) -> Vec<Violation> {
        self.records().violations.clone()
    }

    /// Whether a fault limited to `times` strikes this transcript once more; counts it if so.
    pub fn strike(&self, transcript: u64, fault: Fault, times: u32) -> bool {
        let mut records = self.records();
        let struck = records.strikes.entry((transcript, fault)).or_default();
        *struck += 1;
        *struck <= times
    }

    /// How many tokens of a prompt come out of the cache and how many go into it; remembers what goes in.
    pub fn cache(&self, prefixes: &[Prefix]) -> (i64, i64) {
        let wanted = |prefix: &&Prefix| prefix.breakpoint;
        let Some(last) = prefixes.iter().rev().find(wanted) else { return (0, 0) };
        let mut records = self.records();
        let known =
            |prefix: &&Prefix| prefix.n_bytes <= last.n_bytes && records.cached.contains(&prefix.hash);
        let read = prefixes.iter().rev().find(known).map_or(0, |prefix| tokens(prefix.n_bytes));
        records.cached.extend(prefixes.iter().filter(wanted).map(|prefix| prefix.hash));
        (read, tokens(last.n_bytes) - read)
    }

    /// Forgets everything, strikes included.
    pub fn reset(&self) {
        self.desk.reset();
        *self.records() = Records::default();
    }

    /// Adds a line to the log file, if there is one.
    pub fn log(&self, line: &LogLine<'_>) {
        let Some(log) = &self.log else { return };
        if let Ok(mut line) = serde_json::to_vec(line) {
            line.push(b'\n');
            // A full disk must not stop the model; the counts are kept in memory anyway.
            let _ = log.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
        }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
