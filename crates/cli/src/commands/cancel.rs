//! `ostler cancel`: stops a task.

use super::apply::{is_about_the_server, tell};
use crate::{app::App, error::CommandError, exit::Exit};

/// Stops tasks, whatever they are doing
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The tasks, by name or uid
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<String>,

    /// Why; it stands in the task's log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  ostler cancel hello-world
  ostler cancel hello-world --reason \"wrong customer\"";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let mut exit = Exit::Ok;
    for task in &arguments.tasks {
        match client.cancel(task, arguments.reason.as_deref()).await {
            Ok(done) => app.output.data(format!("task/{} cancelled", done.metadata.name))?,
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
