//! The JSON schema that an agent's output must fit: whether it is one, and whether a value fits it. Patterns are matched
//! in time that grows with the text alone, and nothing outside the schema is looked up.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value as Json;

const MAX_DEPTH: usize = 10;
const MAX_BYTES: usize = 64 << 10;

/// As many mistakes as are told at once.
const MOST_MISTAKES: usize = 8;

/// What is wrong with the schema itself.
pub(crate) fn complaint(schema: &Json) -> Option<String> {
    if schema.get("type").is_none() {
        return Some("expected a JSON schema with a type at its root".to_owned());
    }
    if depth(schema) > MAX_DEPTH {
        return Some(format!("expected a JSON schema of at most {MAX_DEPTH} levels"));
    }
    if schema.to_string().len() > MAX_BYTES {
        return Some(format!("expected a JSON schema of at most {MAX_BYTES} bytes"));
    }
    validator(schema).err()
}

/// Every mistake of the value, each with its place, up to a handful; or what is wrong with the schema.
pub fn mistakes(schema: &Json, value: &Json) -> Result<Vec<String>, String> {
    let validator = validator(schema)?;
    let told = validator.iter_errors(value).take(MOST_MISTAKES).map(|mistake| {
        let place = mistake.instance_path().to_string();
        match place.as_str() {
            "" => mistake.to_string(),
            place => format!("{place}: {mistake}"),
        }
    });
    Ok(told.collect())
}

fn validator(schema: &Json) -> Result<Validator, String> {
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    options.build(schema).map_err(|error| format!("expected a valid JSON schema: {error}"))
}

fn depth(json: &Json) -> usize {
    match json {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Json::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_mistake_is_told_with_its_place() {
        let schema = json!({
            "type": "object", "required": ["colour"],
            "properties": {"colour": {"enum": ["red", "blue"]}, "sizes": {"items": {"type": "integer"}}},
        });
        assert_eq!(mistakes(&schema, &json!({"colour": "red", "sizes": [1]})), Ok(vec![]));
        let told = mistakes(&schema, &json!({"colour": "green", "sizes": [1, "two"]})).unwrap();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("/colour: ") && told[1].starts_with("/sizes/1: "), "{told:?}");
        let told = mistakes(&schema, &json!({})).unwrap();
        assert!(told[0].contains("\"colour\""), "{told:?}");
        let many = json!({"colour": "red", "sizes": vec!["x"; 99]});
        assert_eq!(mistakes(&schema, &many).unwrap().len(), MOST_MISTAKES);
    }

    #[test]
    fn a_schema_that_is_none_is_told() {
        let told = |schema: Json| complaint(&schema).unwrap_or_default();
        assert_eq!(told(json!({"type": "object"})), "");
        assert_eq!(
            told(json!({"type": "array", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "null"}}})),
            ""
        );
        assert!(told(json!({"type": "objekt"})).starts_with("expected a valid JSON schema: "));
        assert!(
            told(json!({"type": "string", "pattern": "("})).starts_with("expected a valid JSON schema: ")
        );
        // Looked up nowhere.
        assert!(
            told(json!({"type": "object", "$ref": "https://example.com/s"})).starts_with("expected a valid")
        );
        assert!(told(json!({"type": "object", "$ref": "#/nowhere"})).starts_with("expected a valid"));
    }

    /// Of a kind on which others take time that grows with the square of the text, or worse.
    #[test]
    fn a_pattern_can_not_take_long() {
        let schema = json!({"type": "string", "pattern": "^(a+)+$"});
        let text = format!("{}b", "a".repeat(100_000));
        assert_eq!(mistakes(&schema, &json!(text)).unwrap().len(), 1);
    }
}
