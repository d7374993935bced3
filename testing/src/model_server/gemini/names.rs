//! The two spellings of every field: this vendor reads `inline_data` as it reads `inlineData`.

use serde_json::Value;

/// Fields whose inside belongs to the caller.
const VERBATIM: [&str; 7] =
    ["args", "response", "parametersJsonSchema", "responseJsonSchema", "labels", "example", "default"];

/// A request with its fields in the spelling that is checked.
pub(super) fn in_camel_case(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().map(field).collect(),
        Value::Array(items) => items.into_iter().map(in_camel_case).collect(),
        other => other,
    }
}

fn field((name, value): (String, Value)) -> (String, Value) {
    let name = camel(&name);
    let value = match (&*name, value) {
        (kept, value) if VERBATIM.contains(&kept) => value,
        // Their names are the caller's, what they hold is not.
        ("properties", Value::Object(properties)) => {
            properties.into_iter().map(|(name, schema)| (name, in_camel_case(schema))).collect()
        }
        (_, value) => in_camel_case(value),
    };
    (name, value)
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}
