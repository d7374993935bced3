//! The page of commands and flags, from the command line itself.

use clap::{Arg, Command, CommandFactory};

use super::markdown::{Table, code, sentence};
use crate::args::Arguments;

const INTRODUCTION: &str = "\
# Commands and flags

`ostler COMMAND --help` says the same. Data goes to stdout, everything else to stderr; the [exit codes](exit-codes.md) are
stable. Variables stand in [settings and environment](environment.md).

## Every command
";

pub fn page() -> String {
    let mut command = Arguments::command();
    command.build();
    let shared = table(&command, |flag| flag.is_global_set());
    let mut text = format!("{INTRODUCTION}\n{shared}");
    for command in shown(&command) {
        write(&mut text, command);
    }
    text
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set())
}

/// A command, and those inside it.
fn write(text: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    text.push_str(&format!("\n## {name}\n\n{}\n\n    {usage}\n", paragraphs(&about)));
    let flags = table(command, |flag| !flag.is_global_set());
    if !flags.is_empty() {
        text.push_str(&format!("\n{flags}"));
    }
    if let Some(behind) = command.get_after_help() {
        text.push_str(&format!("\n```text\n{}\n```\n", behind.to_string().trim_end()));
    }
    shown(command).for_each(|command| write(text, command));
}

fn paragraphs(about: &str) -> String {
    about.split("\n\n").map(sentence).collect::<Vec<_>>().join("\n\n")
}

fn table(command: &Command, is_meant: impl Fn(&Arg) -> bool) -> String {
    let mut table = Table::new(["Flag", "Default", "What it does"]);
    let is_own = |flag: &&Arg| is_meant(flag) && !flag.is_hide_set() && !is_clap_s(flag);
    for flag in command.get_arguments().filter(is_own) {
        table.row([spelt(flag), code(&default(flag)), about(flag)]);
    }
    if table.is_empty() { String::new() } else { table.text() }
}

/// `--help` and `--version` need no explanation.
fn is_clap_s(flag: &Arg) -> bool {
    matches!(flag.get_id().as_str(), "help" | "version")
}

fn default(flag: &Arg) -> String {
    if !flag.get_action().takes_values() {
        return String::new();
    }
    let told =
        flag.get_default_values().iter().filter_map(|value| value.to_str()).collect::<Vec<_>>().join(",");
    match help(flag).split_once("[default: ") {
        Some((_, rest)) if told.is_empty() => rest.split(']').next().unwrap_or_default().to_owned(),
        _ => told,
    }
}

fn help(flag: &Arg) -> String {
    flag.get_long_help().or(flag.get_help()).map(ToString::to_string).unwrap_or_default()
}

fn spelt(flag: &Arg) -> String {
    let values = flag.get_value_names().unwrap_or_default().iter().map(ToString::to_string);
    let values = values.collect::<Vec<_>>().join(" ");
    let takes_value = flag.get_action().takes_values();
    let mut names = Vec::new();
    names.extend(flag.get_short().map(|letter| format!("-{letter}")));
    names.extend(flag.get_long().map(|word| format!("--{word}")));
    match (names.is_empty(), takes_value) {
        (true, _) => code(&format!("<{values}>")),
        (false, true) => code(&format!("{} {values}", names.join(", "))),
        (false, false) => code(&names.join(", ")),
    }
}

fn about(flag: &Arg) -> String {
    // Settings carry their variable and their default in their words.
    let help = help(flag);
    let mut about = sentence(help.split(" [env: ").next().unwrap_or_default());
    let choices: Vec<String> = flag
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| code(value.get_name()))
        .collect();
    if flag.get_action().takes_values() && !choices.is_empty() {
        about.push_str(&format!(" One of {}.", choices.join(", ")));
    }
    if flag.is_required_set() {
        about.push_str(" Required.");
    }
    about
}
