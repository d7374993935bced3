//! What is wrong with a manifest and where: the shape every refusal of this crate takes, and how it prints.

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// One mistake. Prints like a compiler's message:
/// `agents.yaml:7:5: spec.limts: unknown field, did you mean "limits"?`
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// Where in the text; absent when there was no text (a JSON value from a program).
    pub location: Option<Location>,
    pub path: Path,
    pub message: String,
    /// The nearest valid name or value, when there is one near.
    pub suggestion: Option<String>,
}

impl Problem {
    pub fn new(path: Path, message: impl Into<String>) -> Self {
        Self { location: None, path, message: message.into(), suggestion: None }
    }

    /// The path as it prints: dotted beside a line, a JSON pointer in place of one.
    pub fn shown_path(&self) -> String {
        match self.location {
            Some(_) => self.path.to_string(),
            None => self.path.pointer(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(out, "{location}: ")?;
        }
        let path = self.shown_path();
        if !path.is_empty() {
            write!(out, "{path}: ")?;
        }
        out.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(out, ", did you mean \"{suggestion}\"?"),
            None => Ok(()),
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Problem", 6)?;
        if let Some(location) = &self.location {
            out.serialize_field("file", &location.file)?;
            out.serialize_field("line", &location.line)?;
            out.serialize_field("column", &location.column)?;
        }
        out.serialize_field("path", &self.shown_path())?;
        out.serialize_field("message", &self.message)?;
        if let Some(suggestion) = &self.suggestion {
            out.serialize_field("suggestion", suggestion)?;
        }
        out.end()
    }
}

/// A place in a text; line and column count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub file: String,
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The way from the top of a resource to one of its values. Displays dotted: `spec.tools[2]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path(pub Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    Field(String),
    Index(usize),
}

impl Path {
    /// A path of plain field names, as in `spec.limits.max_steps`.
    pub fn of(dotted: &str) -> Self {
        Self(dotted.split('.').map(|name| Segment::Field(name.to_owned())).collect())
    }

    #[must_use]
    pub fn field(mut self, name: &str) -> Self {
        self.0.push(Segment::Field(name.to_owned()));
        self
    }

    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.0.push(Segment::Index(index));
        self
    }

    /// The way that a JSON pointer tells.
    pub fn from_pointer(pointer: &str) -> Self {
        let segment = |text: &str| match text.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Field(text.replace("~1", "/").replace("~0", "~")),
        };
        Self(pointer.split('/').skip(1).map(segment).collect())
    }

    /// As a JSON pointer (RFC 6901): `/spec/tools/2`.
    pub fn pointer(&self) -> String {
        let mut out = String::new();
        for segment in &self.0 {
            out.push('/');
            match segment {
                Segment::Field(name) => out.push_str(&name.replace('~', "~0").replace('/', "~1")),
                Segment::Index(index) => out.push_str(&index.to_string()),
            }
        }
        out
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(out, "[{index}]")?,
                Segment::Field(name) => {
                    if position > 0 {
                        out.write_str(".")?;
                    }
                    write_name(out, name)?;
                }
            }
        }
        Ok(())
    }
}

/// Names that would blur the path (dots, blanks, control characters) print quoted and escaped.
fn write_name(out: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    let plain = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '/' | '$');
    if !name.is_empty() && name.chars().all(plain) { out.write_str(name) } else { write!(out, "{name:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_like_a_compiler() {
        let mut problem = Problem::new(Path::of("spec.limts"), "unknown field");
        problem.suggestion = Some("limits".to_owned());
        problem.location = Some(Location { file: "agents.yaml".to_owned(), line: 7, column: 5 });
        assert_eq!(
            problem.to_string(),
            "agents.yaml:7:5: spec.limts: unknown field, did you mean \"limits\"?"
        );
    }

    #[test]
    fn without_text_the_path_is_a_pointer() {
        let path = Path(vec![
            Segment::Field("metadata".to_owned()),
            Segment::Field("labels".to_owned()),
            Segment::Field("ostler.dev/team".to_owned()),
        ]);
        assert_eq!(path.to_string(), "metadata.labels.\"ostler.dev/team\"");
        assert_eq!(Problem::new(path, "wrong").to_string(), "/metadata/labels/ostler.dev~1team: wrong");
    }

    #[test]
    fn serialises_flat() {
        let mut problem = Problem::new(Path::of("spec.limts"), "unknown field");
        problem.location = Some(Location { file: "a.yaml".to_owned(), line: 7, column: 5 });
        let expected =
            r#"{"file":"a.yaml","line":7,"column":5,"path":"spec.limts","message":"unknown field"}"#;
        assert_eq!(serde_json::to_string(&problem).unwrap(), expected);
    }
}
