//! `ostler release`: lets a quarantined task go on.

use super::apply::{is_about_the_server, tell};
use crate::{app::App, error::CommandError, exit::Exit};

/// Lets quarantined tasks go on
///
/// A run that lost its worker twenty times in a row, without a step finished in between, may be what kills them: it
/// waits until a person has had a look. `ostler get task NAME -o yaml` says why it waits.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  ostler release nightly-report\n  ostler cancel nightly-report        rather end it"
)]
pub struct Arguments {
    /// The tasks, by name or uid
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<String>,
}

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let mut exit = Exit::Ok;
    for task in &arguments.tasks {
        match client.release(task).await {
            Ok(done) => app.output.data(format!("task/{} released", done.metadata.name))?,
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
