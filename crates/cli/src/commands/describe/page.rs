//! A page of titled lines, aligned and wrapped to the terminal.

use serde_json::Value;

use crate::{error::CommandError, output::Output, paint::Tone, text};

/// Where values begin, at least and at most.
const TITLES: usize = 14;
const LONGEST: usize = 32;

/// In a pipe there is no width; this is one that reads well.
const PIPE_COLUMNS: usize = 100;

pub struct Page {
    output: Output,
    columns: usize,
    indent: usize,
    /// Columns that titles take.
    titles: usize,
    lines: Vec<String>,
}

impl Page {
    pub fn new(output: Output) -> Self {
        let columns = output.room().map_or(PIPE_COLUMNS, |room| room.columns);
        Self { output, columns, indent: 0, titles: TITLES, lines: Vec::new() }
    }

    pub fn print(&self) -> Result<(), CommandError> {
        self.lines.iter().try_for_each(|line| self.output.data(line))
    }

    /// `agent hello`, on top.
    pub fn title(&mut self, kind: &str, name: &str) {
        let name = self.output.paint().tone(Tone::Strong, &text::one_line(name));
        self.lines.push(format!("{kind} {name}"));
    }

    pub fn section(&mut self, title: &str) {
        self.lines.push(String::new());
        self.lines.push(self.output.paint().tone(Tone::Strong, title));
        (self.indent, self.titles) = (2, TITLES);
    }

    /// Makes room for the titles that follow.
    pub fn titles<T: AsRef<str>>(&mut self, titles: impl IntoIterator<Item = T>) {
        let widest = titles.into_iter().map(|title| text::width(title.as_ref()) + 2).max();
        self.titles = widest.unwrap_or(0).clamp(TITLES, LONGEST.max(self.columns / 2));
    }

    /// A title and its value; nothing for no value.
    pub fn line(&mut self, title: &str, value: &str) {
        self.toned(title, value, Tone::Plain);
    }

    pub fn toned(&mut self, title: &str, value: &str, tone: Tone) {
        if value.trim().is_empty() {
            return;
        }
        let paint = self.output.paint();
        let titles = self.titles;
        let blanks = " ".repeat(titles.saturating_sub(text::width(title)));
        let head = format!("{}{title}{blanks}", " ".repeat(self.indent));
        let gap = if text::width(title) >= titles { "  " } else { "" };
        let start = text::width(&head) + gap.len();
        let room = self.columns.saturating_sub(start).max(20);
        let wrapped = text::wrap(value.trim_end(), room);
        for (place, line) in wrapped.iter().enumerate() {
            let shown = paint.tone(tone, line);
            match place {
                0 => self.lines.push(format!("{}{gap}{shown}", paint.tone(Tone::Quiet, &head))),
                _ => self.lines.push(format!("{}{shown}", " ".repeat(start))),
            }
        }
    }

    /// A line of its own, as it is.
    pub fn raw(&mut self, line: &str) {
        let line = format!("{}{line}", " ".repeat(self.indent));
        self.lines.push(line.trim_end().to_owned());
    }

    /// What is not as it should be, and what to do about it.
    pub fn remark(&mut self, tone: Tone, words: &str) {
        let room = self.columns.saturating_sub(self.indent).max(20);
        for line in text::wrap(words, room) {
            let shown = self.output.paint().tone(tone, &line);
            self.raw(&shown);
        }
    }

    /// The fields of an object, those inside it further in. What is empty is left out.
    pub fn fields(&mut self, object: Option<&Value>, without: &[&str]) {
        let Some(fields) = object.and_then(Value::as_object) else { return };
        let before = self.titles;
        let shown = || fields.iter().filter(|(key, _)| !without.contains(&key.as_str()));
        self.titles(shown().filter(|(_, value)| !value.is_object()).map(|(key, _)| key));
        for (key, value) in shown() {
            self.field(key, value);
        }
        self.titles = before;
    }

    fn field(&mut self, key: &str, value: &Value) {
        match value {
            Value::Null => {}
            Value::Object(fields) if fields.is_empty() => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Object(_) => {
                let title = self.output.paint().tone(Tone::Quiet, key);
                self.raw(&title);
                self.indent += 2;
                self.fields(Some(value), &[]);
                self.indent -= 2;
            }
            Value::Array(items) if items.iter().all(is_plain) => {
                let words: Vec<String> = items.iter().map(plain).collect();
                self.line(key, &words.join(", "));
            }
            Value::Array(items) => {
                for (place, item) in items.iter().enumerate() {
                    self.field(&format!("{key} {}", place + 1), item);
                }
            }
            _ => self.line(key, &plain(value)),
        }
    }

    pub fn columns(&self) -> usize {
        self.columns.saturating_sub(self.indent)
    }

    pub fn output(&self) -> Output {
        self.output
    }
}

fn is_plain(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}
