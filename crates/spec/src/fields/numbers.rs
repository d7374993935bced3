//! Fields of numbers, whole ones mostly, within the bounds that make sense.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::Number;

use super::{Fields, value};
use crate::node::{Entry, Value};

/// More steps, attempts or turns than this are a slip of the finger.
const MAX_COUNT: i64 = 1_000_000;

impl Fields<'_, '_> {
    pub fn integer(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let entry = self.take(name)?;
        self.within(entry, |reader| value::integer(reader, &entry.value, range))
    }

    /// A number of things that can't be few.
    pub fn positive(&mut self, name: &'static str) -> Option<u64> {
        self.integer(name, 1..=i64::MAX).and_then(|number| u64::try_from(number).ok())
    }

    /// The same where everything below one means the default.
    pub fn positive_or_default(&mut self, name: &'static str) -> Option<u64> {
        let number = self.integer(name, i64::MIN..=i64::MAX).and_then(|number| u64::try_from(number).ok());
        number.filter(|number| *number > 0)
    }

    /// A small number within bounds.
    pub fn whole(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Option<u32> {
        self.integer(name, range).and_then(|number| u32::try_from(number).ok())
    }

    /// How many of something, at least `least`.
    pub fn count(&mut self, name: &'static str, least: i64) -> Option<u32> {
        self.integer(name, least..=MAX_COUNT).and_then(|number| u32::try_from(number).ok())
    }

    /// The same where everything below one means the default.
    pub fn count_or_default(&mut self, name: &'static str) -> Option<u32> {
        self.count(name, i64::MIN).filter(|number| *number > 0)
    }

    pub fn number(&mut self, name: &'static str) -> Option<Number> {
        let entry = self.take(name)?;
        self.number_at(entry)
    }

    /// The same as it was written, with quotes around it or without.
    pub fn number_as_written(&mut self, name: &'static str) -> Option<String> {
        let entry = self.take(name)?;
        let written = match &entry.value.value {
            Value::String(text) | Value::Number { text, .. } => Some(text.trim()),
            _ => None,
        };
        let written = written.filter(|text| number_in(text).is_some()).map(str::to_owned);
        written.or_else(|| self.number_at(entry).map(|number| number.to_string()))
    }

    fn number_at(&mut self, entry: &Entry) -> Option<Number> {
        if let Value::Number { number, .. } = &entry.value.value {
            return Some(number.clone());
        }
        let is_quoted = matches!(&entry.value.value, Value::String(text) if number_in(text.trim()).is_some());
        let hint = if is_quoted { " (remove the quotes)" } else { "" };
        let message = format!("expected a number, found {}{hint}", entry.value.describe());
        self.within(entry, |reader| reader.report(entry.value.at, message));
        None
    }

    /// Numbers under the given names.
    pub fn numbers(&mut self, name: &'static str, known: &[&'static str]) -> BTreeMap<String, Number> {
        self.child(name, |fields| {
            let mut numbers = BTreeMap::new();
            for key in known {
                if let Some(number) = fields.number(key) {
                    numbers.insert((*key).to_owned(), number);
                }
            }
            numbers
        })
    }
}

fn number_in(text: &str) -> Option<Number> {
    let fraction = || Number::from_f64(text.parse().ok()?);
    text.parse().ok().or_else(fraction)
}
