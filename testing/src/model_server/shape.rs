//! Shapes: what a vendor takes, written down as data. One reader holds a request against them, so that every
//! wire refuses missing and unknown fields, wrong types and unknown words in the same careful way.

use serde_json::{Map, Value};

use super::rules::{Findings, Rule};

/// What a value may be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// Whatever it is.
    Any,
    Text,
    Flag,
    /// A number within these bounds.
    Number(f64, f64),
    /// A whole number within these bounds.
    Integer(i64, i64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// An object of anything.
    Object,
    /// An object with these fields and no others.
    Fields(&'static [Field]),
    /// An object whose fields depend on the word in one of them.
    Tagged(&'static str, &'static [(&'static str, &'static [Field])]),
    List(&'static Shape),
    /// A text, or else this.
    TextOr(&'static Shape),
}

/// A field of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    name: &'static str,
    shape: Shape,
    required: bool,
}

/// A field that must be there.
pub(super) const fn required(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: true }
}

/// A field that may be missing, or null.
pub(super) const fn optional(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false }
}

/// The path of a field below another one.
pub(super) fn below(path: &str, name: impl std::fmt::Display) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
}

impl Shape {
    /// Holds a value against the shape.
    pub fn check(&self, value: &Value, path: &str, findings: &mut Findings) {
        let mut want = |kept: bool, wanted: &str| {
            findings.require(kept, Rule::Shape, path, format_args!("Input should be {wanted}"));
        };
        match self {
            Shape::Any => {}
            Shape::Text => want(value.is_string(), "a valid string"),
            Shape::Flag => want(value.is_boolean(), "a valid boolean"),
            Shape::Object => want(value.is_object(), "a valid dictionary"),
            Shape::Number(least, most) => check_number(value, *least, *most, path, findings),
            Shape::Integer(least, most) => check_integer(value, *least, *most, path, findings),
            Shape::Word(words) => {
                let known = value.as_str().is_some_and(|word| words.contains(&word));
                findings.require(known, Rule::Shape, path, format_args!("Input should be one of {words:?}"));
            }
            Shape::Fields(fields) => match value.as_object() {
                Some(object) => check_fields(object, fields, None, path, findings),
                None => want(false, "a valid dictionary"),
            },
            Shape::Tagged(tag, kinds) => check_tagged(value, tag, kinds, path, findings),
            Shape::List(each) => match value.as_array() {
                Some(items) => {
                    for (index, item) in items.iter().enumerate() {
                        each.check(item, &below(path, index), findings);
                    }
                }
                None => want(false, "a valid list"),
            },
            Shape::TextOr(other) => {
                if !value.is_string() {
                    other.check(value, path, findings);
                }
            }
        }
    }
}

fn check_number(value: &Value, least: f64, most: f64, path: &str, findings: &mut Findings) {
    match value.as_f64() {
        None => findings.add(Rule::Shape, path, "Input should be a valid number"),
        Some(number) => {
            let message = format_args!("must be between {least} and {most}");
            findings.require((least..=most).contains(&number), Rule::Range, path, message);
        }
    }
}

fn check_integer(value: &Value, least: i64, most: i64, path: &str, findings: &mut Findings) {
    match value.as_i64() {
        None => findings.add(Rule::Shape, path, "Input should be a valid integer"),
        Some(number) => {
            let message = format_args!("must be between {least} and {most}");
            findings.require((least..=most).contains(&number), Rule::Range, path, message);
        }
    }
}

fn check_tagged(
    value: &Value,
    tag: &'static str,
    kinds: &[(&'static str, &'static [Field])],
    path: &str,
    findings: &mut Findings,
) {
    let Some(object) = value.as_object() else {
        return findings.add(Rule::Shape, path, "Input should be a valid dictionary");
    };
    let Some(word) = object.get(tag).and_then(Value::as_str) else {
        return findings.add(Rule::Shape, below(path, tag), "Field required");
    };
    match kinds.iter().find(|kind| kind.0 == word) {
        Some((_, fields)) => check_fields(object, fields, Some(tag), path, findings),
        None => {
            let known: Vec<_> = kinds.iter().map(|kind| kind.0).collect();
            let message =
                format_args!("Input tag '{word}' does not match any of the expected tags: {known:?}");
            findings.add(Rule::Shape, path, message);
        }
    }
}

fn check_fields(
    object: &Map<String, Value>,
    fields: &[Field],
    tag: Option<&str>,
    path: &str,
    findings: &mut Findings,
) {
    for field in fields {
        match object.get(field.name) {
            None if field.required => findings.add(Rule::Shape, below(path, field.name), "Field required"),
            None => {}
            Some(Value::Null) if !field.required => {}
            Some(value) => field.shape.check(value, &below(path, field.name), findings),
        }
    }
    for name in object.keys() {
        let known = fields.iter().any(|field| field.name == name) || Some(&**name) == tag;
        findings.require(known, Rule::Shape, below(path, name), "Extra inputs are not permitted");
    }
}
