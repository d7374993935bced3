//! ContextAdapter: a tool that a system's input goes through first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::fields::Fields;
use crate::kind::{Declared, Refusals};
use crate::problem::Problem;
use crate::reference::Reference;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextAdapterSpec {
    /// The tool that is given the input and answers with what takes its place.
    pub tool_ref: Reference,
    /// Whether a task ends where the tool fails, or goes on with its input as it was.
    #[serde(default)]
    pub on_error: AdapterFailure,
}

choice! { AdapterFailure { #[default] Reject = "reject", Passthrough = "passthrough" } }

impl Declared for ContextAdapterSpec {
    const NAME: &'static str = "ContextAdapter";
    const PLURAL: &'static str = "context-adapters";
    const SHORT_NAMES: &'static [&'static str] = &[];
    const SUMMARY: &'static str = "A tool that a system's input goes through first.";

    fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self {
            tool_ref: fields.required("tool_ref"),
            on_error: fields.optional("on_error").unwrap_or_default(),
        }
    }

    fn unsupported(&self) -> Vec<Problem> {
        Refusals::whole_kind(Self::NAME)
    }
}
