//! What differs from model to model: whether and how each can be told to think. A model of another name takes all of it.

use serde_json::Value;

use crate::model_server::rules::{Findings, Rule, header_text};
use crate::model_server::wire::Call;

/// Models with a budget for thinking and nothing else; the first of them may be told an effort too, if one asks for what
/// was new then.
const BUDGETED: [&str; 9] = [
    "opus-4-5",
    "haiku-4-5",
    "sonnet-4-5",
    "opus-4-1",
    "opus-4-0",
    "opus-4-2025",
    "sonnet-4-0",
    "sonnet-4-2025",
    "claude-3-7",
];

/// Models that think as long as they see fit, and take no budget any more.
const ADAPTIVE: [&str; 6] = ["opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "fable-5", "mythos-5"];

const EFFORT_BETA: &str = "effort-2025-11-24";

pub(super) fn check(call: &Call<'_>, request: &Value, findings: &mut Findings) {
    let model = request["model"].as_str().unwrap_or_default();
    let is_among = |names: &[&str]| names.iter().any(|name| model.contains(name));
    let is_budgeted = is_among(&BUDGETED);
    let thinks = is_budgeted || !model.contains("claude-3-");
    let mut allow = |allowed: bool, param: &str, message: &str| {
        findings.require(allowed, Rule::Conflict, param, message);
    };
    let kind = &request["thinking"]["type"];
    let is_told = *kind == "enabled" || *kind == "adaptive";
    allow(thinks || !is_told, "thinking", "thinking is not supported on this model");
    allow(
        !is_budgeted || *kind != "adaptive",
        "thinking",
        "adaptive thinking is not supported on this model",
    );
    let message =
        "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\".";
    allow(!is_among(&ADAPTIVE) || *kind != "enabled", "thinking", message);
    let beta = header_text(&call.parts.headers, "anthropic-beta").unwrap_or_default();
    let is_early = model.contains("opus-4-5") && beta.contains(EFFORT_BETA);
    let has_effort = !is_budgeted && thinks || is_early;
    let effort = &request["output_config"]["effort"];
    allow(
        has_effort || effort.is_null(),
        "output_config.effort",
        "This model does not support the effort parameter.",
    );
}
