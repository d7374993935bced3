//! The commands as `ostler --help` lists them: by what they are for, each in a line.

use clap::{Command, builder::StyledStr};

/// Every command is in one of these; a test looks.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Begin", &["up", "init", "doctor", "help"]),
    ("Declare", &["validate", "diff", "apply", "get", "describe", "edit", "delete", "graph"]),
    (
        "Run",
        &["run", "ps", "top", "logs", "events", "trace", "wait", "cancel", "retry", "release", "archive"],
    ),
    ("Operate", &["server", "worker", "workers", "cordon", "uncordon", "drain", "backup"]),
    ("Let others in", &["token", "user", "secret"]),
    ("This program", &["profile", "config", "completion", "version"]),
];

/// The command line, with its commands grouped in place of one long list.
pub fn grouped(command: Command) -> Command {
    let (strong, literal) = (*command.get_styles().get_header(), *command.get_styles().get_literal());
    let widest = names().map(str::len).max().unwrap_or_default();
    let mut list = String::new();
    for (title, names) in GROUPS {
        list.push_str(&format!("\n{strong}{title}:{strong:#}\n"));
        for inner in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let gap = " ".repeat(widest - inner.get_name().len());
            list.push_str(&format!("  {literal}{}{literal:#}{gap}  {}\n", inner.get_name(), short(inner)));
        }
    }
    let options = format!("{strong}Options:{strong:#}\n{{options}}{{after-help}}");
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\n{options}");
    command.help_template(StyledStr::from(template))
}

fn names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// What it does, up to the first pause for breath: the rest is for its own help.
fn short(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    about.split([':', ';']).next().unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn every_command_is_in_one_group_and_fits_a_line() {
        let command = Arguments::whole();
        let shown: Vec<&Command> = command.get_subcommands().filter(|inner| !inner.is_hide_set()).collect();
        let known: BTreeSet<&str> = shown.iter().map(|inner| inner.get_name()).collect();
        assert_eq!(names().collect::<BTreeSet<_>>(), known);
        assert_eq!(names().count(), known.len(), "one is in two groups");
        for inner in shown {
            assert!(short(inner).len() <= 66, "{} is too long for 80 columns", short(inner));
        }
    }
}
