//! Schemas that an answer is held to: vendors take only those whose objects are closed, and not every keyword.

use serde_json::{Map, Value};

use super::rules::{Findings, Rule};
use super::shape::below;

/// Who holds the model to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    /// Refuses the keywords that it can't follow, and lets others pass that it doesn't know.
    Anthropic,
    /// Refuses whatever it doesn't know, and wants every property required.
    OpenAi,
}

/// What Anthropic can't hold a model to.
const REFUSED: [&str; 24] = [
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "if",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "uniqueItems",
];

/// All that OpenAI takes where it promises to follow a schema to the letter.
const TAKEN: [&str; 22] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// The schema of an answer, or of a strict tool.
pub(super) fn check(schema: &Value, path: &str, grammar: Grammar, findings: &mut Findings) {
    if grammar == Grammar::OpenAi {
        let message = "schema must be a JSON Schema of 'type: \"object\"'";
        findings.require(schema["type"] == "object", Rule::OutputSchema, path, message);
    }
    check_part(schema, path, grammar, findings);
}

fn check_part(schema: &Value, path: &str, grammar: Grammar, findings: &mut Findings) {
    let Some(fields) = schema.as_object() else {
        return findings.add(Rule::OutputSchema, path, "is no schema of an object, a list or a value");
    };
    check_keywords(fields, path, grammar, findings);
    if is_object(schema) {
        let closed = schema["additionalProperties"] == false;
        let message = "for 'object' type, 'additionalProperties' must be explicitly set to false";
        findings.require(closed, Rule::OutputSchema, path, message);
        check_required(schema, path, grammar, findings);
    }
    let named = ["properties", "$defs", "definitions"];
    for (name, part) in named.iter().filter_map(|name| schema[name].as_object()).flatten() {
        check_part(part, &below(path, name), grammar, findings);
    }
    for keyword in ["anyOf", "allOf"] {
        for part in schema[keyword].as_array().into_iter().flatten() {
            check_part(part, &below(path, keyword), grammar, findings);
        }
    }
    if schema["items"].is_object() {
        check_part(&schema["items"], &below(path, "items"), grammar, findings);
    }
}

fn is_object(schema: &Value) -> bool {
    let kinds = schema["type"].as_array().into_iter().flatten();
    schema["type"] == "object" || kinds.into_iter().any(|kind| kind == "object")
}

fn check_keywords(fields: &Map<String, Value>, path: &str, grammar: Grammar, findings: &mut Findings) {
    for (name, value) in fields {
        let is_taken = match grammar {
            Grammar::Anthropic if name == "minItems" => value.as_u64().is_some_and(|count| count <= 1),
            Grammar::Anthropic => !REFUSED.contains(&name.as_str()),
            Grammar::OpenAi => TAKEN.contains(&name.as_str()),
        };
        let message = format_args!("property '{name}' is not supported");
        findings.require(is_taken, Rule::OutputSchema, path, message);
    }
    if grammar == Grammar::OpenAi {
        let is_typed =
            ["type", "anyOf", "$ref", "enum", "const"].iter().any(|name| fields.contains_key(*name));
        findings.require(is_typed, Rule::OutputSchema, path, "schema must have a 'type' key");
        let is_alone = !fields.contains_key("$ref") || fields.len() == 1;
        findings.require(is_alone, Rule::OutputSchema, path, "$ref cannot have keywords beside it");
    }
}

fn check_required(schema: &Value, path: &str, grammar: Grammar, findings: &mut Findings) {
    let listed =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let has = |name: &str| schema["properties"].get(name).is_some();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let message = format_args!("required property '{name}' doesn't exist");
        findings.require(has(name), Rule::OutputSchema, path, message);
    }
    if grammar == Grammar::OpenAi {
        let message = "object schema missing properties";
        findings.require(schema["properties"].is_object(), Rule::OutputSchema, path, message);
        for name in schema["properties"].as_object().into_iter().flatten().map(|property| property.0) {
            let message =
                format_args!("'required' is to include every key in properties: '{name}' is missing");
            findings.require(listed(name), Rule::OutputSchema, path, message);
        }
    }
}
