//! `ostler events`: a task's log as it is, or what happens on the server.

mod server;

use futures_util::StreamExt;
use ostler_client::{Client, EventView, Followed};
use ostler_spec::Kind;

use super::{missing::or_explain, target};
use crate::{
    app::App, clock, error::CommandError, exit::Exit, follow::keep_trying, format::Plain, paint::Tone, text,
    words,
};

/// Prints a task's log for programs: each event once, in order; without a task, what happens on the server
///
/// Sequence numbers have no gaps, so a reader that remembers the last one goes on with --after. Without a task, events
/// of the namespace are shown as they come, until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The task, by name or uid
    #[arg(required_unless_present = "follow")]
    task: Option<String>,

    /// Go on until the task has ended; without a task, until Ctrl-C
    #[arg(short, long, visible_short_alias = 'w', visible_alias = "watch")]
    follow: bool,

    /// From all namespaces
    #[arg(short = 'A', long, conflicts_with = "task")]
    all_namespaces: bool,

    /// Only what stands behind this sequence number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,

    /// A table, or one JSON object per line
    #[arg(short, long, value_enum, default_value_t = Plain::Table)]
    output: Plain,
}

const EXAMPLES: &str = "\
Examples:
  ostler events hello-world
  ostler events hello-world -f -o json | jq .body.type
  ostler events hello-world --after 12
  ostler events -w                       # what happens in the namespace
  ostler events -w -A -o json";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let Arguments { task, follow, all_namespaces, after, output: format } = arguments;
    let task = task.map(|task| target::task(&task)).transpose()?;
    let client = app.client()?;
    let Some(task) = task else {
        let client = if all_namespaces { client.in_namespace("*") } else { client };
        let look = server::Look { after, format, with_namespace: all_namespaces };
        return server::watch(app, &client, &look).await;
    };
    let printer = Printer { app, format };
    if follow {
        follow_events(&client, &task, after, printer).await?;
    } else {
        let events = read(&client, &task, after).await?;
        printer.head()?;
        events.iter().try_for_each(|event| printer.event(event))?;
    }
    Ok(Exit::Ok)
}

async fn read(client: &Client, task: &str, after: u64) -> Result<Vec<EventView>, CommandError> {
    const AT_ONCE: usize = 1000;
    let mut events: Vec<EventView> = Vec::new();
    loop {
        let after = events.last().map_or(after, |event| event.seq);
        let page = client.events(task, after, Some(AT_ONCE)).await;
        let page = or_explain(client, Kind::Task, task, page).await?;
        let is_last = page.items.len() < AT_ONCE;
        events.extend(page.items);
        if is_last {
            return Ok(events);
        }
    }
}

async fn follow_events(
    client: &Client,
    task: &str,
    after: u64,
    printer: Printer<'_>,
) -> Result<(), CommandError> {
    let mut stream = client.follow(task, after);
    let mut is_first = true;
    while let Some(item) = stream.next().await {
        match or_explain(client, Kind::Task, task, item).await? {
            Followed::Event(event) => {
                if std::mem::take(&mut is_first) {
                    printer.head()?;
                }
                printer.event(&event)?;
            }
            Followed::Reconnecting { attempt, wait, error } => {
                let why = keep_trying(attempt, error)?;
                printer.app.output.note(format!("{why}; trying again in {}", clock::took(wait)));
            }
            Followed::Delta(_) => {}
        }
    }
    Ok(())
}

struct Printer<'a> {
    app: &'a App,
    format: Plain,
}

impl Printer<'_> {
    fn head(&self) -> Result<(), CommandError> {
        match self.format {
            Plain::Json => Ok(()),
            Plain::Table => {
                let line = columns("SEQ", "TIME", "TYPE", "WHAT");
                self.app.output.data(self.app.output.paint().tone(Tone::Strong, &line))
            }
        }
    }

    fn event(&self, event: &EventView) -> Result<(), CommandError> {
        if self.format == Plain::Json {
            return self.app.output.json_line(event);
        }
        let words = text::one_line(&words::event(event));
        let line = columns(&event.seq.to_string(), &clock::print(event.at_ms), event.name(), &words);
        let terminal = self.app.output.terminal;
        if !terminal.stdout.is_terminal {
            return self.app.output.data(line);
        }
        let ellipsis = if terminal.is_utf8 { "…" } else { "..." };
        self.app.output.data(text::cut(&line, terminal.size().columns, ellipsis))
    }
}

/// Wide enough for what they hold, so that a line never has to wait for the next one.
fn columns(seq: &str, time: &str, kind: &str, what: &str) -> String {
    format!("{seq:<4}   {time:<24}   {kind:<15}   {what}")
}
