//! Reads the fields of an object one by one, in either spelling, and refuses those nobody asked for.
//!
//! A decoder asks for each field it knows; what was asked for is the list that an unknown name is compared
//! with. Reading never stops at a problem: the decoder gets a stand-in and goes on, and the resource is
//! thrown away at the end.

mod value;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::Value as Json;

use crate::choice::{FromText, Loose, Verbatim, expected_one_of};
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
    /// Names whose values were refused.
    troubled: Vec<&'static str>,
    /// What should have been there, told at the end: under a name that was misspelt it may be there after all.
    absent: Vec<(Vec<&'static str>, String)>,
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
    let mut fields = Fields::new(reader, at, entries);
    let result = read(&mut fields);
    fields.finish();
    result
}

impl<'r, 'n> Fields<'r, 'n> {
    fn new(reader: &'r mut Reader, at: Option<Mark>, entries: &'n [Entry]) -> Self {
        Self {
            reader,
            at,
            entries,
            asked: Vec::new(),
            retired: Vec::new(),
            troubled: Vec::new(),
            absent: Vec::new(),
        }
    }

    /// An object that may be left out, with everything in it at its default then.
    pub fn child<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Fields<'_, '_>) -> T) -> T {
        let at = self.at;
        match self.take(name) {
            Some(entry) => self.within(entry, |reader| object(reader, &entry.value, entry.at, read)),
            // Under a name that was misspelt it may be there after all, and that will be said.
            None if self.entries.iter().any(|entry| is_slip(&entry.key, name)) => {
                self.reader.quietly(|reader| entries_of(reader, &[], at, read))
            }
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

    /// The same where it must say something: other systems write a block out wherever it could stand.
    pub fn meant_child<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields<'_, '_>) -> T,
    ) -> Option<T> {
        let is_meant =
            self.entries.iter().any(|entry| same_name(&entry.key, name) && !entry.value.says_nothing());
        if is_meant {
            return self.optional_child(name, read);
        }
        self.take(name);
        None
    }

    /// A typed word. Absent, null and blank are all the same: not set.
    pub fn optional<T: FromText>(&mut self, name: &'static str) -> Option<T> {
        let entry = self.take(name)?;
        if matches!(&entry.value.value, Value::String(text) if text.trim().is_empty()) {
            return None;
        }
        let value = self.within(entry, |reader| value::word(reader, &entry.value));
        if value.is_none() {
            self.troubled.push(name);
        }
        value
    }

    /// Whether `name` was given a value that was refused: what depends on it can't be judged.
    pub fn is_troubled(&self, name: &str) -> bool {
        self.troubled.contains(&name)
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

    /// The same where empty is not the same as not set.
    pub fn letters(&mut self, name: &'static str) -> Option<String> {
        let is_given = self.has(name);
        let text = self.verbatim(name);
        is_given.then_some(text)
    }

    /// A list of strings, each kept to the letter.
    pub fn texts(&mut self, name: &'static str) -> Vec<String> {
        self.words(name).into_iter().map(|Verbatim(text)| text).collect()
    }

    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        let entry = self.take(name)?;
        let flag = self.within(entry, |reader| value::flag(reader, &entry.value));
        if flag.is_none() {
            self.troubled.push(name);
        }
        flag
    }

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
        self.within(entry, |reader| value::list::<T, T>(reader, &entry.value, value::word))
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

    /// The same where words that differ only in their case are one.
    pub fn distinct_words(&mut self, name: &'static str) -> Vec<String> {
        let mut distinct: Vec<String> = Vec::new();
        for word in self.words::<String>(name) {
            if !distinct.iter().any(|other| other.eq_ignore_ascii_case(&word)) {
                distinct.push(word);
            }
        }
        distinct
    }

    /// A list of objects, where one that says nothing else may be written as the word it is about.
    pub fn objects_or_words<T, W: FromText>(
        &mut self,
        name: &'static str,
        read: impl Fn(&mut Fields<'_, '_>) -> T,
        from_word: impl Fn(W) -> T,
    ) -> Vec<T> {
        let Some(entry) = self.take(name) else { return Vec::new() };
        let read_item = |reader: &mut Reader, item: &Node| match &item.value {
            Value::Map(_) => Some(object(reader, item, item.at, &read)),
            _ => value::word::<W>(reader, item).map(&from_word),
        };
        self.within(entry, |reader| value::list::<W, T>(reader, &entry.value, read_item))
    }

    /// A list of objects.
    pub fn objects<T>(&mut self, name: &'static str, read: impl Fn(&mut Fields<'_, '_>) -> T) -> Vec<T> {
        let Some(entry) = self.take(name) else { return Vec::new() };
        let Value::List(items) = &entry.value.value else {
            let message = format!("expected a list, found {}", entry.value.describe());
            self.within(entry, |reader| reader.report(entry.value.at, message));
            return Vec::new();
        };
        self.within(entry, |reader| {
            let read_item = |(index, item): (usize, &Node)| {
                reader.within(Segment::Index(index), |reader| object(reader, item, item.at, &read))
            };
            items.iter().enumerate().map(read_item).collect()
        })
    }

    /// A map of objects, by names that people choose.
    pub fn map_of<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&mut Fields<'_, '_>) -> T,
    ) -> BTreeMap<String, T> {
        let Some(entry) = self.take(name) else { return BTreeMap::new() };
        let Value::Map(entries) = &entry.value.value else {
            let message = format!("expected an object, found {}", entry.value.describe());
            self.within(entry, |reader| reader.report(entry.value.at, message));
            return BTreeMap::new();
        };
        self.within(entry, |reader| {
            let read_entry = |entry: &Entry| {
                let segment = Segment::Field(entry.key.clone());
                let value = reader.within(segment, |reader| object(reader, &entry.value, entry.at, &read));
                (entry.key.clone(), value)
            };
            entries.iter().map(read_entry).collect()
        })
    }

    /// A map of strings; numbers and booleans are taken as they were written.
    pub fn strings(&mut self, name: &'static str) -> BTreeMap<String, String> {
        let Some(entry) = self.take(name) else { return BTreeMap::new() };
        self.within(entry, |reader| value::string_map(reader, &entry.value))
    }

    /// A single value kept as it came.
    pub fn plain(&mut self, name: &'static str) -> Option<Json> {
        let entry = self.take(name)?;
        match entry.value.value {
            Value::Map(_) | Value::List(_) => {
                let message = format!("expected a single value, found {}", entry.value.describe());
                self.within(entry, |reader| reader.report(entry.value.at, message));
                None
            }
            _ => Some(entry.value.to_json()),
        }
    }

    /// Any value, kept as it came.
    pub fn anything(&mut self, name: &'static str) -> Option<Json> {
        self.take(name).map(|entry| entry.value.to_json())
    }

    /// A map of strings whose values must not be repeated in a message.
    pub fn secrets(&mut self, name: &'static str) -> BTreeMap<String, String> {
        let Some(entry) = self.take(name) else { return BTreeMap::new() };
        if let Value::Map(_) = entry.value.value {
            return self.within(entry, |reader| value::string_map(reader, &entry.value));
        }
        let message = format!("expected an object, found {}", entry.value.nature());
        self.within(entry, |reader| reader.report(entry.value.at, message));
        BTreeMap::new()
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

    pub fn number(&mut self, name: &'static str) -> Option<serde_json::Number> {
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

    fn number_at(&mut self, entry: &Entry) -> Option<serde_json::Number> {
        if let Value::Number { number, .. } = &entry.value.value {
            return Some(number.clone());
        }
        let is_quoted = matches!(&entry.value.value, Value::String(text) if number_in(text.trim()).is_some());
        let hint = if is_quoted { " (remove the quotes)" } else { "" };
        let message = format!("expected a number, found {}{hint}", entry.value.describe());
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

    /// The same where a number or a boolean is taken as it was written.
    pub fn loose_checked(
        &mut self,
        name: &'static str,
        check: impl FnOnce(&str) -> Result<(), String>,
    ) -> Option<String> {
        let Loose(text) = self.optional(name)?;
        if let Err(message) = check(&text) {
            self.refuse(name, message);
        }
        Some(text)
    }

    /// The same where the check knows what may have been meant.
    pub fn checked_near(
        &mut self,
        name: &'static str,
        check: impl FnOnce(&str) -> Result<(), (String, Option<String>)>,
    ) -> Option<String> {
        let text: String = self.optional(name)?;
        if let Err((message, suggestion)) = check(&text) {
            self.refuse_with(name, message, suggestion);
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

    /// Whether `name` was given anything but null.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| same_name(&entry.key, name) && !entry.value.is_null())
    }

    /// Whether `name` was given a value, be it a wrong one.
    pub fn was_written(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| same_name(&entry.key, name) && !entry.value.is_blank())
    }

    /// Reports a problem at the value of `name`, or at this object when it was not written.
    pub fn refuse(&mut self, name: &'static str, message: impl Into<String>) {
        self.refuse_with(name, message, None);
    }

    /// The same, with what may have been meant.
    pub fn refuse_with(
        &mut self,
        name: &'static str,
        message: impl Into<String>,
        suggestion: Option<String>,
    ) {
        let entry = self.entries.iter().find(|entry| same_name(&entry.key, name));
        let at = match entry {
            Some(entry) if !entry.value.is_null() => entry.value.at,
            Some(entry) => entry.at,
            None => self.at,
        };
        let written = entry.map_or(name, |entry| entry.key.as_str());
        self.reader.within(Segment::Field(written.to_owned()), |reader| {
            reader.report_with(at, message, suggestion);
        });
    }

    /// Reports a problem at one value of the map under `name`.
    pub fn refuse_in(&mut self, name: &'static str, key: &str, message: impl Into<String>) {
        let Some(entry) = self.entries.iter().find(|entry| same_name(&entry.key, name)) else { return };
        let Value::Map(values) = &entry.value.value else { return };
        let at = values.iter().find(|value| value.key == key).and_then(|value| value.value.at.or(value.at));
        self.reader.within(Segment::Field(entry.key.clone()), |reader| {
            reader.within(Segment::Field(key.to_owned()), |reader| reader.report(at, message));
        });
    }

    /// The same for an object, which may be empty: then it is refused for what it lacks.
    pub fn require_block(&mut self, name: &'static str) {
        if !self.has(name) {
            self.refuse_missing(name);
        }
    }

    /// Refuses that `name` was not written. What was written wrongly has been refused already.
    pub fn require(&mut self, name: &'static str) {
        if !self.was_written(name) {
            self.refuse_missing(name);
        }
    }

    pub fn refuse_missing(&mut self, name: &'static str) {
        self.refuse_absent(&[name], "required field is missing");
    }

    /// The same in words of its own, where one of several should have been there.
    pub fn refuse_absent(&mut self, names: &[&'static str], message: impl Into<String>) {
        self.absent.push((names.to_vec(), message.into()));
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

    fn finish(&mut self) {
        self.refuse_unknown();
        for (names, message) in std::mem::take(&mut self.absent) {
            if let Some(name) = names.first() {
                self.refuse(name, message);
            }
        }
    }

    fn refuse_unknown(&mut self) {
        for entry in self.entries {
            if self.reader.is_full() {
                return;
            }
            if self.asked.iter().chain(&self.retired).any(|name| same_name(&entry.key, name)) {
                continue;
            }
            let near = nearest(&entry.key, self.asked.iter().copied());
            // One mistake, one message.
            self.absent.retain(|(names, _)| !near.is_some_and(|near| names.contains(&near)));
            let message = match near {
                Some(_) => "unknown field".to_owned(),
                None => format!("unknown field, {}", expected_one_of(&self.asked)),
            };
            self.reader.within(Segment::Field(entry.key.clone()), |reader| {
                reader.report_with(entry.at, message, near.map(str::to_owned));
            });
        }
    }
}

fn number_in(text: &str) -> Option<serde_json::Number> {
    let fraction = || serde_json::Number::from_f64(text.parse().ok()?);
    text.parse().ok().or_else(fraction)
}

fn is_slip(written: &str, name: &str) -> bool {
    !same_name(written, name) && nearest(written, [name]).is_some()
}

fn on_line(at: Option<Mark>) -> String {
    at.map(|mark| format!(" on line {}", mark.line)).unwrap_or_default()
}
