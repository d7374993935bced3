//! `ostler archive`: puts tasks away.

use super::each_task::each_task;
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
    each_task(app, &arguments.tasks, "archived", async |client, task| client.archive(task).await).await
}
