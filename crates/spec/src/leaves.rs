//! A file of settings as a flat list: what stands where, under which dotted name.

use crate::node::{Entry, Mark, Node, Value, yaml};
use crate::problem::{Location, Problem};
use crate::reader::Reader;

/// A single value of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Such as `worker.slots`.
    pub path: String,
    /// As it was written. A list of plain values is one leaf, with commas between them.
    pub text: String,
    pub location: Option<Location>,
}

/// Reads a file of one YAML document, whose top is a map. An empty one has no leaves.
pub fn leaves(source_name: &str, text: &str) -> Result<Vec<Leaf>, Vec<Problem>> {
    let mut reader = Reader::of_file(source_name);
    let documents = yaml::documents(&mut reader, text);
    let mut found = Leaves { file: source_name, reader, leaves: Vec::new() };
    match documents.as_slice() {
        [] => {}
        [Node { value: Value::Map(entries), .. }] => found.map("", entries),
        [Node { value: Value::Null, .. }] => {}
        [other] => found.reader.report(other.at, format!("expected settings, found {}", other.describe())),
        [_, second, ..] => found.reader.report(second.at, "a second document: settings are one"),
    }
    let problems = found.reader.into_problems();
    if problems.is_empty() { Ok(found.leaves) } else { Err(problems) }
}

struct Leaves<'f> {
    file: &'f str,
    reader: Reader,
    leaves: Vec<Leaf>,
}

impl Leaves<'_> {
    fn map(&mut self, path: &str, entries: &[Entry]) {
        for entry in entries {
            let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
            match &entry.value.value {
                Value::Map(entries) => self.map(&path, entries),
                Value::Null => {}
                _ => match plain(&entry.value) {
                    Some(text) => self.leaf(path, text, entry.at),
                    None => {
                        self.reader.report(entry.at, format!("{path}: expected plain values in the list"))
                    }
                },
            }
        }
    }

    fn leaf(&mut self, path: String, text: String, at: Option<Mark>) {
        let location =
            at.map(|mark| Location { file: self.file.to_owned(), line: mark.line, column: mark.column });
        self.leaves.push(Leaf { path, text, location });
    }
}

fn plain(node: &Node) -> Option<String> {
    match &node.value {
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number { text, .. } | Value::String(text) => Some(text.clone()),
        Value::List(items) => Some(items.iter().map(plain).collect::<Option<Vec<_>>>()?.join(",")),
        Value::Null | Value::Map(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_with_their_names_and_places() {
        let text = "listen: 127.0.0.1:7070\nworker:\n  slots: 8\n  capabilities: [gpu, large]\n  labels: {a: b}\nempty:\n";
        let found = leaves("f.yaml", text).unwrap();
        let plain: Vec<_> = found.iter().map(|leaf| (leaf.path.as_str(), leaf.text.as_str())).collect();
        let expected = [
            ("listen", "127.0.0.1:7070"),
            ("worker.slots", "8"),
            ("worker.capabilities", "gpu,large"),
            ("worker.labels.a", "b"),
        ];
        assert_eq!(plain, expected);
        assert_eq!(found[1].location.as_ref().unwrap().to_string(), "f.yaml:3:3");
        assert_eq!(leaves("f.yaml", "# nothing\n"), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_file_of_settings_is_refused_with_its_place() {
        for (text, expected) in [
            ("- a\n", "expected settings"),
            ("a: 1\n---\nb: 2\n", "second document"),
            ("a: [{b: 1}]\n", "plain values"),
            ("a: 1\na: 2\n", "a"),
            ("a: [\n", "f.yaml:"),
        ] {
            let problems = leaves("f.yaml", text).unwrap_err();
            assert!(problems[0].to_string().contains(expected), "{text:?}: {}", problems[0]);
        }
    }
}
