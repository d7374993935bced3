//! A stored object as the document a person would write: without what the server counts and finds out.

use serde_json::{Map, Value};

/// What was declared of it, as YAML.
pub fn declared(object: &Value) -> String {
    yaml(&trimmed(object, &["name", "namespace", "labels", "annotations"]))
}

/// The same with its version, so that whoever sends it back changes nothing they have not seen.
pub fn with_version(object: &Value) -> String {
    yaml(&trimmed(object, &["name", "namespace", "labels", "annotations", "resourceVersion"]))
}

fn trimmed(object: &Value, kept: &[&str]) -> Value {
    let mut document = Map::new();
    for field in ["apiVersion", "kind"] {
        document.extend(object.get(field).map(|value| (field.to_owned(), value.clone())));
    }
    let metadata = object.get("metadata").and_then(Value::as_object);
    let metadata: Map<String, Value> =
        kept.iter().filter_map(|field| Some(((*field).to_owned(), metadata?.get(*field)?.clone()))).collect();
    document.insert("metadata".to_owned(), Value::Object(metadata));
    document.extend(object.get("spec").map(|spec| ("spec".to_owned(), spec.clone())));
    Value::Object(document)
}

/// What was read as JSON can be written as YAML.
fn yaml(document: &Value) -> String {
    serde_saphyr::to_string(document).unwrap_or_else(|_| document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_people_write_is_kept() {
        let stored = json!({
            "apiVersion": "ostler.dev/v1", "kind": "Agent",
            "metadata": {"uid": "u", "name": "a", "namespace": "default", "resourceVersion": "7", "generation": 2},
            "spec": {"model_ref": "m", "prompt": "one\ntwo\n"}, "status": {"phase": "Ready"},
        });
        let text = declared(&stored);
        assert!(text.starts_with("apiVersion: ostler.dev/v1\nkind: Agent\nmetadata:\n  name: a\n"), "{text}");
        assert!(
            !text.contains("status") && !text.contains("uid") && !text.contains("resourceVersion"),
            "{text}"
        );
        let text = with_version(&stored);
        assert!(text.contains("resourceVersion"), "{text}");
        assert_eq!(
            ostler_spec::parse("x", &text).unwrap()[0].metadata.resource_version.as_deref(),
            Some("7")
        );
    }
}
