//! `ostler cancel`: stops a task.

use ostler_client::Client;

use super::each_task::each_task;
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
    let reason = arguments.reason.as_deref();
    let cancel = async |client: &Client, task: &str| client.cancel(task, reason).await.map(Some);
    each_task(app, &arguments.tasks, "cancelled", cancel).await
}
