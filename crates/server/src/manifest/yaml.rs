//! YAML as plain values, for a task that has no name yet: a manifest's own reader asks for one. What is text
//! in a manifest stays as it was written, where plain values would make `true` of `yes` and `1.1` of `1.10`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

pub fn read(text: &str) -> Result<Value, serde_saphyr::Error> {
    let mut document: Value = serde_saphyr::from_str(text)?;
    // If these are not what they should be, the manifest's reader will say so.
    let Texts { metadata, spec } = serde_saphyr::from_str(text).unwrap_or_default();
    let maps = [
        ("/metadata/labels", metadata.labels),
        ("/metadata/annotations", metadata.annotations),
        ("/spec/input", spec.input),
    ];
    for (pointer, map) in maps {
        if let (Some(Value::Object(values)), Some(texts)) = (document.pointer_mut(pointer), map) {
            let texts = texts.into_iter().filter_map(|(key, text)| Some((key, Value::String(text?))));
            values.extend(texts);
        }
    }
    Ok(document)
}

type Map = Option<BTreeMap<String, Option<String>>>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Texts {
    metadata: MetadataTexts,
    spec: SpecTexts,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MetadataTexts {
    labels: Map,
    annotations: Map,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SpecTexts {
    input: Map,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_stays_as_it_was_written() {
        let text =
            "kind: Task\nspec:\n  agent: a\n  input: {a: 1.10, b: yes, c: 010, d: x, e: 'true', f: ~}\n";
        let expected = json!({"a": "1.10", "b": "yes", "c": "010", "d": "x", "e": "true", "f": null});
        assert_eq!(read(text).unwrap()["spec"]["input"], expected);
        for text in ["spec: {input: [1]}", "spec: 5", "metadata: {labels: {a: {b: c}}}", "[]", "x"] {
            assert!(read(text).is_ok(), "{text}");
        }
    }
}
