//! `ostler config`: the settings, and where they come from.

use clap::{Subcommand, ValueEnum};
use serde::Serialize;

use crate::{
    app::App,
    config::{Resolved, Said},
    error::CommandError,
    exit::Exit,
    settings::{AllFlags, Settings},
    table::Table,
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
/// which server commands go to: there a flag counts before a variable, then a profile, then the data folder.
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

#[derive(Serialize)]
struct Row {
    setting: &'static str,
    value: Option<String>,
    from: String,
}

const EXAMPLES: &str = "\
Examples:
  ostler config show
  ostler config show --config /etc/ostler/config.yaml -o json";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let Command::Show(arguments) = arguments.command;
    let settings = Settings::gather(&arguments.flags.0, &app.written.data_folder())?;
    let settings = settings.all().map(|(setting, said)| Row {
        setting: setting.key,
        value: said.map(|said| setting.shown(&said.text)),
        from: said.map_or_else(|| "not set".to_owned(), |said| said.source.to_string()),
    });
    let rows = client_rows(app)?.into_iter().chain(settings);
    match arguments.output {
        Format::Table => {
            let mut table = Table::new(["SETTING", "VALUE", "FROM"]);
            for row in rows {
                table.row([row.setting.into(), row.value.unwrap_or_default().into(), row.from.into()]);
            }
            app.output.table(&table)?;
        }
        Format::Json => app.output.json(&rows.collect::<Vec<_>>())?,
    }
    Ok(Exit::Ok)
}

/// Which server commands go to, and as whom. A token is not shown.
fn client_rows(app: &App) -> Result<Vec<Row>, CommandError> {
    let Resolved { profile, server, token, namespace, ca, .. } = app.written.resolve()?;
    let row = |setting, said: Option<Said>| Row {
        setting,
        from: said.as_ref().map_or_else(|| "not set".to_owned(), |said| said.from.clone()),
        value: said.map(|said| said.text),
    };
    let token = token.ok().map(|token| Said { text: "***".to_owned(), ..token });
    Ok(vec![
        row("client.profile", profile),
        row("client.server", server.ok()),
        row("client.token", token),
        row("client.namespace", Some(namespace)),
        row("client.ca", ca),
    ])
}
