//! The JSON schema of each kind, for editors and other programs. It follows from the types; what only the
//! reader knows (what goes together, what a graph may look like) is not in it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value as Json, json};

use crate::kind::{Kind, kinds};
use crate::resource::ApiVersion;

/// The schema of one kind's manifests.
pub fn of(kind: Kind) -> Json {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let spec = (kind.info().schema)(&mut generator);
    let definitions = generator.take_definitions(true);
    let mut top = vec!["kind", "metadata"];
    top.extend(defined(&spec, &definitions).and_then(|spec| names_required(spec).next()).map(|_| "spec"));
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
        "required": top,
        "$defs": definitions,
    });
    RecursiveTransform(close).transform(&mut schema);
    let mut document = Map::new();
    document.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    if let Some(parts) = schema.as_object() {
        document.extend(parts.clone());
    }
    Json::Object(document)
}

fn defined<'d>(schema: &Schema, definitions: &'d Map<String, Json>) -> Option<&'d Json> {
    let name = schema.get("$ref")?.as_str()?.rsplit('/').next()?;
    definitions.get(name)
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

/// Neither slashes nor white space, and no dot in front.
const NAME: &str = r"^[^\s/.][^\s/]*$";

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
            "name": {"description": "Unique in its namespace and kind.", "type": "string", "pattern": NAME, "maxLength": 253},
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
pub(crate) fn loose_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "number", "null"]})
}

/// A number that may be written in quotes.
pub(crate) fn loose_number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["number", "string", "null"]})
}

/// A block, or one that says nothing: other systems write it out though it is not meant.
pub(crate) fn or_nothing<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let (block, nothing) = (generator.subschema_for::<T>(), generator.subschema_for::<Nothing>());
    json_schema!({"anyOf": [block, nothing, {"type": "null"}]})
}

/// An object whose values are blank, false, zero or empty.
struct Nothing;

impl JsonSchema for Nothing {
    fn schema_name() -> Cow<'static, str> {
        "Nothing".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let inner = generator.subschema_for::<Self>();
        let nothing = json!({"anyOf": [
            {"enum": [null, false, 0]},
            {"type": "string", "pattern": r"^\s*$"},
            {"type": "array", "maxItems": 0},
            inner,
        ]});
        json_schema!({"description": "As good as left out.", "type": "object", "additionalProperties": nothing})
    }
}

/// What an object must have, in our spelling. The other one will do for it.
pub fn required(schema: &Json) -> Vec<&str> {
    let either = schema["allOf"].as_array().into_iter().flatten().filter_map(|both| both["anyOf"].get(0));
    std::iter::once(schema).chain(either).flat_map(names_required).collect()
}

fn names_required(schema: &Json) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str)
}

/// Nothing but what is declared, in either spelling.
fn close(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let twins = match object.get_mut("properties") {
        Some(Json::Object(properties)) => add_twins(properties),
        _ => BTreeMap::new(),
    };
    if object.contains_key("properties") {
        object.insert("additionalProperties".to_owned(), json!(false));
    }
    require_either(object, &twins);
    // Values that people choose the names of are taken as they are written.
    if object.get("additionalProperties") == Some(&json!({"type": "string"})) {
        object.insert("additionalProperties".to_owned(), loose());
    }
}

/// Each property in its other spelling too. Those that have one now, with it.
fn add_twins(properties: &mut Map<String, Json>) -> BTreeMap<String, String> {
    let mut twins = BTreeMap::new();
    for name in properties.keys().cloned().collect::<Vec<_>>() {
        let Some(other) = other_spelling(&name).filter(|other| !properties.contains_key(other)) else {
            continue;
        };
        let mut property = properties[&name].clone();
        if let Some(parts) = property.as_object_mut() {
            parts.insert("description".to_owned(), json!(format!("The same as {name}.")));
        }
        properties.insert(other.clone(), property);
        twins.insert(name, other);
    }
    twins
}

/// What is required may be there in either spelling.
fn require_either(object: &mut Map<String, Json>, twins: &BTreeMap<String, String>) {
    let Some(Json::Array(required)) = object.get_mut("required") else { return };
    let other = |name: &Json| twins.get(name.as_str()?);
    let either: Vec<Json> = required
        .iter()
        .filter_map(|name| Some(json!({"anyOf": [{"required": [name]}, {"required": [other(name)?]}]})))
        .collect();
    required.retain(|name| other(name).is_none());
    if required.is_empty() {
        object.remove("required");
    }
    if !either.is_empty() {
        object.insert("allOf".to_owned(), Json::Array(either));
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
