//! The schema of an answer as this vendor takes it: its grammar has no bounds and no conditions, and knows closed objects
//! alone. What it can't follow is told to the model in words, where it stands; the answer is held against the schema as
//! it was given, by whoever asked.

use serde_json::{Map, Value, json};

/// Keywords that are followed.
const FOLLOWED: [&str; 13] = [
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "default",
    "definitions",
    "description",
    "properties",
    "required",
    "title",
    "type",
];

/// Formats of texts that are followed.
const FORMATS: [&str; 10] =
    ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"];

/// Maps of schemas, by names of the caller's own.
const NAMED: [&str; 3] = ["$defs", "definitions", "properties"];

/// Nothing if it can't be said at all: an object of any names would have to be an empty one, and parts that all must fit
/// would, each of them closed, leave nothing that fits.
pub(super) fn fitting(schema: &Value) -> Option<Value> {
    let Value::Object(fields) = schema else { return None };
    if ["allOf", "patternProperties"].iter().any(|name| fields.contains_key(*name)) {
        return None;
    }
    let (mut kept, mut told) = (Map::new(), Map::new());
    for (name, value) in fields {
        match is_followed(name, value) {
            true => drop(kept.insert(name.clone(), value.clone())),
            false => drop(told.insert(name.clone(), value.clone())),
        }
    }
    if let Some(Value::Array(either)) = fields.get("oneOf").filter(|_| !fields.contains_key("anyOf")) {
        kept.insert("anyOf".into(), either.clone().into());
        told.remove("oneOf");
    }
    for name in NAMED {
        if let Some(Value::Object(parts)) = kept.get_mut(name) {
            for part in parts.values_mut() {
                *part = fitting(part)?;
            }
        }
    }
    if let Some(Value::Array(parts)) = kept.get_mut("anyOf") {
        for part in parts {
            *part = fitting(part)?;
        }
    }
    if let Some(items) = kept.get_mut("items") {
        *items = fitting(items)?;
    }
    if is_object(fields) {
        close(&mut kept)?;
    }
    describe(&mut kept, told);
    Some(Value::Object(kept))
}

fn is_followed(name: &str, value: &Value) -> bool {
    match name {
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        "minItems" => value.as_u64().is_some_and(|count| count <= 1),
        "enum" => value.as_array().is_some_and(|words| words.iter().all(is_plain)),
        "items" => value.is_object(),
        name => FOLLOWED.contains(&name),
    }
}

fn is_plain(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

fn is_object(fields: &Map<String, Value>) -> bool {
    match fields.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) | None => fields.contains_key("properties"),
    }
}

/// Closes an object that names its properties. One that doesn't is open, unless it says otherwise.
fn close(fields: &mut Map<String, Value>) -> Option<()> {
    let has_names =
        fields.get("properties").and_then(Value::as_object).is_some_and(|names| !names.is_empty());
    match fields.get("additionalProperties") {
        Some(Value::Bool(false)) => {}
        Some(Value::Bool(true)) | None if has_names => {}
        Some(_) | None => return None,
    }
    fields.insert("additionalProperties".into(), false.into());
    Some(())
}

fn describe(fields: &mut Map<String, Value>, told: Map<String, Value>) {
    // What asks for nothing needs no words.
    let told: Map<String, Value> = told.into_iter().filter(|(_, value)| *value != false).collect();
    if told.is_empty() {
        return;
    }
    let said = fields.get("description").and_then(Value::as_str).unwrap_or_default();
    let between = if said.is_empty() { "" } else { " " };
    let told = format!("{said}{between}Must also fit this JSON schema: {}", Value::Object(told));
    fields.insert("description".into(), json!(told));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_can_not_follow_is_told_where_it_stands() {
        let schema = json!({
            "type": "object", "required": ["age", "name"], "minProperties": 2,
            "properties": {
                "age": {"type": "integer", "minimum": 0, "description": "In years."},
                "name": {"type": "string", "maxLength": 9, "format": "email", "pattern": "@"},
                "minimum": {"type": "array", "items": {"type": "number", "multipleOf": 2}, "minItems": 3,
                    "uniqueItems": false},
            },
        });
        let expected = json!({
            "type": "object", "required": ["age", "name"], "additionalProperties": false,
            "description": "Must also fit this JSON schema: {\"minProperties\":2}",
            "properties": {
                "age": {"type": "integer", "description": "In years. Must also fit this JSON schema: {\"minimum\":0}"},
                "name": {"type": "string", "format": "email",
                    "description": "Must also fit this JSON schema: {\"maxLength\":9,\"pattern\":\"@\"}"},
                "minimum": {"type": "array",
                    "items": {"type": "number", "description": "Must also fit this JSON schema: {\"multipleOf\":2}"},
                    "description": "Must also fit this JSON schema: {\"minItems\":3}"},
            },
        });
        assert_eq!(fitting(&schema), Some(expected));
    }

    #[test]
    fn one_of_several_is_any_of_them_and_parts_are_closed_too() {
        let closed = |name: &str| json!({"type": "object", "properties": {name: {"type": "null"}}, "additionalProperties": false});
        let open = |name: &str| json!({"type": "object", "properties": {name: {"type": "null"}}});
        let schema = json!({"oneOf": [open("a"), {"$ref": "#/$defs/b"}], "$defs": {"b": open("c")}});
        let expected = json!({"anyOf": [closed("a"), {"$ref": "#/$defs/b"}], "$defs": {"b": closed("c")}});
        assert_eq!(fitting(&schema), Some(expected));
        // What stands in an enumeration is no schema.
        let words = json!({"enum": ["minimum", null, 3], "default": {"type": "object"}});
        assert_eq!(fitting(&words), Some(words.clone()));
    }

    #[test]
    fn an_object_of_any_names_can_not_be_said() {
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let both = json!({"allOf": [{"type": "object", "properties": {"a": {"type": "null"}}}]});
        for open in
            [&map, &both, &json!({"type": "object"}), &json!(true), &json!({"type": "array", "items": map})]
        {
            assert_eq!(fitting(open), None, "{open}");
        }
        let empty = json!({"type": "object", "additionalProperties": false});
        assert_eq!(fitting(&empty), Some(empty.clone()));
    }
}
