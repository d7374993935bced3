//! `ostler archive`: puts tasks away.

use ostler_client::Client;

use super::each_task::each_task;
use crate::{app::App, error::CommandError, exit::Exit};

/// Puts tasks that have ended away: lists leave them out, nothing is deleted
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The tasks, by name or uid
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<String>,

    /// Pass over those that have not ended, in place of refusing them
    #[arg(long)]
    ended: bool,
}

const EXAMPLES: &str = "\
Examples:
  ostler archive hello-world
  ostler get tasks -o name | xargs -r ostler archive --ended";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let archive = async |client: &Client, task: &str| match client.archive(task).await {
        Err(error) if arguments.ended && error.code() == Some("task_not_ended") => Ok(None),
        archived => archived.map(Some),
    };
    each_task(app, &arguments.tasks, "archived", archive).await
}
