//! `ostler config`: the settings, and where they come from.

use std::{env, path::PathBuf};

use clap::{Subcommand, ValueEnum};
use serde::Serialize;

use crate::{
    app::App,
    config::{Resolved, Said},
    error::CommandError,
    exit::Exit,
    paint::Tone,
    settings::{AllFlags, Gathered, SECRET_KEY, SETUP_TOKEN, Source, WORKER_TOKEN},
    table::{Cell, Table},
};

/// Shows where commands go, and the settings of servers and workers
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Show(ShowArguments),
}

/// Every setting with its value, and where that comes from
///
/// A flag counts before a variable, a variable before the file, the file before the default. The file is named by
/// --config or OSTLER_CONFIG; without them it is config.yaml in the data folder, if there is one. The first lines tell
/// which server commands go to: there a flag counts before a variable, then a profile, then the data folder. What is
/// wrong with the settings is marked, and told below them; then it ends with 2, as a server would.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
struct ShowArguments {
    #[command(flatten)]
    flags: AllFlags,

    /// How to show them
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Table,
    Json,
}

#[derive(Clone, Serialize)]
struct Row {
    setting: &'static str,
    value: Option<String>,
    from: String,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mistake: Option<String>,
}

const NOT_SET: &str = "not set";

/// Stands for what is secret.
const HIDDEN: &str = "***";

/// Marks a setting with which something is wrong.
const MARK: &str = " (!)";

const EXAMPLES: &str = "\
Examples:
  ostler config show
  ostler config show --config /etc/ostler/config.yaml -o json";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let Command::Show(arguments) = arguments.command;
    let gathered = Gathered::from(&arguments.flags.0, &app.written.data_folder());
    let client = client_rows(app);
    let rows = client.as_deref().unwrap_or_default().iter().cloned();
    let rows: Vec<_> = rows.chain(place_rows(app, &gathered)).chain(setting_rows(&gathered)).collect();
    match arguments.output {
        Format::Table => app.output.table(&table(rows))?,
        Format::Json => app.output.json(&rows)?,
    }
    let complaint = gathered.complaint();
    if let (Err(error), Some(_)) = (&client, &complaint) {
        app.output.tell(error);
    }
    complaint.map_or(client.map(|_| Exit::Ok), Err)
}

fn table(rows: Vec<Row>) -> Table {
    let mut table = Table::new(["SETTING", "VALUE", "FROM"]);
    for Row { setting, value, from, mistake } in rows {
        let setting = match mistake {
            Some(_) => Cell::toned(format!("{setting}{MARK}"), Tone::Bad),
            None => setting.into(),
        };
        table.row([setting, Cell::path(value.unwrap_or_default()), Cell::path(from)]);
    }
    table
}

/// Which server commands go to, and as whom. A token is not shown.
fn client_rows(app: &App) -> Result<Vec<Row>, CommandError> {
    let Resolved { profile, server, token, namespace, ca, .. } = app.written.resolve()?;
    let token = token.ok().map(|token| Said { text: HIDDEN.to_owned(), ..token });
    Ok(vec![
        Row::of("client.profile", profile),
        Row::of("client.server", server.ok()),
        Row::of("client.token", token),
        Row::of("client.namespace", Some(namespace)),
        Row::of("client.ca", ca),
    ])
}

/// What servers and workers are told beside their settings: where these are, and what stands in variables alone.
fn place_rows(app: &App, gathered: &Gathered) -> Vec<Row> {
    let said =
        |(path, from): &(PathBuf, Source)| Said { text: path.display().to_string(), from: from.to_string() };
    let mut rows = vec![
        Row::of("data", Some(app.written.said_data_folder())),
        Row::of("config", gathered.file.as_ref().map(said)),
    ];
    rows.extend([WORKER_TOKEN, SETUP_TOKEN, SECRET_KEY].map(|variable| {
        let is_set = env::var_os(variable).is_some_and(|text| !text.is_empty());
        Row::of(variable, is_set.then(|| Said { text: HIDDEN.to_owned(), from: "environment".to_owned() }))
    }));
    rows
}

fn setting_rows(gathered: &Gathered) -> impl Iterator<Item = Row> {
    gathered.settings.all().map(|(setting, said)| Row {
        setting: setting.key,
        value: said.map(|said| setting.shown(&said.text)),
        from: said.map_or_else(|| NOT_SET.to_owned(), |said| said.source.to_string()),
        mistake: gathered.mistake_of(setting),
    })
}

impl Row {
    fn of(setting: &'static str, said: Option<Said>) -> Self {
        let from = said.as_ref().map_or_else(|| NOT_SET.to_owned(), |said| said.from.clone());
        Self { setting, from, value: said.map(|said| said.text), mistake: None }
    }
}
