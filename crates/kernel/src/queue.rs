//! The queue: in which order runs that are ready get claimed. Namespaces share first; inside one, a run's
//! rank is fixed when it becomes ready, so that waiting overtakes and nothing starves.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{Bundle, Command, RunId, Timestamp, Write};

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
    /// What a worker must have to take one of them.
    #[serde(default, skip_serializing_if = "Requirements::is_empty")]
    pub requires: Requirements,
    /// Its namespace holds a limit too: whoever leaves may make room for another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub capped: bool,
}

impl Lane {
    pub fn new(namespace: impl Into<String>, class: impl Into<String>) -> Self {
        let (limit, requires, capped) = (None, Requirements::default(), false);
        Self { namespace: namespace.into(), class: class.into(), limit, requires, capped }
    }

    /// What tells it from the other lanes of its namespace. A class has no blanks in it.
    pub fn key(&self) -> Cow<'_, str> {
        match self.requires.text() {
            text if text.is_empty() => Cow::Borrowed(&self.class),
            text => Cow::Owned(format!("{} {text}", self.class)),
        }
    }

    /// Whether a run that leaves may let another one in.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some() || self.capped
    }
}

/// Someone decides how many runs of a class may hold a lease at once. Those that hold one keep it.
pub fn limit(namespace: &str, class: &str, limit: Option<u32>) -> Bundle {
    let (namespace, class) = (namespace.to_owned(), class.to_owned());
    Bundle::new(Command::Limit).write(Write::Limit { namespace, class, limit })
}

/// What a run asks of a worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Requirements {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub capabilities: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Requirements {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Empty if nothing is asked for; the same text for the same requirements.
    pub fn text(&self) -> String {
        // Plain values can always be written.
        if self.is_empty() { String::new() } else { serde_json::to_string(self).unwrap_or_default() }
    }

    /// What [`Self::text`] wrote.
    pub fn from_text(text: &str) -> serde_json::Result<Self> {
        if text.is_empty() { Ok(Self::default()) } else { serde_json::from_str(text) }
    }
}

/// How namespaces share what there is; those that are not named are like each other. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shares(Arc<BTreeMap<String, Share>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Twice the weight, twice the turns.
    pub weight: u32,
    /// How many runs of the namespace may hold a lease at once.
    pub limit: Option<u32>,
}

impl Default for Share {
    fn default() -> Self {
        Self { weight: 1, limit: None }
    }
}

impl Shares {
    pub fn of(&self, namespace: &str) -> Share {
        self.0.get(namespace).copied().unwrap_or_default()
    }

    /// The namespaces that have a limit.
    pub fn capped(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, share)| share.limit.is_some()).map(|(namespace, _)| namespace.as_str())
    }
}

impl FromIterator<(String, Share)> for Shares {
    fn from_iter<I: IntoIterator<Item = (String, Share)>>(shares: I) -> Self {
        Self(Arc::new(shares.into_iter().collect()))
    }
}

/// A ready run that a claim may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub run: RunId,
    pub namespace: String,
    pub class: String,
    pub rank: i64,
}

/// How many more may be let in where there is a limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rooms {
    /// By namespace and class.
    pub classes: BTreeMap<(String, String), usize>,
    pub namespaces: BTreeMap<String, usize>,
}

impl Rooms {
    /// How many more of a class may enter.
    pub fn of(&self, namespace: &str, class: &str) -> usize {
        let class = self.classes.get(&(namespace.to_owned(), class.to_owned()));
        let namespace = self.namespaces.get(namespace);
        class.into_iter().chain(namespace).min().copied().unwrap_or(usize::MAX)
    }

    /// The room for one more of a kind, if there is any; it is taken.
    fn enter(&mut self, candidate: &Candidate) -> bool {
        let class = self.classes.get_mut(&(candidate.namespace.clone(), candidate.class.clone()));
        let namespace = self.namespaces.get_mut(&candidate.namespace);
        let mut rooms = [class, namespace];
        let has_room = rooms.iter().flatten().all(|room| **room > 0);
        if has_room {
            rooms.iter_mut().flatten().for_each(|room| **room -= 1);
        }
        has_room
    }
}

/// What one turn costs a namespace of weight 1.
const TURN: u64 = 1 << 20;

/// Picks `slots` of the candidates: each time from the namespace that was served least for its weight, and there the
/// run of the lowest rank, as far as there is room. `served` is a store's memory of earlier claims; losing it costs a
/// little fairness, no more.
pub fn choose(
    mut candidates: Vec<Candidate>,
    slots: usize,
    mut rooms: Rooms,
    shares: &Shares,
    served: &mut BTreeMap<String, u64>,
) -> Vec<RunId> {
    candidates.sort_by_key(|candidate| std::cmp::Reverse((candidate.rank, candidate.run)));
    let mut waiting: BTreeMap<String, Vec<Candidate>> = BTreeMap::new();
    for candidate in candidates {
        waiting.entry(candidate.namespace.clone()).or_default().push(candidate);
    }
    // Nobody's turn, so nobody is remembered for it.
    if waiting.is_empty() || slots == 0 {
        return Vec::new();
    }
    level(&waiting, served);
    let mut chosen = Vec::new();
    while chosen.len() < slots {
        let next =
            waiting.keys().min_by_key(|namespace| served.get(*namespace).copied().unwrap_or(0)).cloned();
        let Some(namespace) = next else { break };
        if let Some(candidate) = waiting.get_mut(&namespace).and_then(Vec::pop)
            && rooms.enter(&candidate)
        {
            chosen.push(candidate.run);
            let weight = u64::from(shares.of(&namespace).weight.max(1));
            *served.entry(namespace.clone()).or_default() += TURN / weight;
        }
        waiting.retain(|_, runs| !runs.is_empty());
    }
    chosen
}

/// So many namespaces are remembered. Past it those that don't wait are forgotten.
const REMEMBERED: usize = 4096;

/// Of those who wait together nobody is more than a turn ahead, unless somebody was away; and who was away has no claim on what
/// it did not ask for. Who does not wait this time is remembered all the same: the claim of another worker sees other
/// namespaces, and those it does not see must not begin anew.
fn level(waiting: &BTreeMap<String, Vec<Candidate>>, served: &mut BTreeMap<String, u64>) {
    if served.len() > REMEMBERED {
        served.retain(|namespace, _| waiting.contains_key(namespace));
    }
    let known = waiting.keys().filter_map(|namespace| served.get(namespace));
    let least = known.min().copied().unwrap_or(0);
    for namespace in waiting.keys() {
        let count = served.entry(namespace.clone()).or_insert(least);
        *count = (*count).min(least + TURN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(namespace: &str, rank: i64, n: u64) -> Candidate {
        Candidate {
            run: RunId::from_parts(Timestamp::from_millis(0), 0, n),
            namespace: namespace.to_owned(),
            class: "agent".to_owned(),
            rank,
        }
    }

    fn choose_freely(
        candidates: Vec<Candidate>,
        slots: usize,
        served: &mut BTreeMap<String, u64>,
    ) -> Vec<RunId> {
        choose(candidates, slots, Rooms::default(), &Shares::default(), served)
    }

    #[test]
    fn a_flood_in_one_namespace_does_not_keep_another_waiting() {
        let mut candidates: Vec<_> = (0..100_u32).map(|n| candidate("flood", n.into(), n.into())).collect();
        candidates.push(candidate("small", 1000, 500));
        let chosen = choose_freely(candidates.clone(), 2, &mut BTreeMap::new());
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
        let chosen = choose_freely(candidates.clone(), 9, &mut BTreeMap::new());
        assert_eq!(chosen, [candidates[1].run, candidates[2].run, candidates[0].run]);
    }

    #[test]
    fn turns_are_remembered_between_claims() {
        let mut served = BTreeMap::new();
        let both = vec![candidate("a", 0, 1), candidate("b", 0, 2)];
        let first = choose_freely(both.clone(), 1, &mut served);
        let second = choose_freely(both.clone(), 1, &mut served);
        assert_ne!(first, second);
    }

    #[test]
    fn a_claim_that_sees_others_or_nobody_does_not_take_turns_away() {
        let mut served = BTreeMap::new();
        let both = vec![candidate("a", 0, 1), candidate("b", 0, 2)];
        let mut turns = Vec::new();
        for n in 0..4 {
            turns.extend(choose_freely(both.clone(), 1, &mut served));
            choose_freely(Vec::new(), 1, &mut served);
            choose_freely(vec![candidate("c", 0, 10 + n)], 1, &mut served);
        }
        let (a, b) = (both[0].run, both[1].run);
        assert_eq!(turns, [a, b, a, b]);
    }

    #[test]
    fn who_comes_back_neither_makes_up_for_it_nor_pays() {
        let mut served = BTreeMap::new();
        let (a, b) = (candidate("a", 0, 1), candidate("b", 0, 2));
        let both = vec![a.clone(), b.clone()];
        for (away, there) in [(&a, &b), (&b, &a)] {
            choose_freely(both.clone(), 2, &mut served);
            for _ in 0..100 {
                choose_freely(vec![there.clone()], 1, &mut served);
            }
            let turns: Vec<_> = (0..20).flat_map(|_| choose_freely(both.clone(), 1, &mut served)).collect();
            let n = turns.iter().filter(|run| **run == away.run).count();
            assert!((9..=12).contains(&n), "{n} of twenty turns");
        }
    }

    #[test]
    fn turns_go_by_weight() {
        let heavy = Share { weight: 3, limit: None };
        let shares: Shares = [("heavy".to_owned(), heavy)].into_iter().collect();
        let all: Vec<_> = (0..40_u32)
            .flat_map(|n| {
                [candidate("heavy", n.into(), n.into()), candidate("light", n.into(), 100 + u64::from(n))]
            })
            .collect();
        let (mut served, mut turns) = (BTreeMap::new(), 0);
        for _ in 0..10 {
            let chosen = choose(all.clone(), 2, Rooms::default(), &shares, &mut served);
            turns += chosen
                .iter()
                .filter(|run| all.iter().any(|c| c.run == **run && c.namespace == "heavy"))
                .count();
        }
        assert_eq!(turns, 15, "three of four of twenty");
    }

    #[test]
    fn nobody_enters_where_there_is_no_room() {
        let candidates =
            vec![candidate("a", 0, 1), candidate("a", 1, 2), candidate("b", 2, 3), candidate("b", 3, 4)];
        let rooms = Rooms {
            classes: [(("a".to_owned(), "agent".to_owned()), 1)].into(),
            namespaces: [("b".to_owned(), 1), ("a".to_owned(), 5)].into(),
        };
        let chosen = choose(candidates.clone(), 9, rooms, &Shares::default(), &mut BTreeMap::new());
        assert_eq!(chosen, [candidates[0].run, candidates[2].run]);
    }

    #[test]
    fn requirements_are_read_as_they_are_written() {
        let requires =
            Requirements { region: Some("eu".into()), model: None, capabilities: ["gpu".into()].into() };
        assert_eq!(Requirements::from_text(&requires.text()).unwrap(), requires);
        assert_eq!(Requirements::default().text(), "");
        let lane = Lane { requires, ..Lane::new("n", "agent") };
        assert_eq!(lane.key(), r#"agent {"region":"eu","capabilities":["gpu"]}"#);
        assert_eq!(Lane::new("n", "agent").key(), "agent");
    }
}
