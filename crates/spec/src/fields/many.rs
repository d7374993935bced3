//! Fields of lists and of maps.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Fields, object, value};
use crate::choice::{FromText, Verbatim};
use crate::node::{Entry, Node, Value};
use crate::problem::Segment;
use crate::reader::Reader;

impl Fields<'_, '_> {
    /// A list of typed words.
    pub fn words<T: FromText>(&mut self, name: &'static str) -> Vec<T> {
        let Some(entry) = self.take(name) else { return Vec::new() };
        self.within(entry, |reader| value::list::<T, T>(reader, &entry.value, value::word))
    }

    /// A list of strings, each kept to the letter.
    pub fn texts(&mut self, name: &'static str) -> Vec<String> {
        self.words(name).into_iter().map(|Verbatim(text)| text).collect()
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
}
