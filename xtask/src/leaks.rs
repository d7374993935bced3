//! What must not be in any file of the repository: the host of a package registry, and a path that exists on
//! one machine only. Cargo.lock is exempt, cargo writes it.

use std::path::Path;

use anyhow::{Context as _, Result};

/// Spelled in pieces, so that this file does not find itself.
const HOSTS: [&str; 6] = [
    concat!("crates", ".io"),
    concat!("registry.npm", "js.org"),
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("proxy.gol", "ang.org"),
    concat!("rubyg", "ems.org"),
];

/// Folders of one machine; what follows decides whether it is a path.
const FOLDERS: [&str; 4] =
    [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Every line of a tracked or new file that names one of them.
pub fn check() -> Result<Vec<String>> {
    let top = crate::output_of("git", &["rev-parse", "--show-toplevel"])?;
    let top = Path::new(top.trim());
    let list = ["-C", &top.to_string_lossy(), "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let files = crate::output_of("git", &list)?;
    let mut findings = Vec::new();
    for file in files.split_terminator('\0').filter(|file| !file.ends_with("Cargo.lock")) {
        let path = top.join(file);
        // A file that was removed but not yet committed is listed, and is not there.
        if !path.is_file() {
            continue;
        }
        let bytes = std::fs::read(&path).with_context(|| format!("can't read {file}"))?;
        findings.extend(check_text(file, &String::from_utf8_lossy(&bytes)));
    }
    Ok(findings)
}

fn check_text(file: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let named = lines.filter_map(|(line_idx, line)| Some((line_idx + 1, leak(line)?)));
    named.map(|(line, leak)| format!("{file}:{line}: names {leak}")).collect()
}

fn leak(line: &str) -> Option<&'static str> {
    let host = HOSTS.into_iter().find(|host| line.contains(host));
    host.or_else(|| FOLDERS.into_iter().find(|folder| holds_path(line, folder)))
}

/// Whether the folder begins a path here: not inside a longer path or address, and followed by a name.
fn holds_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + folder.len()..].chars().next();
        let inside = before.is_some_and(|before| before.is_alphanumeric() || "._-~}*/".contains(before));
        !inside && after.is_some_and(|after| after.is_alphanumeric() || after == '.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_and_a_path_of_a_machine_are_found_with_their_line() {
        let text = format!("fine\nsee https://{}/x\ncd {}ada/src\n", HOSTS[0], FOLDERS[2]);
        let found = check_text("notes.md", &text);
        let expected =
            [format!("notes.md:2: names {}", HOSTS[0]), format!("notes.md:3: names {}", FOLDERS[2])];
        assert_eq!(found, expected);
    }

    #[test]
    fn words_that_only_look_like_one_pass() {
        for folder in FOLDERS {
            let inner = format!("https://example.com{folder}x and {folder}<name> and src{folder}x");
            assert_eq!(check_text("a.rs", &inner), Vec::<String>::new());
        }
    }
}
