//! EvalDataset and EvalRun: samples with what is expected of them, and a system's try at them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::condition::{self, Condition};
use crate::duration::GoDuration;
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::problem::{Path, Problem};
use crate::reference::Reference;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvalDatasetSpec {
    /// For people to read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// At least one.
    pub samples: Vec<Sample>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Unique in the dataset.
    pub name: String,
    /// The task's input.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input: BTreeMap<String, String>,
    /// What the output must say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Condition>,
    /// Where this sample is scored in another way than the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scoring: Option<Scoring>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Scoring {
    /// Who says whether a sample passed.
    pub strategy: ScoringStrategy,
    /// The model that judges, for llm_judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_ref: Option<Reference>,
    /// The tool that scores, for custom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_ref: Option<Reference>,
    /// What the judge is told to look for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rubric: String,
}

choice! {
    ScoringStrategy {
        #[default] ExactMatch = "exact_match",
        LlmJudge = "llm_judge",
        Manual = "manual",
        Custom = "custom",
    }
}

impl Declared for EvalDatasetSpec {
    const NAME: &'static str = "EvalDataset";
    const PLURAL: &'static str = "eval-datasets";
    const SHORT_NAMES: &'static [&'static str] = &[];
    const SUMMARY: &'static str = "Samples, and what is expected of them.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let dataset = Self {
            description: fields.verbatim("description"),
            samples: fields.objects("samples", |fields| Sample {
                name: fields.required("name"),
                input: fields.strings("input"),
                expected: fields.meant_child("expected", condition::read),
                scoring: fields.optional_child("scoring", read_scoring),
            }),
        };
        fields.require("samples");
        dataset
    }

    fn mistakes(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (at, sample) in self.samples.iter().enumerate() {
            if self.samples[..at].iter().any(|other| other.name == sample.name) {
                let path = Path::of("spec.samples").index(at).field("name");
                problems.push(Problem::new(path, format!("a second sample {:?}", sample.name)));
            }
        }
        problems
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}

fn read_scoring(fields: &mut Fields<'_, '_>) -> Scoring {
    let scoring = Scoring {
        strategy: fields.optional("strategy").unwrap_or_default(),
        model_ref: fields.optional("model_ref"),
        tool_ref: fields.optional("tool_ref"),
        rubric: fields.verbatim("rubric"),
    };
    match scoring.strategy {
        ScoringStrategy::LlmJudge => fields.require("model_ref"),
        ScoringStrategy::Custom => fields.require("tool_ref"),
        ScoringStrategy::ExactMatch | ScoringStrategy::Manual => {}
    }
    scoring
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvalRunSpec {
    /// The samples.
    pub dataset_ref: Reference,
    /// The system that tries them.
    pub system: Reference,
    /// Asked in place of every agent's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_endpoint_override: Option<Reference>,
    /// What to change about single agents.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_overrides: BTreeMap<String, AgentOverride>,
    /// How samples are scored.
    #[serde(default)]
    pub scoring: Scoring,
    /// Samples at once; 0 is the default.
    #[serde(default = "five")]
    pub concurrency: u32,
    /// For each sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
    /// To select by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Not begun until someone starts it.
    #[serde(default)]
    pub suspended: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentOverride {
    /// Told in place of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Asked in place of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_ref: Option<Reference>,
}

fn five() -> u32 {
    5
}

impl Declared for EvalRunSpec {
    const NAME: &'static str = "EvalRun";
    const PLURAL: &'static str = "eval-runs";
    const SHORT_NAMES: &'static [&'static str] = &[];
    const SUMMARY: &'static str = "A system's try at a dataset.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self {
            dataset_ref: fields.required("dataset_ref"),
            system: fields.required("system"),
            model_endpoint_override: fields.optional("model_endpoint_override"),
            agent_overrides: fields.map_of("agent_overrides", |fields| AgentOverride {
                prompt: fields.letters("prompt"),
                model_ref: fields.optional("model_ref"),
            }),
            scoring: fields.child("scoring", read_scoring),
            concurrency: fields.count_or_default("concurrency").unwrap_or_else(five),
            timeout: fields.positive_duration("timeout"),
            labels: fields.strings("labels"),
            suspended: fields.flag("suspended").unwrap_or(false),
        }
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}
