//! Session: a conversation with a system that is declared before anyone speaks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::GoDuration;
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::problem::Problem;
use crate::reference::Reference;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSpec {
    /// The system that answers.
    pub system: Reference,
    /// Ends when nobody has spoken for so long.
    #[serde(default = "a_day")]
    pub idle_ttl: GoDuration,
    /// How often may be spoken; 0 is no bound.
    #[serde(default)]
    pub max_turns: u32,
    /// Given to every turn.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input: BTreeMap<String, String>,
}

fn a_day() -> GoDuration {
    GoDuration::from_secs(24 * 60 * 60)
}

impl Declared for SessionSpec {
    const NAME: &'static str = "Session";
    const PLURAL: &'static str = "sessions";
    const SHORT_NAMES: &'static [&'static str] = &[];
    const SUMMARY: &'static str = "A conversation with a system.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self {
            system: fields.required("system"),
            idle_ttl: fields.positive_duration("idle_ttl").unwrap_or_else(a_day),
            max_turns: fields.count("max_turns", 0).unwrap_or(0),
            input: fields.strings("input"),
        }
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}
