//! The JSON schema of each kind, for editors and other programs. It follows from the types; what only the
//! reader knows (what goes together, what a graph may look like) is not in it.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{Schema, json_schema};
use serde_json::{Map, Value as Json, json};

use crate::kind::{Kind, kinds};
use crate::resource::ApiVersion;

/// The schema of one kind's manifests.
pub fn of(kind: Kind) -> Json {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let spec = (kind.info().schema)(&mut generator);
    let mut schema = json_schema!({
        "title": kind.name(),
        "description": kind.info().summary,
        "type": "object",
        "properties": {
            "apiVersion": {
                "description": "By default the first.",
                "type": "string",
                "enum": ApiVersion::ALL.iter().map(|version| version.as_str()).collect::<Vec<_>>(),
            },
            "kind": {"type": "string", "const": kind.name()},
            "metadata": metadata(),
            "spec": spec,
            "status": {"description": "What was found out about it; not read from manifests.", "type": ["object", "null"]},
        },
        "required": ["kind", "metadata"],
        "$defs": generator.take_definitions(true),
    });
    RecursiveTransform(close).transform(&mut schema);
    let mut document = Map::new();
    document.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    if let Some(parts) = schema.as_object() {
        document.extend(parts.clone());
    }
    Json::Object(document)
}

/// One schema for files that hold any of them.
pub fn of_all() -> Json {
    let each = kinds().map(|info| json!({"$ref": file_name(info.kind)})).collect::<Vec<_>>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ostler manifests",
        "type": "object",
        "required": ["kind"],
        "oneOf": each,
    })
}

/// What the file of a kind's schema is called.
pub fn file_name(kind: Kind) -> String {
    kind.singular() + ".json"
}

fn metadata() -> Json {
    let texts = json!({"type": "object", "additionalProperties": loose()});
    let labels = |about: &str| {
        let mut labels = texts.clone();
        labels["description"] = json!(about);
        labels
    };
    json!({
        "type": "object",
        "properties": {
            "name": {"description": "Unique in its namespace and kind.", "type": "string", "minLength": 1, "maxLength": 253},
            "namespace": {"description": "By default \"default\".", "type": ["string", "null"], "maxLength": 253},
            "labels": labels("To select by."),
            "annotations": labels("For people and programs to read."),
            "uid": {"description": "Given by the server; never used again.", "type": ["string", "null"]},
            "resourceVersion": {
                "description": "If it is given, the version that a change is made to.",
                "type": ["string", "integer", "null"],
            },
            "generation": {"description": "Raised when the spec changes.", "type": ["integer", "null"]},
            "createdAt": {"description": "Given by the server.", "type": ["string", "null"]},
        },
        "required": ["name"],
    })
}

fn loose() -> Json {
    json!({"type": ["string", "number", "boolean", "null"]})
}

/// Text that may be written without quotes though it looks like a number.
pub(crate) fn loose_text(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "number", "null"]})
}

/// A number that may be written in quotes.
pub(crate) fn loose_number(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({"type": ["number", "string", "null"]})
}

/// Nothing but what is declared, in either spelling, and nothing where it may be left out.
fn close(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let required: Vec<String> = match object.get("required") {
        Some(Json::Array(names)) => {
            names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    };
    if let Some(Json::Object(properties)) = object.get_mut("properties") {
        let names: Vec<String> = properties.keys().cloned().collect();
        for name in names {
            let Some(other) = other_spelling(&name) else { continue };
            // Required in one spelling or the other can't be said without repeating the whole.
            if !required.contains(&name) && !properties.contains_key(&other) {
                let mut property = properties[&name].clone();
                if let Some(parts) = property.as_object_mut() {
                    parts.insert("description".to_owned(), json!(format!("The same as {name}.")));
                }
                properties.insert(other, property);
            }
        }
        object.insert("additionalProperties".to_owned(), json!(false));
    }
    // Values that people choose the names of are taken as they are written.
    if object.get("additionalProperties") == Some(&json!({"type": "string"})) {
        object.insert("additionalProperties".to_owned(), loose());
    }
}

/// `max_steps` for `maxSteps`, and the other way round.
fn other_spelling(name: &str) -> Option<String> {
    let mut other = String::with_capacity(name.len() + 4);
    let mut letters = name.chars().peekable();
    let mut before = None;
    while let Some(letter) = letters.next() {
        match letter {
            '_' => other.extend(letters.next().map(|letter| letter.to_ascii_uppercase())),
            _ if letter.is_ascii_uppercase() => {
                if !before.is_some_and(|before: char| before.is_ascii_uppercase()) {
                    other.push('_');
                }
                other.push(letter.to_ascii_lowercase());
            }
            _ => other.push(letter),
        }
        before = Some(letter);
    }
    (other != name).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_change_sides() {
        assert_eq!(other_spelling("max_steps").as_deref(), Some("maxSteps"));
        assert_eq!(other_spelling("secretRef").as_deref(), Some("secret_ref"));
        assert_eq!(other_spelling("tokenURL").as_deref(), Some("token_url"));
        assert_eq!(other_spelling("prompt"), None);
    }
}
