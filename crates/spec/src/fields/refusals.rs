//! What a decoder refuses: values, fields that are lacking, fields nobody asked for.

use super::Fields;
use crate::choice::expected_one_of;
use crate::node::{Value, same_name};
use crate::problem::Segment;
use crate::suggest::nearest;

impl Fields<'_, '_> {
    /// Refuses a field that once was, and says what took its place. Whether it was there.
    pub fn retire(&mut self, name: &'static str, message: &str) -> bool {
        self.retired.push(name);
        let written = self.was_written(name);
        if written {
            self.refuse(name, message);
        }
        written
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

    /// Refuses that `name` was not written. What was written wrongly has been refused already.
    pub fn require(&mut self, name: &'static str) {
        if !self.was_written(name) {
            self.refuse_missing(name);
        }
    }

    /// The same for an object, which may be empty: then it is refused for what it lacks.
    pub fn require_block(&mut self, name: &'static str) {
        if !self.has(name) {
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

    pub(super) fn finish(&mut self) {
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
