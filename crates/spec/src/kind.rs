//! The registry of kinds: what each is called in manifests, in routes and on the command line.

use std::fmt;

use schemars::Schema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value as Json;

use crate::fields::Fields;
use crate::problem::{Path, Problem};

/// What a kind declares. Each kind's file implements it for its spec.
pub(crate) trait Declared: Serialize + DeserializeOwned + schemars::JsonSchema {
    /// As in a manifest's `kind`.
    const NAME: &'static str;
    /// As in a route: `/v1/<plural>`.
    const PLURAL: &'static str;
    /// Other words for it on the command line.
    const SHORT_NAMES: &'static [&'static str];
    /// What it is, in a sentence.
    const SUMMARY: &'static str;

    fn read(fields: &mut Fields<'_, '_>) -> Self;

    /// What is wrong with it as a whole, though each field is right by itself.
    fn mistakes(&self) -> Vec<Problem> {
        Vec::new()
    }

    /// Names what lives in its own namespace by its name alone, where `a` and `own/a` have to be one.
    fn settle(&mut self, _own: &str) {}

    /// What it asks for that this version can't do: refused when it is used.
    fn unsupported(&self) -> Vec<Problem> {
        Vec::new()
    }
}

/// One line for each kind, in the order in which a set of them is best applied.
macro_rules! declare {
    ($($kind:ident($spec:ty)),+ $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind { $($kind),+ }

        /// What a kind declares.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        #[expect(clippy::large_enum_variant, reason = "few are held at a time, and most are the large ones")]
        pub enum Spec { $($kind($spec)),+ }

        impl Kind {
            /// Every kind this version knows, in the order in which a set of them is best applied.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            pub fn info(self) -> &'static KindInfo {
                match self {
                    $(Self::$kind => {
                        static INFO: KindInfo = KindInfo {
                            kind: Kind::$kind,
                            name: <$spec as Declared>::NAME,
                            plural: <$spec as Declared>::PLURAL,
                            short_names: <$spec as Declared>::SHORT_NAMES,
                            summary: <$spec as Declared>::SUMMARY,
                            read: |fields| Spec::$kind(<$spec as Declared>::read(fields)),
                            restore: |json| serde_json::from_value(json).map(Spec::$kind),
                            schema: |generator| generator.subschema_for::<$spec>(),
                        };
                        &INFO
                    })+
                }
            }
        }

        impl Spec {
            pub fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind),+ }
            }

            /// See [`crate::Resource::unsupported`].
            pub fn unsupported(&self) -> Vec<Problem> {
                match self { $(Self::$kind(spec) => spec.unsupported()),+ }
            }

            pub(crate) fn settle(&mut self, own: &str) {
                match self { $(Self::$kind(spec) => spec.settle(own)),+ }
            }

            pub(crate) fn mistakes(&self) -> Vec<Problem> {
                match self { $(Self::$kind(spec) => spec.mistakes()),+ }
            }
        }
    };
}

declare! {
    Quota(crate::quota::QuotaSpec),
    Secret(crate::secret::SecretSpec),
    SealedSecret(crate::secret::SealedSecretSpec),
    ModelEndpoint(crate::model_endpoint::ModelEndpointSpec),
    McpServer(crate::mcp_server::McpServerSpec),
    Tool(crate::tool::ToolSpec),
    Memory(crate::memory::MemorySpec),
    AgentRole(crate::governance::AgentRoleSpec),
    ToolPermission(crate::governance::ToolPermissionSpec),
    AgentPolicy(crate::governance::AgentPolicySpec),
    ContextAdapter(crate::context_adapter::ContextAdapterSpec),
    Agent(crate::agent::AgentSpec),
    AgentSystem(crate::agent_system::AgentSystemSpec),
    Worker(crate::worker::WorkerSpec),
    Session(crate::session::SessionSpec),
    Task(crate::task::TaskSpec),
    TaskSchedule(crate::task_schedule::TaskScheduleSpec),
    TaskWebhook(crate::task_webhook::TaskWebhookSpec),
    ToolApproval(crate::approval::ToolApprovalSpec),
    TaskApproval(crate::approval::TaskApprovalSpec),
    EvalDataset(crate::eval::EvalDatasetSpec),
    EvalRun(crate::eval::EvalRunSpec),
}

/// Every kind this version knows, in the order in which a set of them is best applied.
pub fn kinds() -> impl ExactSizeIterator<Item = &'static KindInfo> {
    Kind::ALL.iter().map(|kind| kind.info())
}

/// What is known about a kind without having one.
#[derive(Debug)]
pub struct KindInfo {
    pub kind: Kind,
    /// As in a manifest's `kind`.
    pub name: &'static str,
    /// As in a route: `/v1/<plural>`.
    pub plural: &'static str,
    /// Other words for it on the command line.
    pub short_names: &'static [&'static str],
    /// What it is, in a sentence.
    pub summary: &'static str,
    pub(crate) read: fn(&mut Fields<'_, '_>) -> Spec,
    pub(crate) restore: fn(Json) -> serde_json::Result<Spec>,
    pub(crate) schema: fn(&mut schemars::SchemaGenerator) -> Schema,
}

impl Kind {
    pub fn name(self) -> &'static str {
        self.info().name
    }

    pub fn plural(self) -> &'static str {
        self.info().plural
    }

    /// The word before the slash in `model-endpoint/mock`.
    pub fn singular(self) -> String {
        let mut word = String::new();
        for letter in self.name().chars() {
            if letter.is_ascii_uppercase() && !word.is_empty() {
                word.push('-');
            }
            word.push(letter.to_ascii_lowercase());
        }
        word
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

/// Collects the parts of a spec that this version cannot honour.
pub(crate) struct Refusals(Vec<Problem>);

impl Refusals {
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// For a kind that is read and kept, and does nothing yet.
    pub fn whole_kind(name: &str) -> Vec<Problem> {
        let mut refusals = Self::none();
        refusals.refuse_if(true, "kind", format_args!("kind {name}"));
        refusals.into_problems()
    }

    /// `what` is the subject of "... is not available in this version".
    pub fn refuse_if(&mut self, used: bool, path: &str, what: impl fmt::Display) {
        self.refuse_at(used, &Path::of(path), what);
    }

    pub fn refuse_at(&mut self, used: bool, path: &Path, what: impl fmt::Display) {
        if used {
            self.0.push(Problem::new(path.clone(), format!("{what} is not available in this version")));
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
            assert_eq!(Kind::from_word(&info.kind.singular()), Some(info.kind));
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
}
