//! Headers, options and tools of a request to the messages API. The shape comes first; what reads further
//! presumes it.

use serde_json::Value;

use super::{blocks, cache, models, shapes, transcript};
use crate::model_server::rules::{Findings, Rule, bearer_token, check_content_type, header_text};
use crate::model_server::schema;
use crate::model_server::shape::Shape;
use crate::model_server::wire::Call;

/// The version of the API that has no sampling any more.
const WITHOUT_SAMPLING: &str = "2026-10-21";
const VERSIONS: [&str; 2] = ["2023-06-01", WITHOUT_SAMPLING];

pub(super) fn check(call: &Call<'_>, request: &Value, findings: &mut Findings) {
    let version = check_headers(call, findings);
    let has_sampling = version != Some(WITHOUT_SAMPLING);
    check_shape(request, has_sampling, findings);
    if !findings.0.is_empty() {
        return;
    }
    check_options(request, findings);
    models::check(call, request, findings);
    check_tools(request, findings);
    check_cache(request, findings);
    transcript::check(request, !has_sampling, findings);
}

fn check_headers<'c>(call: &Call<'c>, findings: &mut Findings) -> Option<&'c str> {
    let headers = &call.parts.headers;
    check_content_type(headers, findings);
    let key = header_text(headers, "x-api-key").filter(|key| !key.is_empty());
    let known = key.is_some() || bearer_token(headers).is_some();
    findings.require(known, Rule::Authorization, "x-api-key", "x-api-key header is required");
    let version = header_text(headers, "anthropic-version");
    let message = format_args!("anthropic-version: must be one of {VERSIONS:?}");
    let is_known = version.is_some_and(|version| VERSIONS.contains(&version));
    findings.require(is_known, Rule::Version, "anthropic-version", message);
    version
}

fn check_shape(request: &Value, has_sampling: bool, findings: &mut Findings) {
    if !has_sampling {
        return Shape::Fields(shapes::REQUEST).check(request, "", findings);
    }
    let mut rest = request.clone();
    for (name, shape) in shapes::SAMPLING {
        if let Some(value) = rest.as_object_mut().and_then(|fields| fields.remove(name)) {
            shape.check(&value, name, findings);
        }
    }
    Shape::Fields(shapes::REQUEST).check(&rest, "", findings);
}

fn check_options(request: &Value, findings: &mut Findings) {
    let thinks = request["thinking"]["type"] == "enabled";
    let mut allow = |allowed: bool, param: &str, message: &str| {
        findings.require(allowed, Rule::Conflict, param, message);
    };
    if thinks {
        let fits = request["thinking"]["budget_tokens"].as_i64() < request["max_tokens"].as_i64();
        allow(fits, "max_tokens", "must be greater than `thinking.budget_tokens`");
        let warm = request.get("temperature").is_none_or(|value| value.as_f64() == Some(1.0));
        allow(warm, "temperature", "may only be set to 1 when thinking is enabled");
        let forced = ["any", "tool"].iter().any(|kind| request["tool_choice"]["type"] == *kind);
        allow(!forced, "thinking", "may not be enabled when tool_choice forces tool use");
    }
    let both = request.get("temperature").is_some() && request.get("top_p").is_some();
    allow(!both, "top_p", "`temperature` and `top_p` cannot both be specified for this model");
    if let Some(schema) = request.pointer("/output_config/format/schema") {
        let path = "output_config.format.schema";
        schema::check(schema, path, schema::Grammar::Anthropic, findings);
    }
}

fn check_tools(request: &Value, findings: &mut Findings) {
    let tools: Vec<_> = blocks(&request["tools"]).collect();
    for (index, tool) in tools.iter().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        let path = format!("tools.{index}.custom");
        let message = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
        findings.require(is_tool_name(name), Rule::Name, format_args!("{path}.name"), message);
        let repeated = tools.iter().take(index).any(|other| other["name"] == tool["name"]);
        findings.require(!repeated, Rule::DuplicateTool, "tools", "Tool names must be unique.");
        let schema = &tool["input_schema"];
        let path = format!("{path}.input_schema");
        findings.require(schema["type"] == "object", Rule::Parameters, &path, "type: Field required");
        if tool["strict"] == true {
            schema::check(schema, &path, schema::Grammar::Anthropic, findings);
        }
    }
    let choice = &request["tool_choice"];
    let message = "may only be specified while providing `tools`";
    findings.require(choice.is_null() || !tools.is_empty(), Rule::ToolChoice, "tool_choice", message);
    if choice["type"] == "tool" && !tools.is_empty() {
        let offered = tools.iter().any(|tool| tool["name"] == choice["name"]);
        let message = format_args!("Tool '{}' not found in provided tools", choice["name"]);
        findings.require(offered, Rule::ToolChoice, "tool_choice", message);
    }
}

fn check_cache(request: &Value, findings: &mut Findings) {
    let marks = cache::marks(request);
    let message =
        format_args!("A maximum of 4 blocks with cache_control may be provided. Found {}.", marks.len());
    findings.require(marks.len() <= 4, Rule::Cache, "cache_control", message);
    let first_short = marks.iter().position(|mark| mark["ttl"] != "1h").unwrap_or(marks.len());
    let ordered = marks.iter().skip(first_short).all(|mark| mark["ttl"] != "1h");
    let message = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block";
    findings.require(ordered, Rule::Cache, "cache_control", message);
}

/// The names of tools: 1 to 128 letters, digits, `_` and `-`.
pub(super) fn is_tool_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=128).contains(&name.len()) && name.bytes().all(allowed)
}
