//! `ostler logs`: the log of a task in words, or of an agent over its tasks.

use futures_util::StreamExt;
use ostler_client::{Client, EventView, Followed};
use ostler_spec::Kind;

use super::{
    missing::{or_explain, or_offer},
    target::Target,
};
use crate::{app::App, clock, error::CommandError, exit::Exit, follow::keep_trying, paint::Tone, words};

/// Prints the log of a task, or of an agent's last tasks
///
/// Long texts are shortened, in a pipe too: the whole answer is in `ostler get task NAME -o yaml`, what agents told each
/// other in `ostler events NAME -o json`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The task, by name or uid; or an agent, as agent/NAME
    #[arg(value_name = "TASK")]
    what: String,

    /// Go on until the task has ended
    #[arg(short, long)]
    follow: bool,
}

const EXAMPLES: &str = "\
Examples:
  ostler logs hello-world
  ostler logs -f hello-world
  ostler logs agent/hello
  ostler events hello-world -o json           # the same log for programs";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let Arguments { what, follow } = arguments;
    let (kind, name) = match what.contains('/') {
        true => named(&what)?,
        false => (Kind::Task, what),
    };
    match (kind, follow) {
        (Kind::Task, true) => follow_task(app, &client, &name).await,
        (Kind::Task, false) => {
            let events = client.all_events(&name).await;
            let events = or_offer(&client, (kind, &name), (Kind::Agent, "logs"), events).await?;
            events.iter().try_for_each(|event| print(app, event))?;
            Ok(Exit::Ok)
        }
        (Kind::Agent, false) => {
            let log = or_explain(&client, kind, &name, client.agent_logs(&name).await).await?;
            log.logs.iter().try_for_each(|line| app.output.data(line))?;
            Ok(Exit::Ok)
        }
        (Kind::Agent, true) => {
            Err(CommandError::new(Exit::Usage, "the log of an agent is not followed, only that of a task")
                .with_remedy("`ostler events -w` tells of all of them as they go on"))
        }
        (other, _) => {
            let message = format!("{} have no log", other.plural());
            Err(CommandError::new(Exit::Usage, message).with_remedy("name a task, or agent/NAME"))
        }
    }
}

/// `agent/hello`.
fn named(what: &str) -> Result<(Kind, String), CommandError> {
    let Target { kind, name } = Target::new(what, None)?;
    Ok((kind, name.unwrap_or_default()))
}

async fn follow_task(app: &App, client: &Client, task: &str) -> Result<Exit, CommandError> {
    let mut stream = client.follow(task, 0);
    while let Some(item) = stream.next().await {
        match or_offer(client, (Kind::Task, task), (Kind::Agent, "logs"), item).await? {
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
