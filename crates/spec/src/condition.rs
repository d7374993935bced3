//! When an edge is taken, or a sample passes: what an output must and must not say.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

use crate::fields::Fields;

/// All that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Condition {
    /// The output contains this, in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_contains: Option<String>,
    /// The output does not contain this, in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_not_contains: Option<String>,
    /// The output matches this regular expression, without look-around or back-references.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_matches: Option<String>,
    /// A place in an output that is JSON, such as `$.review.score`; one of the comparisons says what must stand there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_json_path: Option<String>,
    /// What stands there is this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<Json>,
    /// What stands there is something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_equals: Option<Json>,
    /// What stands there contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// What stands there is a number above this.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number_as_text")]
    #[schemars(schema_with = "crate::schema::loose_number")]
    pub greater_than: Option<String>,
    /// What stands there is a number below this.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number_as_text")]
    #[schemars(schema_with = "crate::schema::loose_number")]
    pub less_than: Option<String>,
    /// Taken where no other condition of the agent holds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
}

/// Numbers are kept as they were written: clients of Orloj read text there. What was kept before is a number.
fn number_as_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Kept {
        Text(String),
        Number(serde_json::Number),
    }
    Ok(Option::<Kept>::deserialize(from)?.map(|kept| match kept {
        Kept::Text(text) => text,
        Kept::Number(number) => number.to_string(),
    }))
}

const MAX_PATTERN: usize = 512;

const COMPARISONS: [&str; 5] = ["equals", "not_equals", "contains", "greater_than", "less_than"];
const OTHERS: [&str; 4] = ["output_contains", "output_not_contains", "output_matches", "output_json_path"];

pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Condition {
    let condition = Condition {
        output_contains: fields.optional("output_contains"),
        output_not_contains: fields.optional("output_not_contains"),
        output_matches: fields.checked("output_matches", check_pattern),
        output_json_path: fields.checked("output_json_path", check_path),
        equals: fields.plain("equals"),
        not_equals: fields.plain("not_equals"),
        contains: fields.letters("contains"),
        greater_than: fields.number_as_written("greater_than"),
        less_than: fields.number_as_written("less_than"),
        default: fields.flag("default").unwrap_or(false),
    };
    check_together(fields, condition.default);
    condition
}

fn check_together(fields: &mut Fields<'_, '_>, is_default: bool) {
    let is_set =
        |name: &&'static str| fields.was_written(name) || (COMPARISONS.contains(name) && fields.has(name));
    let written: Vec<&'static str> = OTHERS.into_iter().chain(COMPARISONS).filter(is_set).collect();
    if is_default && let Some(other) = written.first() {
        fields.refuse("default", format!("given beside {other}: the default is taken where nothing else is"));
        return;
    }
    if !is_default && written.is_empty() && !fields.is_troubled("default") {
        let names: Vec<&'static str> = OTHERS.into_iter().chain(COMPARISONS).chain(["default"]).collect();
        fields.refuse_absent(&names, "required field is missing: a condition says what it depends on");
        return;
    }
    let comparison = COMPARISONS.into_iter().find(|name| fields.has(name));
    match (fields.was_written("output_json_path"), comparison) {
        (true, None) => {
            fields.refuse("output_json_path", format!("expected one of {} beside it", COMPARISONS.join(", ")))
        }
        (false, Some(comparison)) => {
            fields.refuse(comparison, "needs output_json_path to say what is compared");
        }
        _ => {}
    }
}

fn check_pattern(pattern: &str) -> Result<(), String> {
    if pattern.chars().count() > MAX_PATTERN {
        return Err(format!("expected a regular expression of at most {MAX_PATTERN} characters"));
    }
    match regex_syntax::parse(pattern) {
        Ok(_) => Ok(()),
        Err(error) => {
            let why = match error {
                regex_syntax::Error::Parse(error) => error.kind().to_string(),
                regex_syntax::Error::Translate(error) => error.kind().to_string(),
                _ => "it can't be read".to_owned(),
            };
            Err(format!("expected a regular expression, found {pattern:?}: {why}"))
        }
    }
}

fn check_path(path: &str) -> Result<(), String> {
    let is_step = |step: &str| !step.is_empty() && !step.contains(['[', ']', '*', '$', '?', ' ']);
    match path.strip_prefix("$.") {
        Some(steps) if steps.split('.').all(is_step) => Ok(()),
        _ => Err(format!("expected a path of names such as \"$.review.score\", found {path:?}")),
    }
}
