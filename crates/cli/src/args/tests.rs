use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use super::*;

/// Every command with its words, `ostler` itself first.
fn all(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
    found.push((path.to_owned(), command.clone()));
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        all(inner, &format!("{path} {}", inner.get_name()), found);
    }
}

fn commands() -> Vec<(String, clap::Command)> {
    let mut found = Vec::new();
    all(&Arguments::command(), "ostler", &mut found);
    assert!(found.len() > 50, "only {}", found.len());
    found
}

/// What stands below its flags.
fn behind(command: &clap::Command) -> String {
    command.get_after_help().map(ToString::to_string).unwrap_or_default()
}

/// Lines that are typed; those that go on in the next one are one.
fn examples(help: &str) -> Vec<String> {
    let block = ["Examples:\n", "Start here:\n"].iter().find_map(|head| help.split_once(head));
    let block = block.map(|(_, block)| block.split("\n\n").next().unwrap_or_default()).unwrap_or_default();
    let mut examples: Vec<String> = Vec::new();
    for line in block.lines() {
        match examples.last_mut().filter(|last| last.ends_with('\\')) {
            Some(last) => last.push_str(&format!("\n{line}")),
            None => examples.push(line.to_owned()),
        }
    }
    examples
}

/// Those that only hold others are taught by these.
#[test]
fn every_command_explains_itself_by_example() {
    Arguments::command().debug_assert();
    for (path, command) in commands() {
        assert!(command.has_subcommands() || !examples(&behind(&command)).is_empty(), "{path}");
    }
}

#[test]
fn examples_fit_eighty_columns() {
    for (path, command) in commands() {
        for line in behind(&command).lines() {
            assert!(line.chars().count() <= 80, "{path} --help: {line:?}");
        }
    }
}

/// In place of everything that examples call: a program that writes down what it was told.
fn bystanders(folder: &Path) {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    };
    // A line for each call, written at once as several run side by side in a pipe, and between its words a sign that stands in no example.
    let told =
        r#"told=$(for word; do printf '%s\037' "$word"; done); printf '%s\n' "$told" >> "$CALLS"; echo name"#;
    write("ostler", told);
    ["jq", "pass", "git", "dot"].iter().for_each(|name| write(name, "exit 0"));
}

/// Folders and files that examples write to and read.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for folder in
        ["bin", "hello", ".zfunc", ".local/share/bash-completion/completions", ".config/fish/completions"]
    {
        fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    for file in ["token.txt", "agent.yaml"] {
        fs::write(home.path().join(file), "").unwrap();
    }
    bystanders(&home.path().join("bin"));
    home
}

/// The words of each call of `ostler` when a shell is given the line.
fn calls(example: &str) -> Vec<Vec<String>> {
    let home = home();
    let path = format!("{}:{}", home.path().join("bin").display(), std::env::var("PATH").unwrap());
    let calls = home.path().join("calls");
    let mut shell = Command::new("bash");
    shell.current_dir(home.path()).args(["-c", example]).stdin(Stdio::null());
    let ran = shell.env("PATH", path).env("HOME", home.path()).env("CALLS", &calls).output().unwrap();
    // What a bystander prints is no script, so one that is to be sourced may fail: it was called all the same.
    assert!(ran.status.success() || example.contains("source "), "{example}: {ran:?}");
    let told = fs::read_to_string(calls).unwrap_or_default();
    let words =
        |line: &str| line.split_terminator('\u{1f}').map(str::to_owned).filter(|word| word != "\n").collect();
    told.lines().map(words).collect()
}

/// Each is a line for a shell, and calls the program with words that it takes.
#[test]
fn examples_can_be_copied() {
    for (path, command) in commands() {
        for example in examples(&behind(&command)) {
            assert!(example.starts_with("  ") && !example.contains('`'), "{path} --help: {example:?}");
            let calls = calls(&example);
            assert!(!calls.is_empty(), "{path} --help: {example:?} calls nothing");
            for call in calls {
                let words = std::iter::once("ostler".to_owned()).chain(call.iter().cloned());
                let read = Arguments::command().try_get_matches_from(words);
                assert!(read.is_ok(), "{path} --help: {example:?}: {call:?}: {}", read.unwrap_err());
                // A blank and a remark behind what takes any words would be among them.
                let is_remark =
                    example.contains("   ") && !example.contains("   #") && !example.contains('\\');
                assert!(!is_remark, "{path} --help: {example:?}: a remark stands behind #");
            }
        }
    }
}
