//! Reads JSON text into a tree with places. Serde judges the syntax; this only finds where things stand.

use serde::de::IgnoredAny;
use serde_json::Number;

use super::hint::explained;
use super::{Budget, Entry, MAX_DEPTH, Mark, Node, Stop, Value, too_deep};
use crate::problem::Segment;
use crate::reader::Reader;

/// The resources of a JSON text: one object, or a list of them. What cannot be read is reported.
pub(crate) fn documents(reader: &mut Reader, text: &str) -> Vec<Node> {
    let result = check_syntax(text).and_then(|()| Scanner::new(text, reader).document());
    match result {
        Ok(Node { value: Value::List(items), .. }) => items,
        Ok(node) => vec![node],
        Err(stop) => {
            super::report_stop(reader, stop);
            Vec::new()
        }
    }
}

fn check_syntax(text: &str) -> Result<(), Stop> {
    serde_json::from_str::<IgnoredAny>(text)
        .map(drop)
        .map_err(|error| stop_at(&error, |mark| in_characters(text, mark)))
}

/// Serde's message without the place it ends with, at the place given by `shift`.
fn stop_at(error: &serde_json::Error, shift: impl FnOnce(Mark) -> Mark) -> Stop {
    let (line, column) = (clamped(error.line()), clamped(error.column()));
    let message = error.to_string();
    let cause = message.split(" at line ").next().unwrap_or_default();
    Stop { at: Some(shift(Mark { line, column })), message: format!("not valid JSON: {}", explained(cause)) }
}

/// Serde counts bytes.
fn in_characters(text: &str, at: Mark) -> Mark {
    let line = text.split('\n').nth((at.line - 1) as usize).unwrap_or_default();
    let ends_behind = |(start, character): &(usize, char)| start + character.len_utf8() <= at.column as usize;
    Mark { column: clamped(line.char_indices().take_while(ends_behind).count()), ..at }
}

fn clamped(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX).max(1)
}

struct Scanner<'t, 'r> {
    text: &'t str,
    position: usize,
    /// The place of `marked`, moved forward as marks are taken so that each character is counted once.
    mark: Mark,
    marked: usize,
    budget: Budget,
    reader: &'r mut Reader,
}

impl<'t, 'r> Scanner<'t, 'r> {
    fn new(text: &'t str, reader: &'r mut Reader) -> Self {
        let mark = Mark { line: 1, column: 1 };
        Self { text, position: 0, mark, marked: 0, budget: Budget::default(), reader }
    }

    fn document(mut self) -> Result<Node, Stop> {
        self.value(0)
    }

    fn value(&mut self, depth: usize) -> Result<Node, Stop> {
        let at = self.here();
        if depth > MAX_DEPTH {
            return Err(too_deep(at));
        }
        let value = match self.next_byte() {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::String(self.string()?),
            _ => self.literal(),
        };
        let characters = match &value {
            Value::String(text) | Value::Number { text, .. } => text.len(),
            _ => 0,
        };
        self.budget.spend(at, characters)?;
        Ok(Node { at, value })
    }

    fn map(&mut self, depth: usize) -> Result<Value, Stop> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut first_seen = std::collections::BTreeMap::new();
        self.skip(b'{');
        while self.next_byte() == Some(b'"') {
            let at = self.here();
            let key = self.string()?;
            self.skip(b':');
            let value = self.inside(Segment::Field(key.clone()), |scanner| scanner.value(depth + 1))?;
            self.skip(b',');
            if let Some(first) = first_seen.insert(key.clone(), at) {
                self.report_duplicate(at, first, key);
            } else {
                entries.push(Entry { key, at, value });
            }
        }
        self.skip(b'}');
        Ok(Value::Map(entries))
    }

    fn report_duplicate(&mut self, at: Option<Mark>, first: Option<Mark>, key: String) {
        let line = first.map_or(0, |mark| mark.line);
        self.reader.within(Segment::Field(key), |reader| {
            reader.report(at, format!("duplicate key, first given on line {line}"));
        });
    }

    fn list(&mut self, depth: usize) -> Result<Value, Stop> {
        let mut items = Vec::new();
        self.skip(b'[');
        while !matches!(self.next_byte(), Some(b']') | None) {
            // The outermost list holds resources, and paths start at a resource.
            let item = match depth {
                0 => self.value(depth + 1)?,
                _ => self.inside(Segment::Index(items.len()), |scanner| scanner.value(depth + 1))?,
            };
            items.push(item);
            self.skip(b',');
        }
        self.skip(b']');
        Ok(Value::List(items))
    }

    /// A string with its quotes, unescaped by serde.
    fn string(&mut self) -> Result<String, Stop> {
        let at = self.here();
        let start = self.position;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        self.position = (end + 1).min(bytes.len());
        let quoted = &self.text[start..self.position];
        serde_json::from_str(quoted).map_err(|error| stop_at(&error, |mark| at.unwrap_or(mark)))
    }

    /// A number, `true`, `false` or `null`.
    fn literal(&mut self) -> Value {
        let rest = &self.text[self.position..];
        let ends =
            |character: char| !(character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.'));
        let text = &rest[..rest.find(ends).unwrap_or(rest.len())];
        // Always forward, so that no input can hold the scanner in place.
        self.position += text.len().max(rest.chars().next().map_or(1, char::len_utf8));
        match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => match serde_json::from_str::<Number>(text) {
                Ok(number) => Value::Number { number, text: text.to_owned() },
                Err(_) => Value::Null,
            },
        }
    }

    /// The next byte that is not white space.
    fn next_byte(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.position).is_some_and(u8::is_ascii_whitespace) {
            self.position += 1;
        }
        bytes.get(self.position).copied()
    }

    fn skip(&mut self, expected: u8) {
        if self.next_byte() == Some(expected) {
            self.position += 1;
        }
    }

    fn here(&mut self) -> Option<Mark> {
        self.next_byte();
        let passed = self.text.get(self.marked..self.position)?;
        match passed.rfind('\n') {
            Some(newline) => {
                self.mark.line += clamped(passed.matches('\n').count());
                self.mark.column = clamped(passed[newline + 1..].chars().count() + 1);
            }
            None => self.mark.column = self.mark.column.saturating_add(clamped_count(passed)),
        }
        self.marked = self.position;
        Some(self.mark)
    }

    fn inside<T>(&mut self, segment: Segment, read: impl FnOnce(&mut Self) -> T) -> T {
        self.reader.enter(segment);
        let result = read(self);
        self.reader.leave();
        result
    }
}

fn clamped_count(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}
