//! The page of kinds, from their JSON schemas.

use ostler_spec::{Kind, KindInfo, Later, kinds, later, schema};
use serde_json::Value;

use super::markdown::{Table, code, sentence};

const INTRODUCTION: &str = "\
# Kinds

A manifest is YAML (many documents in a file, with `---` between them) or JSON. Each document is one resource:

```yaml
apiVersion: ostler.dev/v1   # or orloj.dev/v1; may be left out
kind: Agent
metadata:
  name: hello
spec:
  model_ref: mock
```

Fields are written as here or in the other spelling (`max_steps`, `maxSteps`). What is unknown, misspelt or of the wrong type is
refused with file, line and column, all mistakes at once. What a kind can say and this version can't do is kept, told by `apply` and
in the resource's `status`, and refused when it is used (`not_available`). The same as JSON schemas, for editors: `schema/`; they don't know what goes together, and
are stricter where the reader knows what was meant (words in another case, `null`, a number below the least for its default).

A *reference* is `name` or `namespace/name`, a *secret reference* `[namespace/]name[:key]`, a *duration* is written as `30s`, `1m30s` or
`250ms`. `*` stands for a name that you choose, `[]` for each item of a list.

## metadata

Every kind has the same.
";

pub fn page() -> String {
    let mut text = INTRODUCTION.to_owned();
    let any = schema::of(Kind::Agent);
    text.push_str(&format!("\n{}", Fields::of(&any, &any["properties"]["metadata"])));
    text.push_str("\n## All of them\n\nIn the order in which a set of them is applied.\n\n");
    let mut all = Table::new(["Kind", "What it is", "Route", "Other words on the command line"]);
    for info in kinds() {
        let words: Vec<String> = info.short_names.iter().map(|word| code(word)).collect();
        all.row([
            format!("[{}](#{})", info.name, info.name.to_lowercase()),
            info.summary.to_owned(),
            code(&format!("/v1/{}", info.plural)),
            words.join(", "),
        ]);
    }
    text.push_str(&all.text());
    for info in kinds() {
        text.push_str(&kind(info));
    }
    text
}

fn kind(info: &KindInfo) -> String {
    let schema = schema::of(info.kind);
    let mut text = format!("\n## {}\n\n{}\n", info.name, info.summary);
    if let Some(missing) = missing(later(info.kind)) {
        text.push_str(&format!("\n{missing}\n"));
    }
    text.push_str(&format!("\n{}", Fields::of(&schema, &schema["properties"]["spec"])));
    text
}

/// What this version can't do of it, in a paragraph.
fn missing(parts: &[Later]) -> Option<String> {
    let told: Vec<String> = parts
        .iter()
        .map(|part| match (part.path, part.what) {
            ("kind", "") => "all of it".to_owned(),
            ("kind", what) => format!("all of it: {what}"),
            (path, "") => code(path.trim_start_matches("spec.")),
            (path, what) => format!("{} {what}", code(path.trim_start_matches("spec."))),
        })
        .collect();
    (!told.is_empty()).then(|| format!("**Not available in this version:** {}.", told.join("; ")))
}

/// The fields below one place of a schema, as rows.
struct Fields<'s> {
    root: &'s Value,
    table: Table,
}

impl<'s> Fields<'s> {
    fn of(root: &'s Value, schema: &'s Value) -> String {
        let mut fields = Self { root, table: Table::new(["Field", "Type", "Default", "What it says"]) };
        fields.object(fields.resolved(schema).0, "");
        fields.table.text()
    }

    fn object(&mut self, schema: &'s Value, path: &str) {
        let required = schema::required(schema);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if is_second_spelling(property) {
                continue;
            }
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let default = match required.contains(&name.as_str()) {
                true => "required".to_owned(),
                false => shown_default(&property["default"]),
            };
            let (schema, kind) = self.resolved(property);
            let about = [property, schema]
                .iter()
                .find_map(|schema| schema["description"].as_str())
                .unwrap_or_default();
            self.table.row([code(&path), self.type_of(property), default, sentence(about)]);
            if kind.is_none() {
                self.below(schema, &path);
            }
        }
    }

    /// What lies inside a list, a map or an object.
    fn below(&mut self, schema: &'s Value, path: &str) {
        let inside =
            [(&schema["items"], format!("{path}[]")), (&schema["additionalProperties"], format!("{path}.*"))];
        for (inner, path) in inside {
            if inner.is_object() {
                let (inner, kind) = self.resolved(inner);
                if kind.is_none() {
                    self.below(inner, &path);
                }
            }
        }
        self.object(schema, path);
    }

    /// What a reference leads to, without what merely allows null; and the kind whose spec it is, if it is one.
    fn resolved(&self, schema: &'s Value) -> (&'s Value, Option<&'static KindInfo>) {
        if let Some(choices) = schema["anyOf"].as_array() {
            let choice = choices.iter().find(|choice| choice["type"] != "null");
            return choice.map_or((schema, None), |choice| self.resolved(choice));
        }
        let Some(name) = definition(schema) else { return (schema, None) };
        let is_top = self.root["properties"]["spec"]["$ref"] == schema["$ref"];
        let kind = kinds().find(|info| !is_top && name.strip_suffix("Spec") == Some(info.name));
        (&self.root["$defs"][name], kind)
    }

    fn type_of(&self, property: &'s Value) -> String {
        let (schema, kind) = self.resolved(property);
        if let Some(info) = kind {
            return format!("the spec of a [{}](#{})", info.name, info.name.to_lowercase());
        }
        let reference =
            property["anyOf"].as_array().into_iter().flatten().chain([property]).find_map(definition);
        match reference {
            Some("Reference") => return "reference".to_owned(),
            Some("SecretRef") => return "secret reference".to_owned(),
            Some("Duration") => return "duration".to_owned(),
            Some("Cron") => return "cron".to_owned(),
            _ => {}
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.iter().filter_map(Value::as_str).map(code).collect::<Vec<_>>().join(", ");
        }
        if schema["items"].is_object() {
            return format!("list of {}", self.type_of(&schema["items"]));
        }
        if schema["additionalProperties"].is_object() {
            return format!("map of {}", self.type_of(&schema["additionalProperties"]));
        }
        plain_type(&schema["type"]).to_owned()
    }
}

fn definition(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn is_second_spelling(property: &Value) -> bool {
    let about = property["description"].as_str().unwrap_or_default();
    about.strip_prefix("The same as ").is_some_and(|rest| rest.ends_with('.') && !rest.contains(' '))
}

/// The defaults of an object's parts stand with its parts.
fn shown_default(default: &Value) -> String {
    match default {
        Value::Null | Value::Object(_) | Value::Array(_) => String::new(),
        Value::String(text) => code(text),
        Value::Bool(_) | Value::Number(_) => code(&default.to_string()),
    }
}

fn plain_type(name: &Value) -> &'static str {
    let first = name.as_str().or_else(|| name.as_array()?.first()?.as_str());
    match first {
        Some("string") => "text",
        Some("integer") => "whole number",
        Some("number") => "number",
        Some("boolean") => "true or false",
        Some("array") => "list",
        Some("object") => "object",
        _ => "anything",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_with_type_default_and_words() {
        let page = page();
        for line in [
            "| `limits.max_steps` | whole number | `10` | Model calls in one run. |",
            "| `model_ref` | reference | required |",
            "| `graph.*.edges[].to` | reference | required | The agent it leads to. |",
            "| `task_template` | the spec of a [Task](#task) |",
            "| `priority` | `low`, `normal`, `high`, `urgent` | `normal` |",
        ] {
            assert!(page.contains(line), "no {line:?}");
        }
        assert!(!page.contains("maxSteps` |"), "a second spelling is no field of its own");
    }

    #[test]
    fn what_is_not_available_is_told() {
        assert_eq!(missing(&[]), None);
        let parts = [
            Later { path: "spec.runner", what: "other than `react`" },
            Later { path: "spec.roles", what: "" },
        ];
        let told = missing(&parts);
        assert_eq!(
            told.as_deref(),
            Some("**Not available in this version:** `runner` other than `react`; `roles`.")
        );
    }
}
