//! `ostler version`: this program's, and the server's if one answers.

use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;

use crate::{app::App, clock, error::CommandError, exit::Exit};

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

/// Nobody waits longer for a version.
const PATIENCE: Duration = Duration::from_secs(5);

const OWN: &str = env!("CARGO_PKG_VERSION");

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    if arguments.output == Format::Text {
        app.output.data(format!("ostler {OWN}"))?;
    }
    let server = server(app).await;
    match (arguments.output, &server) {
        (Format::Json, _) => {
            let server = server.map(|(url, version)| json!({ "version": version, "url": url }));
            app.output.json(&json!({ "client": { "version": OWN }, "server": server }))?;
        }
        (Format::Text, Some((url, Some(version)))) => {
            app.output.data(format!("server {version} at {url}"))?;
        }
        (Format::Text, Some((url, None))) => {
            app.output.data(format!("server at {url}, which does not take this token"))?;
        }
        (Format::Text, None) => {}
    }
    Ok(Exit::Ok)
}

/// Where it is, and its version if it tells us. None if there is no server, or none that answers: then this program's
/// version is the whole answer.
async fn server(app: &App) -> Option<(String, Option<String>)> {
    let client = app.client().ok()?;
    let url = client.base_url().trim_end_matches('/').to_owned();
    let answer = tokio::select! {
        answer = client.version() => answer,
        () = app.runtime.sleep(PATIENCE) => {
            app.output.note(format!("{url} did not answer within {}", clock::took(PATIENCE)));
            return None;
        }
    };
    match answer {
        Ok(version) => Some((url, Some(version.version))),
        Err(error) => {
            error.problem().is_some_and(|problem| matches!(problem.status, 401 | 403)).then_some((url, None))
        }
    }
}
