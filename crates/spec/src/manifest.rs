//! From text or JSON to resources: the front door for everything people and programs declare.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::node::{Mark, Node, json, report_stop, yaml};
use crate::problem::{Location, Path, Problem};
use crate::reader::Reader;
use crate::resource::{self, Resource};
use crate::together;

/// The longest text that is read.
pub const MAX_BYTES: usize = 4 << 20;

/// Reads a manifest: JSON if it starts with `{` or `[`, else YAML of one or more documents.
/// Either everything in it is valid, or every problem is returned, in the order of the text.
pub fn parse(source_name: &str, text: &str) -> Result<Vec<Resource>, Vec<Problem>> {
    parse_with_notices(source_name, text).map(|parsed| parsed.resources)
}

/// What a manifest declares.
#[derive(Debug, Clone)]
pub struct Parsed {
    pub resources: Vec<Resource>,
    /// Where each of them stood.
    pub origins: Vec<Origin>,
    /// What of it this version can't do, by name and line: it is kept, and refused when it is used.
    pub notices: Vec<Problem>,
}

/// Where a resource stood in a text.
#[derive(Debug, Clone)]
pub struct Origin {
    file: String,
    node: Node,
}

impl Origin {
    /// Where a part of it stood, or what is nearest to it.
    pub fn locate(&self, path: &Path) -> Option<Location> {
        let Mark { line, column } = self.node.locate(path)?;
        Some(Location { file: self.file.clone(), line, column })
    }

    /// Whether a part of it was written, and not filled in. Blank is not set.
    pub fn says(&self, path: &Path) -> bool {
        self.node.find(path).is_some_and(|node| !node.is_blank())
    }
}

/// The same as [`parse`], and says what will be refused when it is used.
pub fn parse_with_notices(source_name: &str, text: &str) -> Result<Parsed, Vec<Problem>> {
    let mut reader = Reader::of_file(source_name);
    let documents = read_text(&mut reader, text);
    let problems = reader.into_problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut notices = Reader::of_file(source_name);
    for (resource, node) in &documents {
        for problem in resource.unsupported() {
            notices.add(node.locate(&problem.path), problem);
        }
    }
    let origin = |(resource, node)| (resource, Origin { file: source_name.to_owned(), node });
    let (resources, origins) = documents.into_iter().map(origin).unzip();
    Ok(Parsed { resources, origins, notices: notices.into_problems() })
}

/// What is wrong with several texts only when they are taken together, each with the number of the text that has the
/// mistake. What is wrong with one by itself has been said when it was read.
pub fn mistakes_between(texts: &[&Parsed]) -> Vec<(usize, Problem)> {
    let declared = texts.iter().enumerate().flat_map(|(text, parsed)| {
        parsed.resources.iter().zip(&parsed.origins).map(move |(resource, origin)| (resource, (text, origin)))
    });
    let (resources, places): (Vec<&Resource>, Vec<(usize, &Origin)>) = declared.unzip();
    let located = |(number, problem): (usize, Problem)| {
        let (text, origin) = *places.get(number)?;
        Some((text, Problem { location: origin.locate(&problem.path), ..problem }))
    };
    together::mistakes(&resources).into_iter().filter_map(located).collect()
}

/// Reads one resource from a value. Problems carry a JSON pointer in place of a line.
pub fn from_json(value: &Json) -> Result<Resource, Vec<Problem>> {
    let mut reader = Reader::of_value();
    let resource = match Node::from_json(value) {
        Ok(node) => resource::read(&mut reader, &node),
        Err(stop) => {
            report_stop(&mut reader, stop);
            None
        }
    };
    match resource {
        Some(resource) => Ok(resource),
        None => Err(reader.into_problems()),
    }
}

fn read_text(reader: &mut Reader, text: &str) -> Vec<(Resource, Node)> {
    let start = Some(Mark { line: 1, column: 1 });
    if text.len() > MAX_BYTES {
        reader.report(start, format!("too large: {} bytes, at most {MAX_BYTES} are read", text.len()));
        return Vec::new();
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let nodes = if text.trim_start().starts_with(['{', '[']) {
        json::documents(reader, text)
    } else {
        yaml::documents(reader, text)
    };
    if nodes.is_empty() && reader.count() == 0 {
        reader.report(start, "no resource found");
    }
    read_documents(reader, nodes)
}

fn read_documents(reader: &mut Reader, nodes: Vec<Node>) -> Vec<(Resource, Node)> {
    let mut documents = Vec::new();
    let mut lines = BTreeMap::new();
    for node in nodes {
        if reader.is_full() {
            break;
        }
        let Some(resource) = resource::read(reader, &node) else { continue };
        let line = node.at.map_or(0, |mark| mark.line);
        if let Some(first) = lines.insert((resource.kind(), resource.key()), line) {
            let message =
                format!("{} {} was already declared on line {first}", resource.kind(), resource.key());
            reader.add(
                node.locate(&Path::of("metadata.name")),
                Problem::new(Path::of("metadata.name"), message),
            );
        }
        documents.push((resource, node));
    }
    let resources: Vec<&Resource> = documents.iter().map(|(resource, _)| resource).collect();
    for (number, mistake) in together::mistakes(&resources) {
        let at = documents.get(number).and_then(|(_, node)| node.locate(&mistake.path));
        reader.add(at, mistake);
    }
    documents
}
