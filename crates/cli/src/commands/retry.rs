//! `ostler retry`: asks for the same again.

use ostler_spec::Kind;

use super::{
    missing::or_explain,
    run::{Format, key_value, watch},
    target,
};
use crate::{app::App, error::CommandError, exit::Exit};

/// Asks for the same again: a new task with the request of one that has ended
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The task, by name or uid
    task: String,

    /// Other input than it had, may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,

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
  ostler retry hello-world --follow
  ostler retry report-1 --set quarter=Q4";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let name = target::task(&arguments.task)?;
    let client = app.client()?;
    let input = arguments.set.into_iter().collect();
    let task = client.retry(&name, &input).await;
    let task = or_explain(&client, Kind::Task, &name, task).await?;
    if arguments.follow {
        return watch(app, &client, &task, arguments.output).await;
    }
    match arguments.output {
        Format::Text => app.output.data(format!("task/{} created", task.metadata.name))?,
        Format::Json => app.output.json(&task)?,
    }
    Ok(Exit::Ok)
}
