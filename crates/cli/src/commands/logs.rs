//! `ostler logs`: a task's log in words.

use futures_util::StreamExt;
use ostler_client::{EventView, Followed};
use ostler_spec::Kind;

use super::missing::or_explain;
use crate::{app::App, clock, error::CommandError, exit::Exit, follow::keep_trying, paint::Tone, words};

/// Prints a task's log, one readable line per event
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The task, by name or uid
    task: String,

    /// Go on until the task has ended
    #[arg(short, long)]
    follow: bool,
}

const EXAMPLES: &str = "\
Examples:
  ostler logs hello-world
  ostler logs -f hello-world
`ostler events` prints the same log for programs.";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    if !arguments.follow {
        let events = client.all_events(&arguments.task).await;
        let events = or_explain(&client, Kind::Task, &arguments.task, events).await?;
        events.iter().try_for_each(|event| print(app, event))?;
        return Ok(Exit::Ok);
    }
    let mut stream = client.follow(&arguments.task, 0);
    while let Some(item) = stream.next().await {
        match or_explain(&client, Kind::Task, &arguments.task, item).await? {
            Followed::Event(event) => print(app, &event)?,
            Followed::Reconnecting { attempt, wait, error } => {
                let why = keep_trying(attempt, error)?;
                app.output.note(format!("{why}; trying again in {}", clock::took(wait)));
            }
            Followed::Delta(_) => {}
        }
    }
    Ok(Exit::Ok)
}

fn print(app: &App, event: &EventView) -> Result<(), CommandError> {
    let paint = app.output.paint();
    let time = paint.tone(Tone::Quiet, &clock::print(event.at_ms));
    app.output.data(format!("{time}  {}", paint.tone(words::tone(&event.body), &words::event(event))))
}
