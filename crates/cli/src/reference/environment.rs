//! The page of settings and variables: the table of settings, and what every command looks at.

use clap::CommandFactory;

use super::markdown::{Table, code, sentence};
use crate::{
    args::{self, Arguments},
    settings::table::{self, Group},
};

const INTRODUCTION: &str = "\
# Settings and environment

## Settings

`ostler up`, `ostler server` and `ostler worker` are told these by a flag, a variable or a file: the first of them that says
something counts, then the default. The file is named by `--config` or `OSTLER_CONFIG`; without them it is `config.yaml` in the data
folder. `ostler config show` tells each value and where it comes from.
[deploy/config.example.yaml](../../deploy/config.example.yaml) is a whole file.
";

const VARIABLES: &str = "
## Variables of every command
";

const COLLECTOR: &str = "
## Variables about a collector

`ostler up`, `ostler server` and `ostler worker` read those of OpenTelemetry ([observe](../guides/observe.md)).
";

/// What stands in no table: looked at where it is needed.
const OTHERS: [(&str, &str); 4] = [
    ("OSTLER_CONFIG", "The file of settings, as --config"),
    ("OSTLER_WORKER_TOKEN", "The token that `ostler worker` shows, instead of one in a file"),
    ("OSTLER_SETUP_TOKEN", "The token that makes the first user, instead of one in a file"),
    (
        "OSTLER_SECRET_NAME",
        "The secret `name` that a ModelEndpoint of the namespace `default` names (auth.secretRef), in capitals, other \
         characters as _; for one of the namespace `team`, OSTLER_SECRET_TEAM__NAME",
    ),
];

pub fn page() -> String {
    format!("{INTRODUCTION}{}{VARIABLES}\n{}{COLLECTOR}\n{}", settings(), variables(), collector())
}

fn settings() -> String {
    let groups = [
        (Group::Server, "Of a server (`up`, `server`)"),
        (Group::Worker, "Of a worker (`up`, `worker`)"),
        (Group::Link, "How a worker finds its server (`worker`)"),
        (Group::Shared, "Of both ends"),
        (Group::Network, "Of calls to models and tools (`up`, `worker`)"),
        (Group::Log, "Of the log"),
    ];
    let mut text = String::new();
    for (group, title) in groups {
        let mut rows = Table::new(["In the file", "Flag", "Variable", "Default", "What it does"]);
        for setting in table::all().filter(|setting| setting.group == group) {
            let value = if setting.is_switch() { String::new() } else { format!(" {}", setting.value) };
            rows.row([
                code(setting.key),
                code(&format!("--{}{value}", setting.flag)),
                code(setting.variable),
                code(setting.default.unwrap_or_default()),
                sentence(setting.help),
            ]);
        }
        text.push_str(&format!("\n### {title}\n\n{}", rows.text()));
    }
    text
}

fn collector() -> String {
    let mut table = Table::new(["Variable", "Default", "What it says"]);
    for (name, default, about) in ostler_worker::telemetry::VARIABLES {
        table.row([code(name), code(default), sentence(about)]);
    }
    table.text()
}

fn variables() -> String {
    let command = Arguments::command();
    let flags = command.get_arguments().filter_map(|flag| {
        let name = flag.get_env()?.to_str()?.to_owned();
        Some((name, flag.get_help().map(ToString::to_string).unwrap_or_default()))
    });
    let mut rows: Vec<(String, String)> = flags.collect();
    let others = OTHERS.map(|(name, about)| (name.to_owned(), about.to_owned()));
    for (name, about) in told().into_iter().chain(others) {
        if !rows.iter().any(|(known, _)| *known == name) {
            rows.push((name, about));
        }
    }
    let mut table = Table::new(["Variable", "What it says"]);
    for (names, about) in rows {
        table.row([names.split(", ").map(code).collect::<Vec<_>>().join(", "), sentence(&about)]);
    }
    table.text()
}

/// What `--help` says of them: names, and what is said of them behind two blanks or on the lines below.
fn told() -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for line in args::VARIABLES.lines().filter_map(|line| line.strip_prefix("  ")) {
        match (rows.last_mut(), line.starts_with(' ')) {
            (Some((_, about)), true) => *about = format!("{about} {}", line.trim()),
            _ => {
                let (names, about) = line.split_once("  ").unwrap_or((line, ""));
                rows.push((names.to_owned(), about.trim().to_owned()));
            }
        }
    }
    rows
}
