//! The queue: in which order runs that are ready get claimed. Namespaces share first; inside one, a run's
//! rank is fixed when it becomes ready, so that waiting overtakes and nothing starves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{RunId, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

impl Priority {
    /// How many milliseconds of waiting it is worth.
    fn bonus(self) -> i64 {
        match self {
            Priority::Low => -60_000,
            Priority::Normal => 0,
            Priority::High => 60_000,
            Priority::Urgent => 600_000,
        }
    }
}

/// Lower goes first.
pub fn rank(ready_at: Timestamp, priority: Priority) -> i64 {
    ready_at.as_millis().saturating_sub(priority.bonus())
}

/// Runs that compete for the same thing. A saturated lane is passed over whole, never scanned through.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lane {
    pub namespace: String,
    /// The execution class: what shares one limit.
    pub class: String,
    /// How many runs of the class may hold a lease at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A ready run that a claim may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub run: RunId,
    pub namespace: String,
    pub rank: i64,
}

/// Picks `slots` of the candidates: each time from the namespace that was served least, and there the run of
/// the lowest rank. `served` is a store's memory of earlier claims; losing it costs a little fairness, no more.
pub fn choose(
    mut candidates: Vec<Candidate>,
    slots: usize,
    served: &mut BTreeMap<String, u64>,
) -> Vec<RunId> {
    candidates.sort_by_key(|candidate| std::cmp::Reverse((candidate.rank, candidate.run)));
    let mut waiting: BTreeMap<String, Vec<Candidate>> = BTreeMap::new();
    for candidate in candidates {
        waiting.entry(candidate.namespace.clone()).or_default().push(candidate);
    }
    level(&waiting, served);
    let mut chosen = Vec::new();
    while chosen.len() < slots {
        let next =
            waiting.keys().min_by_key(|namespace| served.get(*namespace).copied().unwrap_or(0)).cloned();
        let Some(namespace) = next else { break };
        if let Some(candidate) = waiting.get_mut(&namespace).and_then(Vec::pop) {
            chosen.push(candidate.run);
            *served.entry(namespace.clone()).or_default() += 1;
        }
        waiting.retain(|_, runs| !runs.is_empty());
    }
    chosen
}

/// Who was away has no claim on what it did not ask for: nobody starts lower than the least served of those
/// that were here last time.
fn level(waiting: &BTreeMap<String, Vec<Candidate>>, served: &mut BTreeMap<String, u64>) {
    let least = served.values().min().copied().unwrap_or(0);
    served.retain(|namespace, _| waiting.contains_key(namespace));
    for namespace in waiting.keys() {
        let count = served.entry(namespace.clone()).or_insert(least);
        *count -= least.min(*count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(namespace: &str, rank: i64, n: u64) -> Candidate {
        Candidate {
            run: RunId::from_parts(Timestamp::from_millis(0), 0, n),
            namespace: namespace.to_owned(),
            rank,
        }
    }

    #[test]
    fn a_flood_in_one_namespace_does_not_keep_another_waiting() {
        let mut candidates: Vec<_> = (0..100_u32).map(|n| candidate("flood", n.into(), n.into())).collect();
        candidates.push(candidate("small", 1000, 500));
        let chosen = choose(candidates.clone(), 2, &mut BTreeMap::new());
        assert_eq!(chosen, [candidates[0].run, candidates[100].run]);
    }

    #[test]
    fn in_one_namespace_the_lowest_rank_goes_first() {
        let early = Timestamp::from_millis(1_000_000);
        let late = Timestamp::from_millis(1_030_000);
        assert!(rank(late, Priority::High) < rank(early, Priority::Normal), "priority counts");
        let much_later = Timestamp::from_millis(1_100_000);
        assert!(rank(early, Priority::Normal) < rank(much_later, Priority::High), "waiting overtakes");
        let candidates = vec![candidate("a", 5, 1), candidate("a", -5, 2), candidate("a", 0, 3)];
        let chosen = choose(candidates.clone(), 9, &mut BTreeMap::new());
        assert_eq!(chosen, [candidates[1].run, candidates[2].run, candidates[0].run]);
    }

    #[test]
    fn turns_are_remembered_between_claims() {
        let mut served = BTreeMap::new();
        let both = vec![candidate("a", 0, 1), candidate("b", 0, 2)];
        let first = choose(both.clone(), 1, &mut served);
        let second = choose(both.clone(), 1, &mut served);
        assert_ne!(first, second);
    }
}
