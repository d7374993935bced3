//! Reads one value of a given type, or reports what was expected and what was found.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::choice::FromText;
use crate::node::{Entry, Node, Value};
use crate::problem::Segment;
use crate::reader::Reader;

/// One typed word, wherever it stands.
pub(super) fn word<T: FromText>(reader: &mut Reader, node: &Node) -> Option<T> {
    let text = match &node.value {
        Value::String(text) | Value::Number { text, .. } => text.as_str(),
        Value::Bool(flag) => {
            if *flag {
                "true"
            } else {
                "false"
            }
        }
        Value::Null | Value::List(_) | Value::Map(_) => {
            reader.report(node.at, format!("{}, found {}", T::expected(), node.describe()));
            return None;
        }
    };
    match T::from_text(text) {
        Ok(value) if T::LOOSE || matches!(node.value, Value::String(_)) => Some(value),
        Ok(_) => {
            let message = format!("{}, found {} (put it in quotes)", T::expected(), node.describe());
            reader.report(node.at, message);
            None
        }
        Err(complaint) => {
            let message = format!("{}, found {}", complaint.expected, node.describe());
            reader.report_with(node.at, message, complaint.suggestion);
            None
        }
    }
}

pub(super) fn flag(reader: &mut Reader, node: &Node) -> Option<bool> {
    if let Value::Bool(flag) = node.value {
        return Some(flag);
    }
    let found = format!("expected true or false, found {}", node.describe());
    let text = match &node.value {
        Value::String(text) => text.to_ascii_lowercase(),
        _ => String::new(),
    };
    match text.as_str() {
        "true" | "false" => reader.report(node.at, format!("{found} (remove the quotes)")),
        "yes" | "on" | "y" => reader.report_with(node.at, found, Some("true".to_owned())),
        "no" | "off" | "n" => reader.report_with(node.at, found, Some("false".to_owned())),
        _ => reader.report(node.at, found),
    }
    None
}

pub(super) fn integer(reader: &mut Reader, node: &Node, range: RangeInclusive<i64>) -> Option<i64> {
    let (expected, hint) = match &node.value {
        Value::Number { number, .. } => match number.as_i64() {
            Some(value) if range.contains(&value) => return Some(value),
            Some(_) => (expected_within(&range), ""),
            None if number.is_u64() => (expected_within(&range), ""),
            None => ("expected a whole number".to_owned(), ""),
        },
        Value::String(text) if text.trim().parse::<i64>().is_ok() => {
            ("expected a whole number".to_owned(), " (remove the quotes)")
        }
        _ => ("expected a whole number".to_owned(), ""),
    };
    reader.report(node.at, format!("{expected}, found {}{hint}", node.describe()));
    None
}

fn expected_within(range: &RangeInclusive<i64>) -> String {
    match (*range.start(), *range.end()) {
        (i64::MIN, most) => format!("expected a whole number of at most {most}"),
        (least, i64::MAX) => format!("expected a whole number of at least {least}"),
        (least, most) => format!("expected a whole number from {least} to {most}"),
    }
}

/// A list whose items are read in one way, each of which may be a word such as `W`.
pub(super) fn list<W: FromText, T>(
    reader: &mut Reader,
    node: &Node,
    read: impl Fn(&mut Reader, &Node) -> Option<T>,
) -> Vec<T> {
    let Value::List(items) = &node.value else {
        let suggestion = match &node.value {
            Value::String(text) if W::from_text(text).is_ok() && is_item(text) => Some(format!("[{text}]")),
            _ => None,
        };
        reader.report_with(node.at, format!("expected a list, found {}", node.describe()), suggestion);
        return Vec::new();
    };
    let read_item = |(index, item)| reader.within(Segment::Index(index), |reader| read(reader, item));
    items.iter().enumerate().filter_map(read_item).collect()
}

/// Several words, or an item whose dash stuck to it, would be something else in brackets.
fn is_item(text: &str) -> bool {
    let is_dashed = text.starts_with('-') && text.len() > 2;
    !text.contains(' ') && !is_dashed
}

pub(super) fn string_map(reader: &mut Reader, node: &Node) -> BTreeMap<String, String> {
    let Value::Map(entries) = &node.value else {
        reader.report(node.at, format!("expected an object, found {}", node.describe()));
        return BTreeMap::new();
    };
    let mut strings = BTreeMap::new();
    for Entry { key, value, .. } in entries {
        let text = match &value.value {
            Value::String(text) | Value::Number { text, .. } => text.clone(),
            Value::Bool(flag) => flag.to_string(),
            Value::Null => String::new(),
            Value::List(_) | Value::Map(_) => {
                let message = format!("expected a string, found {}", value.describe());
                reader.within(Segment::Field(key.clone()), |reader| reader.report(value.at, message));
                continue;
            }
        };
        strings.insert(key.clone(), text);
    }
    strings
}
