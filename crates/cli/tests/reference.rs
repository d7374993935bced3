//! The reference has what there is: every code that is sent, every variable that is looked at, every command.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn page(name: &str) -> String {
    support::run(support::ostler(Path::new(".")).args(["reference", name])).ok().to_owned()
}

/// The sources of the product, without what only tests see.
fn sources() -> Vec<(PathBuf, String)> {
    let mut sources = Vec::new();
    let mut folders: Vec<PathBuf> =
        fs::read_dir("..").unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !matches!(name, "tests.rs" | "samples.rs" | "codes.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
                sources.push((path, text));
            }
        }
    }
    sources.retain(|(path, _)| !path.to_str().unwrap().contains("/conformance"));
    assert!(sources.len() > 100, "only {} sources found", sources.len());
    sources
}

/// Every code that stands in the sources where one is sent, with a file that it stands in.
fn sent() -> BTreeMap<String, PathBuf> {
    const SENDERS: [&str; 8] = [
        "Problem::new(",
        "Self::new(StatusCode::",
        "Failure::new(",
        "Failure::transient(",
        "Failure::permanent(",
        "Failure::limit(",
        "Failure::timeout(",
        " limit(",
    ];
    let mut sent = BTreeMap::new();
    // A Problem of a manifest has no code.
    let may_send = |path: &Path| !path.starts_with("../spec");
    for (path, text) in sources().into_iter().filter(|(path, _)| may_send(path)) {
        let text = text.replace("ostler_spec::Problem::new(", "");
        for sender in SENDERS {
            for (at, _) in text.match_indices(sender) {
                sent.extend(first_word(&text[at + sender.len()..]).map(|code| (code, path.clone())));
            }
        }
        // Codes of an enum: whatever its function gives back.
        for function in ["fn code(&self) -> &'static str", "const fn name(self) -> &'static str"] {
            let body = text.split(function).nth(1).and_then(|body| body.split("\n    }").next());
            let words = body.unwrap_or_default().split("=> ").skip(1).filter_map(first_word);
            sent.extend(words.map(|code| (code, path.clone())));
        }
    }
    assert!(sent.len() > 50, "only {sent:#?}");
    sent
}

/// The text in quotes that comes before the second comma, if it looks like a code.
fn first_word(behind: &str) -> Option<String> {
    let start = behind.find('"')?;
    if behind[..start].matches([',', ';', ')']).count() > 1 {
        return None;
    }
    let word = behind[start + 1..].split('"').next()?;
    let is_code = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_code.then(|| word.to_owned())
}

#[test]
fn every_code_that_is_sent_is_in_the_reference_and_no_other() {
    let page = page("errors");
    let sent = sent();
    let missing: Vec<_> = sent.iter().filter(|(code, _)| !page.contains(&format!("| `{code}` |"))).collect();
    assert!(missing.is_empty(), "sent, and in no codes.rs: {missing:#?}");
    let listed = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split(" | ").map(|cell| cell.trim_matches([' ', '|', '`'])).collect();
        match cells[..] {
            [status, code, _, _] if status.parse::<u16>().is_ok() => Some(code),
            [code, _, _] if line.starts_with("| `") => Some(code),
            _ => None,
        }
    });
    let sources = sources();
    let idle: Vec<&str> = listed
        .filter(|code| !sources.iter().any(|(_, text)| text.contains(&format!("\"{code}\""))))
        .collect();
    assert!(idle.is_empty(), "in a codes.rs, and never sent: {idle:#?}");
}

#[test]
fn every_variable_is_in_the_reference() {
    let page = page("environment");
    for (path, text) in sources() {
        for (at, _) in text.match_indices("OSTLER_") {
            let name: String = text[at..]
                .chars()
                .take_while(|letter| letter.is_ascii_uppercase() || *letter == '_')
                .collect();
            // Those are named by whoever declares a secret.
            if name.starts_with("OSTLER_SECRET_") {
                continue;
            }
            let is_prefix = name.ends_with('_');
            let found =
                page.contains(&format!("`{name}`")) || (is_prefix && page.contains(&format!("`{name}")));
            assert!(found, "{name} of {} is not on the page", path.display());
        }
    }
}

/// `[ToolSpec::is_idempotent]`, with backticks or without: it leads somewhere only in the sources.
fn rust_links(text: &str) -> Vec<&str> {
    let pieces = text.match_indices('[').filter_map(|(at, _)| text[at + 1..].split_once(']'));
    let links = pieces.filter(|(_, behind)| !behind.starts_with('('));
    let names = links.map(|(name, _)| (name, name.trim_matches('`')));
    let is_path = |name: &str| name.split("::").all(is_word) && name.contains("::");
    let is_type = |name: &str| is_word(name) && name.starts_with(|first: char| first.is_ascii_uppercase());
    let is_link = |(name, bare): &(&str, &str)| is_path(bare) || name.starts_with('`') && is_type(bare);
    names.filter(is_link).map(|(name, _)| name).collect()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[test]
fn no_link_of_the_sources_is_in_the_reference_or_a_schema() {
    let leak = "again; see [`ToolSpec::is_idempotent`], [Spec::a] or [`Later`], not [OPTIONS] [a](b.md) <KIND [NAME]>";
    assert_eq!(rust_links(leak), ["`ToolSpec::is_idempotent`", "Spec::a", "`Later`"]);
    let pages = support::run(support::ostler(Path::new(".")).args(["reference"]));
    for name in pages.ok().lines() {
        let page = page(name);
        assert_eq!(rust_links(&page), Vec::<&str>::new(), "docs/reference/{name}.md");
    }
    for entry in fs::read_dir("../../schema").unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(rust_links(&text), Vec::<&str>::new(), "{}", path.display());
    }
}

#[test]
fn every_command_is_in_the_reference() {
    let page = page("flags");
    let help = support::run(support::ostler(Path::new(".")).args(["--help"]));
    let commands = help.ok().split("Usage:").nth(1).unwrap().split("Options:").next().unwrap();
    // In groups, each command in a line.
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let lines = commands.lines().filter(is_name);
    let names: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("\n## ostler {name}\n")), "no {name}");
    }
    assert!(!help.stdout.contains("reference"), "it is for whoever writes the pages");
}
