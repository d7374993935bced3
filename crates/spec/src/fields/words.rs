//! Fields of one value: words, durations, what is kept as it came.

use serde_json::Value as Json;

use super::{Fields, value};
use crate::choice::{FromText, Loose};
use crate::duration::GoDuration;
use crate::node::Value;

impl Fields<'_, '_> {
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

    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        let entry = self.take(name)?;
        let flag = self.within(entry, |reader| value::flag(reader, &entry.value));
        if flag.is_none() {
            self.troubled.push(name);
        }
        flag
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

    pub fn positive_duration(&mut self, name: &'static str) -> Option<GoDuration> {
        let duration: GoDuration = self.optional(name)?;
        if duration.is_zero() {
            self.refuse(name, "expected a duration longer than zero");
        }
        Some(duration)
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
}
