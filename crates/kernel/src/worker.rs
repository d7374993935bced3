//! Workers and their leases. A lease belongs to a worker's incarnation: a restarted worker has a higher one.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Bundle, Command, Expect, Timestamp, Write};

/// What a worker says of itself when it registers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Runs at once.
    #[serde(default)]
    pub slots: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub capabilities: BTreeSet<String>,
}

impl Offer {
    /// Nothing but room.
    pub fn of_slots(slots: u32) -> Self {
        Self { slots, ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    pub name: String,
    /// Raised at every start of the worker, and never given twice.
    pub incarnation: u64,
    /// Raised at every renewal. Dead is who lets it stand still for the length of a lease.
    pub counter: u64,
    /// The last claim that gave it something: an older one, delivered late, gets nothing. A claim that got
    /// nothing is not written down, so that it costs no sync.
    pub claims: u64,
    pub registered_at: Timestamp,
    /// Drawn by whoever registered, so that the same registration sent again is known.
    pub instance: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lease {
    pub worker: String,
    pub incarnation: u64,
    /// The claim that took it, so that a claim whose answer was lost can be asked for again.
    pub claim: u64,
}

/// A worker starts, for the first time or again.
pub fn register(name: &str, instance: u64, former: Option<&Worker>, now: Timestamp) -> (Worker, Bundle) {
    let incarnation = former.map_or(0, |worker| worker.incarnation);
    let worker = Worker {
        name: name.to_owned(),
        incarnation: incarnation + 1,
        counter: 0,
        claims: 0,
        registered_at: now,
        instance,
    };
    let bundle = Bundle::new(Command::Register)
        .expect(Expect::Worker { name: name.to_owned(), incarnation })
        .write(Write::Worker(worker.clone()));
    (worker, bundle)
}

/// A worker says that it is still there.
pub fn renew(name: &str, incarnation: u64, counter: u64) -> Bundle {
    Bundle::new(Command::Renew)
        .expect(Expect::Worker { name: name.to_owned(), incarnation })
        .write(Write::Renewal { worker: name.to_owned(), counter })
}
