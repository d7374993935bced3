//! Worker: a process that takes runs. It registers itself; nobody applies one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::Fields;
use crate::kind::Declared;
use crate::problem::Problem;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkerSpec {
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// What it can do.
    #[serde(skip_serializing_if = "WorkerCapabilities::is_unset")]
    pub capabilities: WorkerCapabilities,
    /// Runs it takes at once.
    pub max_concurrent_tasks: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkerCapabilities {
    /// Whether it has a GPU.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gpu: bool,
    /// The models it serves; none named is any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supported_models: Vec<String>,
}

impl WorkerCapabilities {
    fn is_unset(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for WorkerSpec {
    fn default() -> Self {
        Self { region: None, capabilities: WorkerCapabilities::default(), max_concurrent_tasks: 1 }
    }
}

impl Declared for WorkerSpec {
    const NAME: &'static str = "Worker";
    const PLURAL: &'static str = "workers";
    const SHORT_NAMES: &'static [&'static str] = &["wk"];
    const SUMMARY: &'static str = "A process that takes runs. It registers itself.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self {
            region: fields.optional("region"),
            capabilities: fields.child("capabilities", |fields| WorkerCapabilities {
                gpu: fields.flag("gpu").unwrap_or(false),
                supported_models: fields.distinct("supported_models"),
            }),
            max_concurrent_tasks: fields.count_or_default("max_concurrent_tasks").unwrap_or(1),
        }
    }

    fn unsupported(&self) -> Vec<Problem> {
        let message = "a worker is not declared: `ostler worker` registers itself where it is started";
        vec![Problem::new(crate::problem::Path::of("kind"), message)]
    }
}
