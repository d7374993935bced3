//! `ostler release`: lets a quarantined task go on.

use ostler_client::Client;

use super::each_task::each_task;
use crate::{app::App, error::CommandError, exit::Exit};

/// Lets quarantined tasks go on
///
/// A run that lost its worker twenty times in a row, or saw it crash and start again a hundred times, without a step
/// finished in between, may be what kills it: it waits until a person has had a look. So does one whose plan the
/// server can't read. `ostler get task NAME -o yaml` says why it waits.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  ostler release nightly-report\n  ostler cancel nightly-report        # rather end it"
)]
pub struct Arguments {
    /// The tasks, by name or uid
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<String>,
}

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let release = async |client: &Client, task: &str| client.release(task).await.map(Some);
    each_task(app, &arguments.tasks, "released", release).await
}
