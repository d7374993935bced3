//! Reads the fields of an object one by one, in either spelling, and refuses those nobody asked for.
//!
//! A decoder asks for each field it knows; what was asked for is the list that an unknown name is compared
//! with. Reading never stops at a problem: the decoder gets a stand-in and goes on, and the resource is
//! thrown away at the end.

mod value;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::Value as Json;

use crate::choice::{FromText, expected_one_of};
use crate::duration::GoDuration;
use crate::node::{Entry, Mark, Node, Value, same_name};
use crate::problem::Segment;
use crate::reader::Reader;
use crate::suggest::nearest;

/// More steps, attempts or turns than this are a slip of the finger.
const MAX_COUNT: i64 = 1_000_000;

pub(crate) struct Fields<'r, 'n> {
    reader: &'r mut Reader,
    /// Where the object was named: what it lacks is reported there.
    at: Option<Mark>,
    entries: &'n [Entry],
    asked: Vec<&'static str>,
    /// Names that were refused already, with a message of their own.
    retired: Vec<&'static str>,
}

/// Reads `node` as an object. `at` is where it was named.
pub(crate) fn object<T>(
    reader: &mut Reader,
    node: &Node,
    at: Option<Mark>,
    read: impl FnOnce(&mut Fields<'_, '_>) -> T,
) -> T {
    match &node.value {
        Value::Map(entries) => entries_of(reader, entries, at, read),
        Value::Null => entries_of(reader, &[], at, read),
        Value::Bool(_) | Value::Number { .. } | Value::String(_) | Value::List(_) => {
            reader.report(node.at, format!("expected an object, found {}", node.describe()));
            reader.quietly(|reader| entries_of(reader, &[], at, read))
        }
    }
}

fn entries_of<T>(
    reader: &mut Reader,
    entries: &[Entry],
    at: Option<Mark>,
    read: impl FnOnce(&mut Fields<'_, '_>) -> T,
) -> T {
    let mut fields = Fields { reader, at, entries, asked: Vec::new(), retired: Vec::new() };
    let result = read(&mut fields);
    fields.refuse_unknown();
    result
}

impl<'n> Fields<'_, 'n> {
    /// An object that may be left out, with everything in it at its default then.
    pub fn child<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Fields<'_, '_>) -> T) -> T {
        let at = self.at;
        match self.take(name) {
            Some(entry) => self.within(entry, |reader| object(reader, &entry.value, entry.at, read)),
            None => {
                let segment = Segment::Field(name.to_owned());
                self.reader.within(segment, |reader| entries_of(reader, &[], at, read))
            }
        }
    }

    /// An object that is only there when it was written.
    pub fn optional_child<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields<'_, '_>) -> T,
    ) -> Option<T> {
        let entry = self.take(name)?;
        Some(self.within(entry, |reader| object(reader, &entry.value, entry.at, read)))
    }

    /// A typed word. Absent, null and blank are all the same: not set.
    pub fn optional<T: FromText>(&mut self, name: &'static str) -> Option<T> {
        let entry = self.take(name)?;
        if matches!(&entry.value.value, Value::String(text) if text.trim().is_empty()) {
            return None;
        }
        self.within(entry, |reader| value::word(reader, &entry.value))
    }

    pub fn required<T: FromText + Default>(&mut self, name: &'static str) -> T {
        let before = self.reader.count();
        if let Some(value) = self.optional(name) {
            return value;
        }
        if self.reader.count() == before {
            self.refuse_missing(name);
        }
        T::default()
    }

    /// A string kept to the letter; empty when not set.
    pub fn verbatim(&mut self, name: &'static str) -> String {
        let Some(entry) = self.take(name) else { return String::new() };
        match &entry.value.value {
            Value::String(text) => text.clone(),
            _ => self.within(entry, |reader| value::word(reader, &entry.value)).unwrap_or_default(),
        }
    }

    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        let entry = self.take(name)?;
        self.within(entry, |reader| value::flag(reader, &entry.value))
    }

    pub fn integer(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let entry = self.take(name)?;
        self.within(entry, |reader| value::integer(reader, &entry.value, range))
    }

    /// How many of something, at least `least`.
    pub fn count(&mut self, name: &'static str, least: i64) -> Option<u32> {
        self.integer(name, least..=MAX_COUNT).and_then(|number| u32::try_from(number).ok())
    }

    /// The same where everything below one means the default.
    pub fn count_or_default(&mut self, name: &'static str) -> Option<u32> {
        self.count(name, i64::MIN).filter(|number| *number > 0)
    }

    pub fn positive_duration(&mut self, name: &'static str) -> Option<GoDuration> {
        let duration: GoDuration = self.optional(name)?;
        if duration.is_zero() {
            self.refuse(name, "expected a duration longer than zero");
        }
        Some(duration)
    }

    /// A list of typed words.
    pub fn words<T: FromText>(&mut self, name: &'static str) -> Vec<T> {
        let Some(entry) = self.take(name) else { return Vec::new() };
        self.within(entry, |reader| value::list(reader, &entry.value))
    }

    /// The same without repeats, the first kept.
    pub fn distinct<T: FromText + PartialEq>(&mut self, name: &'static str) -> Vec<T> {
        let mut distinct = Vec::new();
        for value in self.words(name) {
            if !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        distinct
    }

    /// A map of strings; numbers and booleans are taken as they were written.
    pub fn strings(&mut self, name: &'static str) -> BTreeMap<String, String> {
        let Some(entry) = self.take(name) else { return BTreeMap::new() };
        self.within(entry, |reader| value::string_map(reader, &entry.value))
    }

    /// An object kept as it came.
    pub fn json_object(&mut self, name: &'static str) -> Option<Json> {
        let entry = self.take(name)?;
        if let Value::Map(_) = entry.value.value {
            return Some(entry.value.to_json());
        }
        let message = format!("expected an object, found {}", entry.value.describe());
        self.within(entry, |reader| reader.report(entry.value.at, message));
        None
    }

    /// Numbers under the given names.
    pub fn numbers(
        &mut self,
        name: &'static str,
        known: &[&'static str],
    ) -> BTreeMap<String, serde_json::Number> {
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

    fn number(&mut self, name: &'static str) -> Option<serde_json::Number> {
        let entry = self.take(name)?;
        if let Value::Number { number, .. } = &entry.value.value {
            return Some(number.clone());
        }
        let message = format!("expected a number, found {}", entry.value.describe());
        self.within(entry, |reader| reader.report(entry.value.at, message));
        None
    }

    /// A typed word from text this crate has its own check for.
    pub fn checked(
        &mut self,
        name: &'static str,
        check: impl FnOnce(&str) -> Result<(), String>,
    ) -> Option<String> {
        let text: String = self.optional(name)?;
        if let Err(message) = check(&text) {
            self.refuse(name, message);
        }
        Some(text)
    }

    pub fn required_checked(
        &mut self,
        name: &'static str,
        check: impl FnOnce(&str) -> Result<(), String>,
    ) -> String {
        let text: String = self.required(name);
        if let Err(message) = check(&text)
            && !text.is_empty()
        {
            self.refuse(name, message);
        }
        text
    }

    /// Refuses a field that once was, and says what took its place. Whether it was there.
    pub fn retire(&mut self, name: &'static str, message: &str) -> bool {
        self.retired.push(name);
        let written = self.was_written(name);
        if written {
            self.refuse(name, message);
        }
        written
    }

    /// The entry under `name` as the parser left it, for what is read in another way.
    pub fn raw(&mut self, name: &'static str) -> Option<&'n Entry> {
        self.take(name)
    }

    /// Whether `name` was given a value, be it a wrong one.
    pub fn was_written(&self, name: &str) -> bool {
        let blank = |node: &Node| match &node.value {
            Value::Null => true,
            Value::String(text) => text.trim().is_empty(),
            Value::Bool(_) | Value::Number { .. } | Value::List(_) | Value::Map(_) => false,
        };
        self.entries.iter().any(|entry| same_name(&entry.key, name) && !blank(&entry.value))
    }

    /// Reports a problem at the value of `name`, or at this object when it was not written.
    pub fn refuse(&mut self, name: &'static str, message: impl Into<String>) {
        let entry = self.entries.iter().find(|entry| same_name(&entry.key, name));
        let at = match entry {
            Some(entry) if !entry.value.is_null() => entry.value.at,
            Some(entry) => entry.at,
            None => self.at,
        };
        let written = entry.map_or(name, |entry| entry.key.as_str());
        self.reader.within(Segment::Field(written.to_owned()), |reader| reader.report(at, message));
    }

    pub fn refuse_missing(&mut self, name: &'static str) {
        self.refuse(name, "required field is missing");
    }

    pub fn reader(&mut self) -> &mut Reader {
        self.reader
    }

    fn within<T>(&mut self, entry: &Entry, read: impl FnOnce(&mut Reader) -> T) -> T {
        self.reader.within(Segment::Field(entry.key.clone()), read)
    }

    /// Looks a field up in either spelling. A null counts as absent.
    fn take(&mut self, name: &'static str) -> Option<&'n Entry> {
        self.asked.push(name);
        let mut found = self.entries.iter().filter(|entry| same_name(&entry.key, name));
        let first = found.next()?;
        if let Some(second) = found.next() {
            let message = format!("given twice, also as \"{}\"{}", first.key, on_line(first.at));
            self.within(second, |reader| reader.report(second.at, message));
        }
        (!first.value.is_null()).then_some(first)
    }

    fn refuse_unknown(&mut self) {
        for entry in self.entries {
            if self.reader.is_full() {
                return;
            }
            if self.asked.iter().chain(&self.retired).any(|name| same_name(&entry.key, name)) {
                continue;
            }
            let suggestion = nearest(&entry.key, self.asked.iter().copied()).map(str::to_owned);
            let message = match suggestion {
                Some(_) => "unknown field".to_owned(),
                None => format!("unknown field, {}", expected_one_of(&self.asked)),
            };
            self.reader.within(Segment::Field(entry.key.clone()), |reader| {
                reader.report_with(entry.at, message, suggestion);
            });
        }
    }
}

fn on_line(at: Option<Mark>) -> String {
    at.map(|mark| format!(" on line {}", mark.line)).unwrap_or_default()
}
