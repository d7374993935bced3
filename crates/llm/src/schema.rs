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

/// Whether every object in it names all its properties as required and allows no others: what a vendor asks for before
/// it promises to follow a schema to the letter.
pub(crate) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let is_closed = match fields.get("properties").and_then(Value::as_object) {
                None => true,
                Some(properties) => {
                    let required = fields.get("required").and_then(Value::as_array);
                    let is_required = |name: &String| {
                        required.is_some_and(|required| required.iter().any(|other| other == name.as_str()))
                    };
                    fields.get("additionalProperties") == Some(&Value::Bool(false))
                        && properties.keys().all(is_required)
                }
            };
            is_closed && fields.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}

/// The schema with every object closed that does not say whether it is.
pub(crate) fn closed(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut closed_fields: serde_json::Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), closed(value))).collect();
            if fields.get("type").is_some_and(|kind| kind == "object") {
                closed_fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            Value::Object(closed_fields)
        }
        Value::Array(items) => items.iter().map(closed).collect(),
        other => other.clone(),
    }
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
        let inner = json!({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]});
        let outer = |inner: &Value| json!({"type": "object", "properties": {"a": inner}, "required": ["a"], "additionalProperties": false});
        assert!(!is_strict(&outer(&inner)) && !is_strict(&inner));
        assert!(is_strict(&outer(&closed(&inner))));
        assert!(
            !is_strict(&closed(&json!({"type": "object", "properties": {"a": {}}}))),
            "a is not required"
        );
    }
}
