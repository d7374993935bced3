//! `ostler trace`: a task's steps as a waterfall.

use clap::ValueEnum;
use ostler_client::TaskView;
use ostler_spec::Kind;

use super::{missing::or_explain, target};
use crate::{
    app::App,
    clock,
    error::CommandError,
    exit::Exit,
    paint::Tone,
    text,
    trace::{
        Trace,
        document::Document,
        waterfall::{self, Canvas},
    },
    words,
};

/// Draws where a task's time went: one row per step
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The task, by name or uid
    task: String,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A bar for each step
    Text,
    /// Attempts and their steps, with times in milliseconds
    Json,
    /// The same
    Yaml,
}

const EXAMPLES: &str = "\
Examples:
  ostler trace hello-world
  COLUMNS=200 ostler trace hello-world > trace.txt
  ostler trace hello-world -o json | jq '.attempts[].steps[] | {name, took_ms}'";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let name = target::task(&arguments.task)?;
    let client = app.client()?;
    let task = or_explain(&client, Kind::Task, &name, client.task(&name).await).await?;
    let events = client.all_events(&task.metadata.uid).await?;
    let steps = if task.is_ended() { Vec::new() } else { client.steps(&task.metadata.uid).await? };
    let trace = Trace::new(&events, &steps, app.now_ms());
    match arguments.output {
        Format::Text => draw(app, &task, trace),
        Format::Json => app.output.json(&Document::new(&task, trace.as_ref())),
        Format::Yaml => app.output.yaml(&Document::new(&task, trace.as_ref())),
    }?;
    Ok(Exit::Ok)
}

fn draw(app: &App, task: &TaskView, trace: Option<Trace>) -> Result<(), CommandError> {
    let columns = app.output.terminal.size().columns;
    title(app, task, trace.as_ref(), columns)?;
    let Some(trace) = trace else {
        app.output.note("nobody has begun to work on it");
        return Ok(());
    };
    app.output.data("")?;
    let canvas = Canvas { columns, paint: app.output.paint(), is_utf8: app.output.terminal.is_utf8 };
    waterfall::lines(&trace, canvas).iter().try_for_each(|line| app.output.data(line))
}

/// `hello-1  succeeded  agent hello  queued 3ms  worked 1.42s  231 tokens`
fn title(app: &App, task: &TaskView, trace: Option<&Trace>, columns: usize) -> Result<(), CommandError> {
    let TaskView { metadata, spec, status, .. } = task;
    let worker = match &spec.system {
        Some(system) => format!("system {}", text::one_line(system)),
        None => format!("agent {}", text::one_line(&spec.agent)),
    };
    let paint = app.output.paint();
    let mut facts = worker;
    if let Some(trace) = trace {
        let queued = clock::parse(&metadata.created_at).map(|created| trace.start_ms.saturating_sub(created));
        let queued = queued.map_or_else(String::new, |ms| format!("  queued {}", clock::took_ms(ms)));
        let span = clock::took_ms(trace.end_ms.saturating_sub(trace.start_ms));
        facts = format!("{facts}{queued}  worked {span}  {}", words::tokens(&status.usage));
    }
    let name = paint.tone(Tone::Strong, &text::one_line(&metadata.name));
    let state = paint.tone(Tone::of_state(&status.state), &status.state);
    let taken = text::width(&metadata.name) + 2 + text::width(&status.state) + 2;
    if taken + text::width(&facts) <= columns {
        return app.output.data(format!("{name}  {state}  {facts}"));
    }
    app.output.data(format!("{name}  {state}"))?;
    app.output.data(facts)
}
