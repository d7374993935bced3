//! Every manifest under `broken/` has one mistake and must be refused with exactly one message. A YAML file
//! says on its first line, a JSON file in the file beside it, what is expected: `line:column: message`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may stop at once")]

use std::fs;
use std::path::{Path, PathBuf};

fn manifests() -> Vec<PathBuf> {
    // Cargo starts tests in their package; a path compiled in would be another clone's in a shared build folder.
    let folder = Path::new("tests/broken");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml" || extension == "json"));
    paths.sort();
    paths
}

fn expected(path: &Path, text: &str) -> String {
    if path.extension().is_some_and(|extension| extension == "json") {
        return fs::read_to_string(path.with_extension("json.expected")).unwrap().trim_end().to_owned();
    }
    text.lines().next().unwrap().strip_prefix("# ").expect("the first line says what is expected").to_owned()
}

#[test]
fn each_mistake_is_refused_with_its_message() {
    let manifests = manifests();
    assert!(manifests.len() >= 600, "only {} manifests found", manifests.len());
    let mut failures = Vec::new();
    for path in &manifests {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(path).unwrap();
        // What this version can't do is told, and refused when it is used.
        let problems = match ostler_spec::parse_with_notices(name, &text) {
            Ok(parsed) if name.starts_with("later-") => parsed.notices,
            Ok(_) => Vec::new(),
            Err(problems) => problems,
        };
        let found = match problems.is_empty() {
            true => "accepted".to_owned(),
            false => problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  and    "),
        };
        let expected = format!("{name}:{}", expected(path, &text));
        if found != expected {
            failures.push(format!("expected {expected}\n  found  {found}"));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} differ:\n{}",
        failures.len(),
        manifests.len(),
        failures.join("\n")
    );
}
