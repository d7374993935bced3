//! Schemas that an answer is held to: vendors take only those whose objects are closed.

use serde_json::Value;

use super::rules::{Findings, Rule};
use super::shape::below;

/// Which properties a closed object must require.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Required {
    /// Any of them.
    Some,
    /// Each of them.
    All,
}

/// Every object of a schema says that it has no other properties.
pub(super) fn check_closed(schema: &Value, path: &str, required: Required, findings: &mut Findings) {
    if schema["type"] == "object" {
        let closed = schema["additionalProperties"] == false;
        let message = "for 'object' type, 'additionalProperties' must be explicitly set to false";
        findings.require(closed, Rule::OutputSchema, path, message);
        check_required(schema, path, required, findings);
    }
    let named = ["properties", "$defs", "definitions"];
    for (name, part) in named.iter().filter_map(|name| schema[name].as_object()).flatten() {
        check_closed(part, &below(path, name), required, findings);
    }
    for keyword in ["anyOf", "allOf", "oneOf"] {
        for part in schema[keyword].as_array().into_iter().flatten() {
            check_closed(part, &below(path, keyword), required, findings);
        }
    }
    if schema["items"].is_object() {
        check_closed(&schema["items"], &below(path, "items"), required, findings);
    }
}

fn check_required(schema: &Value, path: &str, wanted: Required, findings: &mut Findings) {
    let listed =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let has = |name: &str| schema["properties"].get(name).is_some();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let message = format_args!("required property '{name}' doesn't exist");
        findings.require(has(name), Rule::OutputSchema, path, message);
    }
    if wanted == Required::All {
        for name in schema["properties"].as_object().into_iter().flatten().map(|property| property.0) {
            let message =
                format_args!("'required' is to include every key in properties: '{name}' is missing");
            findings.require(listed(name), Rule::OutputSchema, path, message);
        }
    }
}
