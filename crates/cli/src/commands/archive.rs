//! `ostler archive`: puts tasks away.

use super::apply::{is_about_the_server, tell};
use crate::{app::App, error::CommandError, exit::Exit};

/// Puts tasks that have ended away: lists leave them out, nothing is deleted
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The tasks, by name or uid
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  ostler archive hello-world
  ostler get tasks -o name | cut -d/ -f2 | xargs ostler archive";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let mut exit = Exit::Ok;
    for task in &arguments.tasks {
        match client.archive(task).await {
            Ok(done) => app.output.data(format!("task/{} archived", done.metadata.name))?,
            // The others are still to be done.
            Err(error) if !is_about_the_server(&error) => {
                exit = Exit::Error;
                tell(app, error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(exit)
}
