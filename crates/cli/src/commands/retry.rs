//! `ostler retry`: asks for the same again.

use super::run::{Format, watch};
use crate::{app::App, error::CommandError, exit::Exit};

/// Asks for the same again: a new task with the request of one that has ended
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The task, by name or uid
    task: String,

    /// Follow the new task live, as `ostler run` does
    #[arg(short, long)]
    follow: bool,

    /// What to print at the end of following: the answer, or the whole task
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  ostler retry hello-world
  ostler retry hello-world --follow";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let task = client.retry(&arguments.task).await?;
    if arguments.follow {
        return watch(app, &client, &task, arguments.output).await;
    }
    match arguments.output {
        Format::Text => app.output.data(format!("task/{} created", task.metadata.name))?,
        Format::Json => app.output.json(&task)?,
    }
    Ok(Exit::Ok)
}
