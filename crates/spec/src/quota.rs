//! Quota: how much of what there is a namespace may use, or one of its agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::Fields;
use crate::kind::Declared;
use crate::resource::check_name;

/// Where several hold for the same, the strictest counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaSpec {
    /// For this agent alone; without it, for the whole namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The namespace's turns beside those of others, of which each has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Runs at work at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    /// Tasks accepted in any minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_per_minute: Option<u32>,
    /// Runs that are ready and wait for a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_queued: Option<u32>,
}

impl Declared for QuotaSpec {
    const NAME: &'static str = "Quota";
    const PLURAL: &'static str = "quotas";
    const SHORT_NAMES: &'static [&'static str] = &[];
    const SUMMARY: &'static str = "How much a namespace may use, or one of its agents.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        let quota = Self {
            agent: fields.checked("agent", check_name),
            weight: fields.count("weight", 1),
            max_concurrent: fields.count("max_concurrent", 0),
            tasks_per_minute: fields.count("tasks_per_minute", 0),
            max_queued: fields.count("max_queued", 0),
        };
        if quota.agent.is_some() && quota.weight.is_some() {
            fields.refuse("weight", "given beside agent: namespaces share by weight, agents don't");
        }
        // One that bounds nothing is a slip.
        if !["weight", "max_concurrent", "tasks_per_minute", "max_queued"]
            .iter()
            .any(|name| fields.was_written(name))
        {
            fields.refuse_missing("max_concurrent");
        }
        quota
    }
}
