//! The registry of kinds: what each is called in manifests, in routes and on the command line.

use std::fmt;

use serde_json::Value as Json;

use crate::fields::Fields;
use crate::problem::Problem;
use crate::resource::Spec;
use crate::{agent, model_endpoint, quota, task, tool};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Agent,
    ModelEndpoint,
    Tool,
    Quota,
    Task,
}

/// Every kind this version knows, in the order in which a set of them is best applied.
pub fn kinds() -> impl ExactSizeIterator<Item = &'static KindInfo> {
    [Kind::Quota, Kind::ModelEndpoint, Kind::Tool, Kind::Agent, Kind::Task].into_iter().map(Kind::info)
}

/// What is known about a kind without having one. Each kind's file holds its own.
#[derive(Debug)]
pub struct KindInfo {
    pub kind: Kind,
    /// As in a manifest's `kind`.
    pub name: &'static str,
    /// As in a route: `/v1/<plural>`.
    pub plural: &'static str,
    /// Other words for it on the command line.
    pub short_names: &'static [&'static str],
    pub(crate) read: fn(&mut Fields<'_, '_>) -> Spec,
    pub(crate) restore: fn(Json) -> serde_json::Result<Spec>,
}

impl Kind {
    pub fn info(self) -> &'static KindInfo {
        match self {
            Self::Agent => &agent::INFO,
            Self::ModelEndpoint => &model_endpoint::INFO,
            Self::Tool => &tool::INFO,
            Self::Quota => &quota::INFO,
            Self::Task => &task::INFO,
        }
    }

    pub fn name(self) -> &'static str {
        self.info().name
    }

    pub fn plural(self) -> &'static str {
        self.info().plural
    }

    /// By the name a manifest uses, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        kinds().find(|info| info.name.eq_ignore_ascii_case(name.trim())).map(|info| info.kind)
    }

    /// By the plural a route uses.
    pub fn from_plural(plural: &str) -> Option<Self> {
        kinds().find(|info| info.plural == plural).map(|info| info.kind)
    }

    /// By any word a person may type: `ModelEndpoint`, `model-endpoints`, `modelendpoint`, `mep`.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = squeezed(word);
        let matches = |info: &&KindInfo| {
            let singular = squeezed(info.name);
            word == singular || word == squeezed(info.plural) || info.short_names.contains(&word.as_str())
        };
        kinds().find(matches).map(|info| info.kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Declared by others and part of the contract, but not built yet: refused by name.
pub(crate) const LATER_KINDS: &[&str] = &[
    "AgentSystem",
    "AgentPolicy",
    "AgentRole",
    "ContextAdapter",
    "EvalDataset",
    "EvalRun",
    "McpServer",
    "Memory",
    "SealedSecret",
    "Secret",
    "Session",
    "TaskApproval",
    "TaskSchedule",
    "TaskWebhook",
    "ToolApproval",
    "ToolPermission",
    "Worker",
];

/// Collects the parts of a spec that this version cannot honour.
pub(crate) struct Refusals(Vec<Problem>);

impl Refusals {
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// `what` is the subject of "... is not available in this version".
    pub fn refuse_if(&mut self, used: bool, path: &str, what: impl fmt::Display) {
        if used {
            let message = format!("{what} is not available in this version");
            self.0.push(Problem::new(crate::problem::Path::of(path), message));
        }
    }

    pub fn into_problems(self) -> Vec<Problem> {
        self.0
    }
}

fn squeezed(word: &str) -> String {
    word.trim().to_ascii_lowercase().replace(['-', '_'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_all_its_words() {
        for info in kinds() {
            assert_eq!(Kind::from_name(&info.name.to_uppercase()), Some(info.kind));
            assert_eq!(Kind::from_plural(info.plural), Some(info.kind));
            for word in [info.name, info.plural].iter().chain(info.short_names) {
                assert_eq!(Kind::from_word(word), Some(info.kind), "{word}");
            }
        }
        assert_eq!(Kind::from_word("model-endpoint"), Some(Kind::ModelEndpoint));
        assert_eq!(Kind::from_word("nothing"), None);
    }

    #[test]
    fn no_word_means_two_kinds() {
        let mut words: Vec<String> = kinds()
            .flat_map(|info| [info.name, info.plural].into_iter().chain(info.short_names.iter().copied()))
            .map(squeezed)
            .collect();
        let count = words.len();
        words.sort();
        words.dedup();
        assert_eq!(words.len(), count);
    }

    #[test]
    fn kinds_lists_each_once() {
        for kind in [Kind::Agent, Kind::ModelEndpoint, Kind::Tool, Kind::Quota, Kind::Task] {
            assert_eq!(kinds().filter(|info| info.kind == kind).count(), 1, "{kind}");
        }
        assert!(LATER_KINDS.iter().all(|name| Kind::from_name(name).is_none()));
    }
}
