//! Workers and their leases. A lease belongs to a worker's incarnation: a restarted worker has a higher one.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Bundle, Command, Expect, Timestamp, Write, queue::Requirements};

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
    /// The models it can reach; empty means any.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub models: BTreeSet<String>,
    /// Said by the server that registered it, whatever the worker says: the lease that it was told. Every other server waits
    /// for at least as long before it takes the worker for dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_lease_ms: Option<u64>,
}

impl Offer {
    /// Nothing but room.
    pub fn of_slots(slots: u32) -> Self {
        Self { slots, ..Self::default() }
    }

    /// Whether a worker that offers this may take a run that asks for that.
    pub fn meets(&self, asked: &Requirements) -> bool {
        asked.region.as_ref().is_none_or(|region| *region == self.region)
            && asked.capabilities.is_subset(&self.capabilities)
            && asked.model.as_ref().is_none_or(|model| self.models.is_empty() || self.models.contains(model))
    }
}

/// What people have decided about a worker. It outlives a restart of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    #[default]
    Open,
    /// It gets no new runs.
    Cordoned,
    /// It gets no new runs, and gives back what it has once the step under way is done.
    Draining,
}

impl Standing {
    pub fn name(self) -> &'static str {
        match self {
            Standing::Open => "open",
            Standing::Cordoned => "cordoned",
            Standing::Draining => "draining",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Standing::Open, Standing::Cordoned, Standing::Draining]
            .into_iter()
            .find(|standing| standing.name() == name)
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
    pub offer: Offer,
    /// Kept by the store whatever a registration says.
    pub standing: Standing,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lease {
    pub worker: String,
    pub incarnation: u64,
    /// The claim that took it, so that a claim whose answer was lost can be asked for again.
    pub claim: u64,
}

/// A worker starts, for the first time or again.
pub fn register(
    name: &str,
    instance: u64,
    offer: Offer,
    former: Option<&Worker>,
    now: Timestamp,
) -> (Worker, Bundle) {
    let incarnation = former.map_or(0, |worker| worker.incarnation);
    let worker = Worker {
        name: name.to_owned(),
        incarnation: incarnation + 1,
        counter: 0,
        claims: 0,
        registered_at: now,
        instance,
        offer,
        standing: former.map(|worker| worker.standing).unwrap_or_default(),
    };
    let bundle = Bundle::new(Command::Register)
        .expect(Expect::Worker { name: name.to_owned(), incarnation })
        .write(Write::Worker(worker.clone()));
    (worker, bundle)
}

/// The same for one that was never there, or was forgotten: behind the highest incarnation that anybody of its name may have
/// had.
pub fn register_behind(
    name: &str,
    instance: u64,
    offer: Offer,
    highest: u64,
    now: Timestamp,
) -> (Worker, Bundle) {
    let (mut worker, mut bundle) = register(name, instance, offer, None, now);
    worker.incarnation = highest + 1;
    bundle.writes = vec![Write::Worker(worker.clone())];
    (worker, bundle)
}

/// Forgets a worker that is gone, if it has given no sign of life since it was read.
pub fn forget(worker: &Worker) -> Bundle {
    let Worker { name, incarnation, counter, .. } = worker;
    let expect = Expect::Counter { worker: name.clone(), incarnation: *incarnation, counter: *counter };
    Bundle::new(Command::Forget).expect(expect).write(Write::ForgetWorker { worker: name.clone() })
}

/// A worker says that it is still there.
pub fn renew(name: &str, incarnation: u64, counter: u64) -> Bundle {
    Bundle::new(Command::Renew)
        .expect(Expect::Worker { name: name.to_owned(), incarnation })
        .write(Write::Renewal { worker: name.to_owned(), counter })
}

/// Someone decides about a worker, whichever start of it.
pub fn stand(worker: &Worker, standing: Standing) -> Bundle {
    let Worker { name, incarnation, .. } = worker;
    Bundle::new(Command::Stand)
        .expect(Expect::Worker { name: name.clone(), incarnation: *incarnation })
        .write(Write::Standing { worker: name.clone(), standing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_meets_what_it_offers() {
        let offer = Offer {
            region: "eu".into(),
            capabilities: ["gpu".into(), "large".into()].into(),
            models: ["m".into()].into(),
            ..Offer::of_slots(1)
        };
        let asks = |region: Option<&str>, capability: Option<&str>, model: Option<&str>| Requirements {
            region: region.map(Into::into),
            capabilities: capability.map(Into::into).into_iter().collect(),
            model: model.map(Into::into),
        };
        for (asked, meets) in [
            (asks(None, None, None), true),
            (asks(Some("eu"), Some("gpu"), Some("m")), true),
            (asks(Some("us"), None, None), false),
            (asks(None, Some("tpu"), None), false),
            (asks(None, None, Some("other")), false),
        ] {
            assert_eq!(offer.meets(&asked), meets, "{asked:?}");
        }
        assert!(Offer::default().meets(&asks(None, None, Some("any"))), "who names no models has them all");
    }
}
