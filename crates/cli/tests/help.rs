//! Help as it comes out of the program.

mod support;

use std::path::Path;

use support::{ostler, run};

/// The names of the commands inside one that holds others, or of all, as help lists them.
fn listed(help: &str) -> Vec<&str> {
    let lists = help.contains("<COMMAND>").then(|| help.split_once("Usage:")).flatten();
    let list = lists.and_then(|(_, list)| list.split("\nOptions:").next()).unwrap_or_default();
    let names = list.lines().skip(1).filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn in_a_pipe_help_fits_eighty_columns() {
    let help = |words: &str| {
        run(ostler(Path::new(".")).args(words.split_whitespace()).arg("--help")).ok().to_owned()
    };
    let mut open = vec![String::new()];
    let mut looked_at = 0;
    while let Some(words) = open.pop() {
        let help = help(&words);
        looked_at += 1;
        assert!(help.lines().all(|line| line.chars().count() <= 80), "ostler{words} --help: {help}");
        open.extend(listed(&help).into_iter().map(|name| format!("{words} {name}")));
    }
    assert!(looked_at > 50, "only {looked_at}");
    let told = run(ostler(Path::new(".")).args(["help", "run"]));
    assert!(told.ok().lines().all(|line| line.chars().count() <= 80), "{told:?}");
}

#[test]
fn kinds_are_listed_with_their_shorter_words() {
    let told = run(ostler(Path::new(".")).args(["get", "--help"]));
    for words in ["Kinds, and shorter words for them:", "agent-systems", "mep"] {
        assert!(told.ok().contains(words), "no {words:?}: {told:?}");
    }
}

#[test]
fn what_is_hidden_is_offered_in_no_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(ostler(Path::new(".")).args(["completion", shell]));
        let is_offered =
            script.ok().contains("Prints a page of the reference") || script.stdout.contains(",reference)");
        assert!(!is_offered, "{shell}: {script:?}");
    }
}
