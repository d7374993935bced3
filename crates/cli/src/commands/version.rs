//! `ostler version`: this program's, and the server's if one answers.

use clap::ValueEnum;
use ostler_client::Version;
use serde_json::json;

use crate::{app::App, error::CommandError, exit::Exit};

/// Prints the version of this program; and the server's, if one answers
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  ostler version
  ostler version -o json";

const OWN: &str = env!("CARGO_PKG_VERSION");

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let server = server(app).await;
    match arguments.output {
        Format::Json => {
            let server = server.map(|(url, version)| json!({ "version": version.version, "url": url }));
            app.output.json(&json!({ "client": { "version": OWN }, "server": server }))?;
        }
        Format::Text => {
            app.output.data(format!("ostler {OWN}"))?;
            if let Some((url, version)) = server {
                app.output.data(format!("server {} at {url}", version.version))?;
            }
        }
    }
    Ok(Exit::Ok)
}

/// None if there is no server, or none that talks to us: then this program's version is the whole answer.
async fn server(app: &App) -> Option<(String, Version)> {
    let client = app.client().ok()?;
    let version = client.version().await.ok()?;
    Some((client.base_url().trim_end_matches('/').to_owned(), version))
}
