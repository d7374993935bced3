//! A document as a tree that remembers where each key and value stood, whatever it was written in.

mod hint;
pub(crate) mod json;
pub(crate) mod yaml;

use serde_json::{Number, Value as Json};

use crate::problem::{Path, Segment};
use crate::reader::Reader;

/// A place in the text, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub line: u32,
    pub column: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub at: Option<Mark>,
    pub value: Value,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// The text as written beside the number: a version `1.10` is not `1.1` to someone who meant a string.
    Number {
        number: Number,
        text: String,
    },
    String(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub key: String,
    pub at: Option<Mark>,
    pub value: Node,
}

/// Why a document could not be turned into a tree at all.
#[derive(Debug)]
pub(crate) struct Stop {
    pub at: Option<Mark>,
    pub message: String,
}

/// Documents nested deeper than this are refused.
pub const MAX_DEPTH: usize = 64;

/// What a text may cost in memory once aliases are expanded: its characters, and this much for each value.
const MAX_COST: usize = 32 << 20;
const NODE_COST: usize = 64;

/// Counts what a text has cost so far.
#[derive(Default)]
pub(crate) struct Budget(usize);

impl Budget {
    pub fn spend(&mut self, at: Option<Mark>, characters: usize) -> Result<(), Stop> {
        self.0 = self.0.saturating_add(characters + NODE_COST);
        if self.is_spent() {
            Err(Stop { at, message: "too large: too many values".to_owned() })
        } else {
            Ok(())
        }
    }

    pub fn is_spent(&self) -> bool {
        self.0 > MAX_COST
    }

    /// A copy of a whole tree, as an alias makes it.
    pub fn spend_copy(&mut self, at: Option<Mark>, node: &Node) -> Result<(), Stop> {
        self.spend(at, 0)?;
        match &node.value {
            Value::Null | Value::Bool(_) => Ok(()),
            Value::Number { text, .. } | Value::String(text) => self.spend(at, text.len()),
            Value::List(items) => items.iter().try_for_each(|item| self.spend_copy(at, item)),
            Value::Map(entries) => entries.iter().try_for_each(|entry| {
                self.spend(at, entry.key.len())?;
                self.spend_copy(at, &entry.value)
            }),
        }
    }
}

pub(crate) fn too_deep(at: Option<Mark>) -> Stop {
    Stop { at, message: format!("nested too deeply: more than {MAX_DEPTH} levels") }
}

impl Node {
    /// A tree without places, from a value that a program sent.
    pub fn from_json(json: &Json) -> Result<Self, Stop> {
        Self::from_json_at(json, 0)
    }

    fn from_json_at(json: &Json, depth: usize) -> Result<Self, Stop> {
        if depth > MAX_DEPTH {
            return Err(too_deep(None));
        }
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(*flag),
            Json::Number(number) => Value::Number { number: number.clone(), text: number.to_string() },
            Json::String(text) => Value::String(text.clone()),
            Json::Array(items) => Value::List(
                items.iter().map(|item| Self::from_json_at(item, depth + 1)).collect::<Result<_, _>>()?,
            ),
            Json::Object(members) => Value::Map(
                members
                    .iter()
                    .map(|(key, member)| {
                        let value = Self::from_json_at(member, depth + 1)?;
                        Ok(Entry { key: key.clone(), at: None, value })
                    })
                    .collect::<Result<_, Stop>>()?,
            ),
        };
        Ok(Self { at: None, value })
    }

    /// The plain value, for what is stored as it came.
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(*flag),
            Value::Number { number, .. } => Json::Number(number.clone()),
            Value::String(text) => Json::String(text.clone()),
            Value::List(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Value::Map(entries) => {
                Json::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect())
            }
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// Whether nothing was written here, or nothing inside of it.
    pub fn is_blank(&self) -> bool {
        match &self.value {
            Value::Null => true,
            Value::String(text) => text.trim().is_empty(),
            Value::List(items) => items.is_empty(),
            Value::Map(entries) => entries.is_empty(),
            Value::Bool(_) | Value::Number { .. } => false,
        }
    }

    /// The same where a false, a zero and an object of such values are no more than that.
    pub fn says_nothing(&self) -> bool {
        match &self.value {
            Value::Bool(flag) => !flag,
            Value::Number { number, .. } => number.as_f64() == Some(0.0),
            Value::Map(entries) => entries.iter().all(|entry| entry.value.says_nothing()),
            Value::Null | Value::String(_) | Value::List(_) => self.is_blank(),
        }
    }

    /// How many levels lie below this one.
    pub fn height(&self) -> usize {
        match &self.value {
            Value::List(items) => 1 + items.iter().map(Self::height).max().unwrap_or(0),
            Value::Map(entries) => 1 + entries.iter().map(|entry| entry.value.height()).max().unwrap_or(0),
            Value::Null | Value::Bool(_) | Value::Number { .. } | Value::String(_) => 0,
        }
    }

    /// What was found, for messages.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(flag) => format!("the boolean {flag}"),
            Value::Number { text, .. } => format!("the number {}", shortened(text)),
            Value::String(text) => format!("the string {:?}", shortened(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "an object".to_owned(),
        }
    }

    /// The same without repeating it.
    pub fn nature(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Number { .. } => "a number",
            Value::String(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "an object",
        }
    }

    /// The value at `path`, if it was written.
    pub fn find(&self, path: &Path) -> Option<&Node> {
        path.0.iter().try_fold(self, |node, segment| match (segment, &node.value) {
            (Segment::Field(name), Value::Map(entries)) => entry(entries, name).map(|entry| &entry.value),
            (Segment::Index(index), Value::List(items)) => items.get(*index),
            _ => None,
        })
    }

    /// Where the value at `path` stands or, if it was not written, the last key on the way to it.
    pub fn locate(&self, path: &Path) -> Option<Mark> {
        let mut node = self;
        let mut nearest = self.at;
        for segment in &path.0 {
            match (segment, &node.value) {
                (Segment::Field(name), Value::Map(entries)) => {
                    let Some(entry) = entry(entries, name) else { return nearest };
                    nearest = entry.at;
                    node = &entry.value;
                }
                (Segment::Index(index), Value::List(items)) => {
                    let Some(item) = items.get(*index) else { return nearest };
                    nearest = item.at;
                    node = item;
                }
                _ => return nearest,
            }
        }
        match node.value {
            Value::Map(_) | Value::List(_) | Value::Null => nearest,
            Value::Bool(_) | Value::Number { .. } | Value::String(_) => node.at,
        }
    }
}

/// The entry of this name, in either spelling.
fn entry<'n>(entries: &'n [Entry], name: &str) -> Option<&'n Entry> {
    let exact = entries.iter().find(|entry| entry.key == *name);
    exact.or_else(|| entries.iter().find(|entry| same_name(&entry.key, name)))
}

/// Whether two field names are one: `max_steps` and `maxSteps`, `tokenURL` and `token_url`.
pub(crate) fn same_name(left: &str, right: &str) -> bool {
    left == right || snake_case(left).eq(snake_case(right))
}

fn snake_case(name: &str) -> impl Iterator<Item = char> {
    let mut previous = None;
    name.chars().flat_map(move |character| {
        let humped = character.is_ascii_uppercase() && previous.is_some();
        let starts_word = humped && !previous.is_some_and(|before: char| before.is_ascii_uppercase());
        previous = Some(character);
        let letter = if humped { character.to_ascii_lowercase() } else { character };
        starts_word.then_some('_').into_iter().chain([letter])
    })
}

/// At most forty characters of what someone wrote.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Reports what stopped a document.
pub(crate) fn report_stop(reader: &mut Reader, stop: Stop) {
    reader.report(stop.at, stop.message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_one_name() {
        for (left, right) in [
            ("max_steps", "maxSteps"),
            ("tokenURL", "token_url"),
            ("tokenURL", "tokenUrl"),
            ("secretRef", "secret_ref"),
            ("a2a", "a2a"),
        ] {
            assert!(same_name(left, right), "{left} {right}");
        }
        for (left, right) in
            [("maxsteps", "max_steps"), ("MaxSteps", "max_steps"), ("max__steps", "max_steps")]
        {
            assert!(!same_name(left, right), "{left} {right}");
        }
    }
}
