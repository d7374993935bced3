//! Which namespaces a resource names, by the references in it. Where those are is told by the schema of its kind, so that
//! a field that is new is looked at as well.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use ostler_spec::{Kind, Resource, schema};
use serde_json::Value;

/// As types that refer to something are called in schemas.
const REFERENCES: [&str; 2] = ["#/$defs/Reference", "#/$defs/SecretRef"];

static SCHEMAS: LazyLock<BTreeMap<Kind, Value>> =
    LazyLock::new(|| Kind::ALL.iter().map(|kind| (*kind, schema::of(*kind))).collect());

pub fn namespaces(resource: &Resource) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if let Some(schema) = SCHEMAS.get(&resource.kind()) {
        let document = serde_json::to_value(resource).unwrap_or_default();
        Walk { root: schema, found: &mut found }.visit(schema, &document);
    }
    found
}

struct Walk<'a> {
    root: &'a Value,
    found: &'a mut BTreeSet<String>,
}

impl Walk<'_> {
    fn visit(&mut self, schema: &Value, value: &Value) {
        if let Some(target) = schema["$ref"].as_str() {
            if REFERENCES.contains(&target) {
                self.note(value);
            } else if let Some(definition) = target.strip_prefix('#').and_then(|path| self.root.pointer(path))
            {
                self.visit(definition, value);
            }
        }
        for choice in ["anyOf", "oneOf", "allOf"] {
            for schema in schema[choice].as_array().into_iter().flatten() {
                self.visit(schema, value);
            }
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let declared = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                    self.visit(declared, member);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.visit(&schema["items"], item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn note(&mut self, value: &Value) {
        let namespace = value.as_str().and_then(|text| text.split_once('/')).map(|(namespace, _)| namespace);
        self.found.extend(namespace.map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kind: &str, spec: Value, expected: &[&str]) {
        let document = json!({"kind": kind, "metadata": {"name": "x"}, "spec": spec});
        let resource = ostler_spec::from_json(&document).unwrap_or_else(|problems| panic!("{problems:?}"));
        assert_eq!(namespaces(&resource).into_iter().collect::<Vec<_>>(), expected, "{document}");
    }

    #[test]
    fn references_are_found_wherever_they_are() {
        let agent = json!({"model_ref": "m/a", "prompt": "see n/o", "tools": ["own", "t/b"], "memory": {"ref": "k/m"}});
        check("Agent", agent, &["k", "m", "t"]);
        let endpoint = json!({
            "provider": "openai", "base_url": "https://x.example/v1", "default_model": "a/b", "auth": {"secretRef": "s/key:value"},
        });
        check("ModelEndpoint", endpoint, &["s"]);
        check("Task", json!({"agent": "z/helper", "input": {"message": "a/b"}}), &["z"]);
        check("Agent", json!({"model_ref": "m", "prompt": "p"}), &[]);
    }

    /// Every name of a schema's reference is one that the walk knows.
    #[test]
    fn schemas_call_references_as_we_know_them() {
        for kind in Kind::ALL {
            for (name, definition) in SCHEMAS[kind]["$defs"].as_object().into_iter().flatten() {
                let refers = definition["examples"].to_string().contains("namespace/name");
                let known = REFERENCES.contains(&format!("#/$defs/{name}").as_str());
                assert_eq!(refers, known, "{name} of {kind}");
            }
        }
    }
}
