//! Headers, options and functions of a request to generate content.

use serde_json::Value;

use super::{functions, list, shapes, transcript, wants_signatures};
use crate::loopback::query_value;
use crate::model_server::rules::{Findings, Rule, bearer_token, check_content_type, header_text};
use crate::model_server::shape::{Shape, below};
use crate::model_server::wire::Call;

pub(super) fn check(call: &Call<'_>, request: &Value, findings: &mut Findings) {
    check_headers(call, findings);
    Shape::Fields(shapes::REQUEST).check(request, "", findings);
    if !findings.0.is_empty() {
        return;
    }
    check_functions(request, findings);
    check_output(call.model(), request, findings);
    transcript::check(call.model(), request, findings);
}

fn check_headers(call: &Call<'_>, findings: &mut Findings) {
    let headers = &call.parts.headers;
    check_content_type(headers, findings);
    let query = call.parts.uri.query();
    let in_query = query_value(query, "key").filter(|key| !key.is_empty());
    let key = header_text(headers, "x-goog-api-key").filter(|key| !key.is_empty()).or(in_query);
    let known = key.is_some() || bearer_token(headers).is_some();
    let message = "Method doesn't allow unregistered callers. Please use API Key to call this API.";
    findings.require(known, Rule::Authorization, "x-goog-api-key", message);
    if call.parts.uri.path().ends_with(":streamGenerateContent") {
        let is_sse = query_value(query, "alt") == Some("sse");
        findings.require(is_sse, Rule::Conflict, "alt", "only streams with alt=sse are scripted");
    }
}

fn check_functions(request: &Value, findings: &mut Findings) {
    let all: Vec<_> = functions(request).collect();
    for (index, function) in all.iter().enumerate() {
        let path = format!("tools[0].function_declarations[{index}]");
        let name = function["name"].as_str().unwrap_or_default();
        let message = "Invalid function name. Must start with a letter or an underscore and hold only a-z, A-Z, 0-9, underscores, dots, colons or dashes, at most 128 of them";
        findings.require(is_function_name(name), Rule::Name, format_args!("{path}.name"), message);
        let repeated = all.iter().take(index).any(|other| other["name"] == function["name"]);
        findings.require(!repeated, Rule::DuplicateTool, &path, "Duplicate function declaration found");
        let both = function.get("parameters").is_some() && function.get("parametersJsonSchema").is_some();
        findings.require(
            !both,
            Rule::Conflict,
            &path,
            "parameters and parametersJsonSchema are mutually exclusive",
        );
        if let Some(schema) = function.get("parameters").filter(|schema| !schema.is_null()) {
            check_parameters(schema, &below(&path, "parameters"), findings);
        }
    }
    let config = &request["toolConfig"]["functionCallingConfig"];
    for name in list(&config["allowedFunctionNames"]) {
        let offered = all.iter().any(|function| function["name"] == *name);
        let message = format_args!("allowed function {name} is not declared");
        findings.require(offered, Rule::ToolChoice, "tool_config", message);
    }
    let needed = config["mode"] != "ANY" || !all.is_empty();
    findings.require(needed, Rule::ToolChoice, "tool_config", "function calling mode ANY needs declarations");
}

fn check_parameters(schema: &Value, path: &str, findings: &mut Findings) {
    let is_object = schema["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("object"));
    findings.require(is_object, Rule::Parameters, path, "schema should be of type OBJECT");
    check_schema(schema, path, findings);
}

/// Only the keywords the vendor has.
fn check_schema(schema: &Value, path: &str, findings: &mut Findings) {
    let Some(keywords) = schema.as_object() else {
        return findings.add(Rule::Parameters, path, "is not a schema");
    };
    for name in keywords.keys() {
        let known = shapes::SCHEMA.contains(&&**name);
        let message = format_args!("Unknown name \"{name}\": Cannot find field.");
        findings.require(known, Rule::Parameters, path, message);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        check_schema(property, &below(path, name), findings);
    }
    for name in list(&schema["required"]).filter_map(Value::as_str) {
        let message = format_args!("required[0]: property {name} is not defined");
        findings.require(schema["properties"].get(name).is_some(), Rule::Parameters, path, message);
    }
    if schema["items"].is_object() {
        check_schema(&schema["items"], &below(path, "items"), findings);
    }
    for option in list(&schema["anyOf"]) {
        check_schema(option, &below(path, "anyOf"), findings);
    }
}

fn check_output(model: &str, request: &Value, findings: &mut Findings) {
    let config = &request["generationConfig"];
    let mut allow = |allowed: bool, param: &str, message: &str| {
        findings.require(allowed, Rule::Conflict, param, message);
    };
    let (own, json) = (!config["responseSchema"].is_null(), !config["responseJsonSchema"].is_null());
    allow(
        !(own && json),
        "generation_config",
        "response_schema and response_json_schema are mutually exclusive",
    );
    let is_json = config["responseMimeType"] != "text/plain" && !config["responseMimeType"].is_null();
    allow(
        is_json || !(own || json),
        "generation_config.response_mime_type",
        "a schema needs application/json",
    );
    let has_both = config["responseMimeType"] == "application/json" && functions(request).next().is_some();
    allow(
        !has_both || wants_signatures(model),
        "generation_config.response_mime_type",
        "Function calling with a response mime type: 'application/json' is unsupported",
    );
    let thinking = &config["thinkingConfig"];
    let both = !thinking["thinkingBudget"].is_null() && !thinking["thinkingLevel"].is_null();
    allow(
        !both,
        "generation_config.thinking_config",
        "You can only set one of thinking_budget and thinking_level",
    );
    let (budget, level) = (!thinking["thinkingBudget"].is_null(), !thinking["thinkingLevel"].is_null());
    let param = "generation_config.thinking_config";
    let leveled = wants_signatures(model);
    allow(leveled || !level, param, "Thinking level is not supported for this model.");
    let thinks = leveled || model.contains("gemini-2.5");
    allow(thinks || !budget, param, "Thinking is not supported by this model.");
    let always = model.contains("gemini-2.5-pro") && thinking["thinkingBudget"] == 0;
    allow(!always, param, "Budget 0 is invalid. This model only works in thinking mode.");
    let few = model.contains("gemini-3-pro")
        && ["MINIMAL", "MEDIUM"].iter().any(|it| thinking["thinkingLevel"] == *it);
    allow(!few, param, "Thinking level is not one of LOW and HIGH, which this model has.");
    if own {
        check_schema(&config["responseSchema"], "generation_config.response_schema", findings);
    }
}

/// The names of functions.
pub(super) fn is_function_name(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    begins && name.len() <= 128 && name.bytes().all(allowed)
}
