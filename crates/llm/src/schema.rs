//! JSON schemas as vendors want them.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// The name under which an answer's schema goes out, where a vendor wants one.
pub(crate) const ANSWER: &str = "answer";

/// The schema of a tool's arguments: of an object, with properties.
pub(crate) fn parameters(schema: &Value) -> Cow<'_, Value> {
    let is_empty = schema.as_object().is_some_and(serde_json::Map::is_empty);
    if schema.is_null() || is_empty {
        return Cow::Owned(json!({
            "type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"],
        }));
    }
    match schema.as_object() {
        Some(fields) if !(fields.contains_key("type") && fields.contains_key("properties")) => {
            let mut fields = fields.clone();
            fields.entry("type").or_insert_with(|| json!("object"));
            fields.entry("properties").or_insert_with(|| json!({}));
            Cow::Owned(Value::Object(fields))
        }
        _ => Cow::Borrowed(schema),
    }
}

/// All the keywords that a vendor follows to the letter.
const STRICT: [&str; 22] = [
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

/// Formats of texts that it follows so.
const FORMATS: [&str; 9] =
    ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"];

/// Whether a vendor will promise to follow it to the letter: it is of an object, every object in it names all its
/// properties as required and allows no others, and no keyword is among it that the vendor refuses then.
pub(crate) fn is_strict(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object") && is_strict_part(schema)
}

fn is_strict_part(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else { return false };
    let is_known = fields.iter().all(|(name, value)| match name.as_str() {
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        "items" => is_strict_part(value),
        "anyOf" => value.as_array().is_some_and(|parts| parts.iter().all(is_strict_part)),
        "properties" | "$defs" | "definitions" => {
            value.as_object().is_some_and(|parts| parts.values().all(is_strict_part))
        }
        name => STRICT.contains(&name),
    });
    let says_what = ["type", "anyOf", "$ref", "enum", "const"].iter().any(|name| fields.contains_key(*name));
    let is_reference = fields.contains_key("$ref");
    is_known && says_what && (!is_reference || fields.len() == 1) && (!is_object(fields) || is_closed(fields))
}

fn is_object(fields: &serde_json::Map<String, Value>) -> bool {
    match fields.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) | None => fields.contains_key("properties"),
    }
}

fn is_closed(fields: &serde_json::Map<String, Value>) -> bool {
    let Some(properties) = fields.get("properties").and_then(Value::as_object) else { return false };
    let required = || fields.get("required").and_then(Value::as_array).into_iter().flatten();
    fields.get("additionalProperties") == Some(&Value::Bool(false))
        && properties.keys().all(|name| required().any(|other| other == name.as_str()))
        && required().all(|name| name.as_str().is_some_and(|name| properties.contains_key(name)))
}

/// What the model is told as it begins, where the wire can't carry a schema beside tools: then its answer is asked for in words.
pub(crate) fn told<'r>(system: &'r str, schema: Option<&Value>) -> Cow<'r, str> {
    let Some(schema) = schema else { return Cow::Borrowed(system) };
    let between = if system.trim().is_empty() { "" } else { "\n\n" };
    Cow::Owned(format!(
        "{system}{between}Call the tools that you need. Your final answer must be JSON alone, without any other words or \
         marks around it, that fits this JSON schema: {schema}"
    ))
}

/// The arguments of a past call as text. Vendors want an object, and some servers break on anything else, so what a
/// model wrote wrongly goes back as `{}`: to show it its own broken text would teach it to write more of that, and the
/// tool's result right behind it says what was wrong.
pub(crate) fn arguments(text: &str) -> &str {
    let is_object = text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_object { text } else { "{}" }
}

/// The same as a value.
pub(crate) fn arguments_value(text: &str) -> Value {
    serde_json::from_str(text).ok().filter(Value::is_object).unwrap_or_else(|| json!({}))
}

/// What a tool gave, where the wire has no mark for a failed one.
pub(crate) fn result(content: &str, is_error: bool) -> Cow<'_, str> {
    let says_so = content.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    match is_error && !says_so {
        true => Cow::Owned(format!("error: {content}")),
        false => Cow::Borrowed(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_no_object_go_back_as_an_empty_one() {
        for text in ["", "{", "[1]", "null", "\"a\"", "{\"a\":}", "{} {}"] {
            assert_eq!((arguments(text), arguments_value(text)), ("{}", json!({})), "{text}");
        }
        for text in ["{}", " {\"a\": [1]} "] {
            assert_eq!(arguments(text), text);
        }
    }

    #[test]
    fn a_schema_is_strict_only_where_all_of_it_is() {
        let text = json!({"type": "string"});
        let object = |inner: &Value| json!({"type": "object", "properties": {"a": inner}, "required": ["a"], "additionalProperties": false});
        let open = json!({"type": "object", "properties": {"b": text}, "required": ["b"]});
        let optional = json!({"type": "object", "properties": {"b": text}, "additionalProperties": false});
        let closed = object(&text);
        let list = json!({"type": "array", "items": closed, "minItems": 2});
        let either = json!({"anyOf": [closed, {"type": ["string", "null"], "format": "date"}]});
        for inner in [&text, &closed, &list, &either, &json!({"enum": [{"type": "object"}]})] {
            assert!(is_strict(&object(inner)), "{inner}");
        }
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let all = json!({"allOf": [closed]});
        let others = [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}}),
            json!({"type": "string", "minLength": 3}),
            json!({"type": "string", "format": "uri-template"}),
            json!({"not": text}),
            json!({"type": "string", "default": "x"}),
            json!({"$ref": "#/$defs/a", "description": "another"}),
            json!({}),
            json!(true),
        ];
        for inner in others.iter().chain([&open, &optional, &map, &all]) {
            assert!(!is_strict(&object(inner)), "{inner}");
            assert!(!is_strict(&object(&json!({"type": "array", "items": inner}))), "{inner}");
        }
        assert!(!is_strict(&list) && !is_strict(&either), "the whole is no object");
    }
}
