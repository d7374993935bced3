//! The tools on offer: their names, their schemas, and the choice among them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model_server::chat::request::{ChatRequest, OfferedFunction, ToolChoice};
use crate::model_server::rules::{Findings, Rule, is_name};

pub(super) fn check(request: &ChatRequest<'_>, findings: &mut Findings) {
    let Some(tools) = &request.tools else { return };
    findings.require((1..=128).contains(&tools.len()), Rule::ToolCount, "tools", "must be 1 to 128 tools");
    for (index, tool) in tools.iter().enumerate() {
        check_function(&tool.function, index, findings);
        let repeated = tools.iter().take(index).any(|other| other.function.name == tool.function.name);
        let param = format_args!("tools[{index}].function.name");
        findings.require(!repeated, Rule::DuplicateTool, param, "is the name of an earlier tool");
    }
    check_choice(request, findings);
}

fn check_function(function: &OfferedFunction<'_>, index: usize, findings: &mut Findings) {
    let param = format_args!("tools[{index}].function.name");
    findings.require(is_name(&function.name), Rule::Name, param, "must match ^[a-zA-Z0-9_-]{1,64}$");
    let short = function.description.as_ref().is_none_or(|text| text.chars().nth(1024).is_none());
    let param = format_args!("tools[{index}].function.description");
    findings.require(short, Rule::Range, param, "is longer than 1024 characters");
    let strict = function.strict == Some(true);
    if let Some(parameters) = function.parameters
        && let Err(message) = check_schema(parameters, strict)
    {
        findings.add(Rule::Parameters, format_args!("tools[{index}].function.parameters"), message);
    }
}

fn check_choice(request: &ChatRequest<'_>, findings: &mut Findings) {
    let allowed = match &request.tool_choice {
        None => true,
        Some(ToolChoice::Mode(mode)) => ["none", "auto", "required"].contains(&&**mode),
        Some(ToolChoice::Named(tool)) => request.tool_names().any(|name| name == &*tool.function.name),
    };
    findings.require(allowed, Rule::ToolChoice, "tool_choice", "is neither a mode nor a tool on offer");
}

/// The keywords of a schema that the vendor looks at; the others pass.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Schema<'a> {
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    properties: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
    #[serde(default)]
    required: Vec<String>,
    #[serde(borrow)]
    additional_properties: Option<&'a RawValue>,
}

fn check_schema(parameters: &RawValue, strict: bool) -> Result<(), String> {
    let schema: Schema<'_> = serde_json::from_str(parameters.get())
        .map_err(|error| format!("is not the schema of an object: {error}"))?;
    if schema.r#type != "object" {
        return Err("must have the type \"object\"".to_owned());
    }
    let Some(properties) = &schema.properties else {
        return Err("is an object schema without properties".to_owned());
    };
    if let Some((name, _)) = properties.iter().find(|(_, property)| !property.get().starts_with('{')) {
        return Err(format!("property `{name}` is not a schema"));
    }
    if let Some(name) = schema.required.iter().find(|name| !properties.contains_key(name.as_str())) {
        return Err(format!("required property `{name}` doesn't exist"));
    }
    let closed = schema.additional_properties.is_some_and(|value| value.get() == "false");
    if strict && !(closed && schema.required.len() == properties.len()) {
        return Err("is strict, so every property is required and no other allowed".to_owned());
    }
    Ok(())
}
