//! The fields beside messages and tools: ranges, and options that need or exclude one another.

use std::ops::RangeInclusive;

use serde_json::Value;

use crate::model_server::chat::request::{ChatRequest, Stop, Text};
use crate::model_server::rules::{Findings, Rule};
use crate::model_server::schema;

pub(super) fn check(request: &ChatRequest<'_>, findings: &mut Findings) {
    check_numbers(request, findings);
    check_words(request, findings);
    check_conflicts(request, findings);
    check_format(request, findings);
    let model = request.model.as_deref().unwrap_or_default();
    check_breakpoints(model, request.n_breakpoints(), request.prompt_cache_options.is_some(), findings);
}

/// The marks of the prompt cache came with one of the vendor's models, and those before it refuse them.
pub(in crate::model_server) fn check_breakpoints(
    model: &str,
    n_marks: usize,
    has_options: bool,
    findings: &mut Findings,
) {
    const OLDER: [&str; 10] =
        ["gpt-3", "gpt-4", "gpt-5.1", "gpt-5.2", "gpt-5.3", "gpt-5.4", "gpt-5.5", "o1", "o3", "o4"];
    let is_older =
        OLDER.iter().any(|older| model.starts_with(older)) || model == "gpt-5" || model.starts_with("gpt-5-");
    let param = if has_options { "prompt_cache_options" } else { "prompt_cache_breakpoint" };
    let is_asked = n_marks > 0 || has_options;
    findings.require(!(is_older && is_asked), Rule::Cache, param, "is not supported with this model");
}

fn check_format(request: &ChatRequest<'_>, findings: &mut Findings) {
    let Some(format) = request.response_format else { return };
    let format: Value = serde_json::from_str(format.get()).unwrap_or_default();
    let known = ["text", "json_object", "json_schema"].iter().any(|kind| format["type"] == *kind);
    findings.require(known, Rule::Shape, "response_format.type", "is no format of an answer");
    let wanted = &format["json_schema"];
    if wanted["strict"] == true {
        let path = "response_format.json_schema.schema";
        schema::check(&wanted["schema"], path, schema::Grammar::OpenAi, findings);
    }
}

fn check_numbers(request: &ChatRequest<'_>, findings: &mut Findings) {
    within(findings, "temperature", request.temperature, 0.0..=2.0);
    within(findings, "top_p", request.top_p, 0.0..=1.0);
    within(findings, "frequency_penalty", request.frequency_penalty, -2.0..=2.0);
    within(findings, "presence_penalty", request.presence_penalty, -2.0..=2.0);
    within(findings, "max_tokens", request.max_tokens, 1..=u64::MAX);
    within(findings, "max_completion_tokens", request.max_completion_tokens, 1..=u64::MAX);
    // The scripted model only ever gives one choice.
    within(findings, "n", request.n, 1..=1);
    within(findings, "top_logprobs", request.top_logprobs, 0..=20);
}

fn check_words(request: &ChatRequest<'_>, findings: &mut Findings) {
    one_of(
        findings,
        "reasoning_effort",
        &request.reasoning_effort,
        &["none", "minimal", "low", "medium", "high", "xhigh", "max"],
    );
    one_of(findings, "verbosity", &request.verbosity, &["low", "medium", "high"]);
    one_of(
        findings,
        "service_tier",
        &request.service_tier,
        &["auto", "default", "flex", "scale", "priority", "fast"],
    );
    let n_stops = match &request.stop {
        None | Some(Stop::One(_)) => 1,
        Some(Stop::Many(stops)) => stops.len(),
    };
    findings.require((1..=4).contains(&n_stops), Rule::Range, "stop", "must be 1 to 4 sequences");
}

fn check_conflicts(request: &ChatRequest<'_>, findings: &mut Findings) {
    let mut allow = |allowed: bool, param: &str, message: &str| {
        findings.require(allowed, Rule::Conflict, param, message);
    };
    let streams = request.stream || request.stream_options.is_none();
    allow(streams, "stream_options", "is only allowed with `stream`");
    let has_tools = request.tools.is_some();
    allow(has_tools || request.tool_choice.is_none(), "tool_choice", "is only allowed with `tools`");
    let parallel = request.parallel_tool_calls.is_none();
    allow(has_tools || parallel, "parallel_tool_calls", "is only allowed with `tools`");
    let logprobs = request.logprobs == Some(true) || request.top_logprobs.is_none();
    allow(logprobs, "top_logprobs", "is only allowed with `logprobs`");
    let one_limit = request.max_tokens.is_none() || request.max_completion_tokens.is_none();
    allow(one_limit, "max_tokens", "excludes `max_completion_tokens`");
}

fn within<N: PartialOrd>(findings: &mut Findings, param: &str, value: Option<N>, range: RangeInclusive<N>) {
    let inside = value.is_none_or(|value| range.contains(&value));
    findings.require(inside, Rule::Range, param, "lies outside its range");
}

fn one_of(findings: &mut Findings, param: &str, value: &Option<Text<'_>>, words: &[&str]) {
    let known = value.as_ref().is_none_or(|value| words.contains(&&**value));
    findings.require(known, Rule::Range, param, format_args!("must be one of {words:?}"));
}
