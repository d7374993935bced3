//! Reads YAML text into trees with places, one per document: the 1.2 core schema, anchors, aliases and merge
//! keys. A document that cannot be read is reported, and reading goes on with the next.

use std::collections::BTreeMap;

use serde_json::Number;
use serde_saphyr::granit_parser::{
    Event, Marker, Options, Parser, ScalarStyle, ScanError, Span, StrInput, Tag,
};

use super::hint::explained;
use super::{Budget, Entry, MAX_DEPTH, Mark, Node, Stop, Value, too_deep};
use crate::problem::Segment;
use crate::reader::Reader;

/// The documents of a text that could be read; empty ones are left out.
pub(crate) fn documents(reader: &mut Reader, text: &str) -> Vec<Node> {
    // Comments are no values; another crate's features must not make the parser send them.
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut builder = Builder {
        parser: Parser::new_from_str_with_options(text, options),
        anchors: BTreeMap::new(),
        budget: Budget::default(),
        reader,
    };
    let mut documents = Vec::new();
    loop {
        match builder.document() {
            Ok(Some(node)) if node.is_null() => {}
            Ok(Some(node)) => documents.push(node),
            Ok(None) => return documents,
            Err(stop) => {
                super::report_stop(builder.reader, stop);
                if !builder.skip_document() {
                    return documents;
                }
            }
        }
    }
}

struct Builder<'t, 'r> {
    parser: Parser<'t, StrInput<'t>>,
    /// Finished nodes that were given an anchor in this document.
    anchors: BTreeMap<usize, Node>,
    budget: Budget,
    reader: &'r mut Reader,
}

impl<'t> Builder<'t, '_> {
    /// The next document, or nothing at the end of the stream.
    fn document(&mut self) -> Result<Option<Node>, Stop> {
        self.anchors.clear();
        loop {
            match self.event()? {
                None | Some((Event::StreamEnd, _)) => return Ok(None),
                Some((Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd, _)) => {}
                Some((event, span)) => return self.node(event, span, 0).map(Some),
            }
        }
    }

    /// Leaves what remains of a document that could not be read. Whether there is another.
    fn skip_document(&mut self) -> bool {
        let worth_it = !self.reader.is_full() && !self.budget.is_spent();
        worth_it && matches!(self.parser.proceed_next_document(), Ok(true))
    }

    fn event(&mut self) -> Result<Option<(Event<'t>, Span)>, Stop> {
        self.parser.next_event().transpose().map_err(|error| syntax_error(&error))
    }

    /// The next event inside a collection, which the parser always closes before the stream ends.
    fn inner_event(&mut self) -> Result<(Event<'t>, Span), Stop> {
        self.event()?.ok_or_else(|| Stop { at: None, message: "the document ends too early".to_owned() })
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, Stop> {
        let at = mark_of(&span.start);
        if depth > MAX_DEPTH {
            return Err(too_deep(at));
        }
        let anchor = event.anchor_id();
        let value = match event {
            Event::Alias(id) => return self.alias(id, at, depth),
            Event::Scalar(text, style, _, tag) => {
                self.budget.spend(at, text.len())?;
                self.check_tag(tag.as_deref(), SCALAR_TAGS, at);
                scalar(&text, style, tag.as_deref())
            }
            Event::SequenceStart(_, _, tag) => {
                self.check_tag(tag.as_deref(), &["seq"], at);
                self.budget.spend(at, 0)?;
                self.list(depth)?
            }
            Event::MappingStart(_, _, tag) => {
                self.check_tag(tag.as_deref(), &["map"], at);
                self.budget.spend(at, 0)?;
                self.map(depth)?
            }
            _ => return Err(Stop { at, message: "expected a value".to_owned() }),
        };
        let node = Node { at, value };
        if let Some(id) = anchor {
            self.budget.spend_copy(at, &node)?;
            self.anchors.insert(id, node.clone());
        }
        Ok(node)
    }

    fn check_tag(&mut self, tag: Option<&Tag>, known: &[&str], at: Option<Mark>) {
        let Some(tag) = tag else { return };
        if !tag.core_suffix().is_some_and(|suffix| known.contains(&suffix)) {
            self.reader.report(at, format!("the tag {} is not known here", tag.original()));
        }
    }

    /// A copy of the anchored node, standing where it was defined.
    fn alias(&mut self, id: usize, at: Option<Mark>, depth: usize) -> Result<Node, Stop> {
        let Some(node) = self.anchors.get(&id) else {
            return Err(Stop { at, message: "this alias stands inside the value it refers to".to_owned() });
        };
        if depth + node.height() > MAX_DEPTH {
            return Err(too_deep(at));
        }
        self.budget.spend_copy(at, node)?;
        Ok(node.clone())
    }

    fn list(&mut self, depth: usize) -> Result<Value, Stop> {
        let mut items = Vec::new();
        loop {
            match self.inner_event()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, span) => {
                    let index = Segment::Index(items.len());
                    items.push(self.inside(index, |builder| builder.node(event, span, depth + 1))?);
                }
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Stop> {
        let mut map = MapBuilder::default();
        loop {
            let (event, span) = self.inner_event()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Value::Map(map.finish()));
            }
            let at = mark_of(&span.start);
            let merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let key = self.key(event, span, depth)?;
            let (event, span) = self.inner_event()?;
            let value =
                self.inside(Segment::Field(key.clone()), |builder| builder.node(event, span, depth + 1))?;
            if merge {
                map.merge(value, at)?;
            } else if let Err(first) = map.insert(key.clone(), at, value) {
                self.reader.within(Segment::Field(key), |reader| {
                    reader.report(at, format!("duplicate key, first given on line {first}"));
                });
            }
        }
    }

    fn key(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<String, Stop> {
        let at = mark_of(&span.start);
        if let Event::Scalar(text, ..) = event {
            self.budget.spend(at, text.len())?;
            return Ok(text.into_owned());
        }
        match self.node(event, span, depth + 1)?.value {
            Value::String(text) | Value::Number { text, .. } => Ok(text),
            _ => Err(Stop { at, message: "expected a plain key".to_owned() }),
        }
    }

    fn inside<T>(&mut self, segment: Segment, read: impl FnOnce(&mut Self) -> T) -> T {
        self.reader.enter(segment);
        let result = read(self);
        self.reader.leave();
        result
    }
}

#[derive(Default)]
struct MapBuilder {
    entries: Vec<Entry>,
    lines: BTreeMap<String, u32>,
    merged: Vec<Entry>,
}

impl MapBuilder {
    /// Refuses a key given before, with the line of the first.
    fn insert(&mut self, key: String, at: Option<Mark>, value: Node) -> Result<(), u32> {
        if let Some(first) = self.lines.get(&key) {
            return Err(*first);
        }
        self.lines.insert(key.clone(), at.map_or(0, |mark| mark.line));
        self.entries.push(Entry { key, at, value });
        Ok(())
    }

    /// `<<: *defaults`, or a list of such, of which the first to name a key wins.
    fn merge(&mut self, value: Node, at: Option<Mark>) -> Result<(), Stop> {
        match value.value {
            Value::Map(entries) => self.merged.extend(entries),
            Value::List(items) => {
                for item in items {
                    let Value::Map(entries) = item.value else { return Err(not_mergeable(at)) };
                    self.merged.extend(entries);
                }
            }
            _ => return Err(not_mergeable(at)),
        }
        Ok(())
    }

    /// Merged entries come behind the map's own, which win.
    fn finish(mut self) -> Vec<Entry> {
        for entry in std::mem::take(&mut self.merged) {
            if !self.lines.contains_key(&entry.key) {
                self.lines.insert(entry.key.clone(), 0);
                self.entries.push(entry);
            }
        }
        self.entries
    }
}

fn not_mergeable(at: Option<Mark>) -> Stop {
    Stop { at, message: "expected an object, or a list of objects, to merge".to_owned() }
}

fn syntax_error(error: &ScanError) -> Stop {
    Stop { at: mark_of(error.marker()), message: format!("not valid YAML: {}", explained(&error.info())) }
}

fn mark_of(marker: &Marker) -> Option<Mark> {
    let line = u32::try_from(marker.line()).unwrap_or(u32::MAX).max(1);
    let column = u32::try_from(marker.col()).unwrap_or(u32::MAX - 1) + 1;
    Some(Mark { line, column })
}

/// The core tags a scalar may carry.
const SCALAR_TAGS: &[&str] = &["str", "null", "bool", "int", "float"];

/// Quoted is a string. So is a value with a tag that was refused: its type is nobody's business any more.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let resolved = match tag.map(Tag::core_suffix) {
        None => style == ScalarStyle::Plain,
        Some(suffix) => matches!(suffix, Some("null" | "bool" | "int" | "float")),
    };
    if resolved { plain(text) } else { Value::String(text.to_owned()) }
}

/// The core schema of YAML 1.2: `yes` and `on` are strings. So are `.inf` and `.nan`, which JSON cannot hold.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text) {
            Some(number) => Value::Number { number, text: text.to_owned() },
            None => Value::String(text.to_owned()),
        },
    }
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    if unsigned.bytes().all(|digit| digit.is_ascii_digit()) {
        let whole = text.parse::<u64>().map(Number::from).or_else(|_| text.parse::<i64>().map(Number::from));
        if let Ok(whole) = whole {
            return Some(whole);
        }
    }
    let decimal = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    if !unsigned.bytes().all(decimal) {
        return None;
    }
    Number::from_f64(text.parse().ok()?)
}

fn radix(digits: &str, radix: u32) -> Option<Number> {
    let unsigned = !digits.starts_with('+');
    unsigned.then(|| u64::from_str_radix(digits, radix).ok())?.map(Number::from)
}
