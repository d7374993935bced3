//! Reads the fields of an object one by one, in either spelling, and refuses those nobody asked for.
//!
//! A decoder asks for each field it knows; what was asked for is the list that an unknown name is compared
//! with. Reading never stops at a problem: the decoder gets a stand-in and goes on, and the resource is
//! thrown away at the end.

mod many;
mod numbers;
mod refusals;
mod value;
mod words;

use crate::node::{Entry, Mark, Node, Value, same_name};
use crate::problem::Segment;
use crate::reader::Reader;
use crate::suggest::nearest;

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

    /// Whether `name` was given a value that was refused: what depends on it can't be judged.
    pub fn is_troubled(&self, name: &str) -> bool {
        self.troubled.contains(&name)
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
}

fn is_slip(written: &str, name: &str) -> bool {
    !same_name(written, name) && nearest(written, [name]).is_some()
}

fn on_line(at: Option<Mark>) -> String {
    at.map(|mark| format!(" on line {}", mark.line)).unwrap_or_default()
}
