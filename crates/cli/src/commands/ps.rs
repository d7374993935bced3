//! `ostler ps`: the tasks that are under way; with `-w`, as they begin and end.

mod watch;

use futures_util::{StreamExt, stream};
use ostler_client::{Client, EventBody, TaskQuery, TaskView, view::TaskStatus};

use super::listing::there_are_more;
use crate::{
    app::App,
    clock,
    error::CommandError,
    exit::Exit,
    format::Format,
    paint::Tone,
    table::{Cell, Table},
};

/// Lists the tasks that are under way
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Those that have ended too
    #[arg(short, long)]
    all: bool,

    /// From all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Only those with these labels: team=a,tier!=test,owner,!old
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = super::selector)]
    selector: Option<String>,

    /// Go on and show what changes, until Ctrl-C; with -o json one object per line
    #[arg(short, long)]
    watch: bool,

    /// How to print them
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,

    /// At most so many, the newest first
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = super::at_least_one)]
    limit: usize,
}

const EXAMPLES: &str = "\
Examples:
  ostler ps
  ostler ps -a --limit 20
  ostler ps -l team=sales -o json
  ostler ps -w                 # rows as they change
  ostler ps -w -o json | jq -r '.resource.status.state'";

const LIVE: [&str; 4] = ["queued", "running", "waiting", "sleeping"];

/// Tasks asked about at a time.
const AT_ONCE: usize = 8;

/// A look at the end of a log this long nearly always says at which step its task is.
const TAIL: usize = 8;

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let mut client = app.client()?;
    if arguments.all_namespaces {
        client = client.in_namespace("*");
    }
    if arguments.watch {
        return watch::run(&arguments, &client, app).await;
    }
    let (tasks, has_more) = list(&client, &arguments).await?;
    if tasks.is_empty() && arguments.output.is_table() {
        let what =
            if arguments.all { "no tasks" } else { "no tasks under way; -a shows those that have ended" };
        app.output.note(what);
        return Ok(Exit::Ok);
    }
    let steps: Vec<Option<u32>> = match arguments.output.is_table() {
        true => steps(&client, &tasks).await,
        false => Vec::new(),
    };
    let name = |task: &TaskView| format!("task/{}", task.metadata.name);
    arguments
        .output
        .print(app.output, &tasks, name, |wide| table(&tasks, &steps, arguments.look(wide, app)))?;
    if has_more {
        app.output.note(there_are_more(tasks.len()));
    }
    Ok(Exit::Ok)
}

async fn list(client: &Client, arguments: &Arguments) -> Result<(Vec<TaskView>, bool), CommandError> {
    let states = if arguments.all { Vec::new() } else { LIVE.map(str::to_owned).to_vec() };
    let mut query = TaskQuery { states, selector: arguments.selector.clone(), ..TaskQuery::default() };
    let mut tasks = Vec::new();
    while tasks.len() < arguments.limit {
        query.limit = Some((arguments.limit - tasks.len()).min(1000));
        let page = client.tasks(&query).await?;
        tasks.extend(page.items);
        query.before = page.next;
        if query.before.is_none() {
            break;
        }
    }
    Ok((tasks, query.before.is_some()))
}

async fn steps(client: &Client, tasks: &[TaskView]) -> Vec<Option<u32>> {
    stream::iter(tasks).map(|task| step(client, task)).buffered(AT_ONCE).collect().await
}

/// The step it is at, as the end of its log tells it.
async fn step(client: &Client, task: &TaskView) -> Option<u32> {
    let after = task.status.last_event.saturating_sub(TAIL as u64);
    let home = client.clone().in_namespace(&task.metadata.namespace);
    // It may be gone by now; then there is nothing to tell.
    let tail = home.events(&task.metadata.uid, after, Some(TAIL)).await.ok()?;
    tail.items
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::AttemptStarted { step, .. } => Some(*step),
            EventBody::StepFinished(done) => {
                done.opened.iter().map(|opened| opened.step).chain([done.step]).max()
            }
            _ => None,
        })
        .max()
}

impl Arguments {
    fn look(&self, wide: bool, app: &App) -> Look {
        Look { wide, with_namespace: self.all_namespaces, now_ms: app.now_ms() }
    }
}

#[derive(Debug, Clone, Copy)]
struct Look {
    wide: bool,
    with_namespace: bool,
    now_ms: i64,
}

fn table(tasks: &[TaskView], steps: &[Option<u32>], look: Look) -> Table {
    let namespace = look.with_namespace.then_some("NAMESPACE");
    let more: &[&str] = if look.wide { &["SESSION", "PRIORITY", "LABELS", "UID"] } else { &[] };
    let usual = ["NAME", "SUBJECT", "STATE", "STEP", "AGE", "TOKENS"];
    let mut table = Table::new(namespace.into_iter().chain(usual).chain(more.iter().copied()));
    for (task, step) in tasks.iter().zip(steps) {
        table.row(row(task, *step, look));
    }
    table
}

fn row(task: &TaskView, step: Option<u32>, look: Look) -> Vec<Cell> {
    let TaskView { metadata, spec, status, .. } = task;
    let mut cells = Vec::new();
    if look.with_namespace {
        cells.push(Cell::new(&metadata.namespace));
    }
    let age = clock::parse(&metadata.created_at).map_or_else(String::new, |at| clock::age(at, look.now_ms));
    cells.extend([
        Cell::new(&metadata.name),
        Cell::new(task.subject()),
        Cell::toned(state(status), state_tone(&status.state)),
        Cell::new(step.map_or_else(String::new, |step| step.to_string())),
        Cell::new(age),
        Cell::new(status.usage.total().to_string()),
    ]);
    if look.wide {
        let labels = metadata.labels.iter().map(|(key, value)| format!("{key}={value}"));
        cells.extend([
            Cell::new(spec.session.as_deref().unwrap_or_default()),
            Cell::new(&spec.priority),
            Cell::new(labels.collect::<Vec<_>>().join(",")),
            Cell::new(&metadata.uid),
        ]);
    }
    cells
}

/// The state, and of a task that sleeps on a failure what that is.
fn state(status: &TaskStatus) -> String {
    match status.sleeping.as_ref().and_then(|sleeping| sleeping.error.as_ref()) {
        Some(error) => format!("{} ({})", status.state, error.code),
        None => status.state.clone(),
    }
}

fn state_tone(state: &str) -> Tone {
    if state == "running" { Tone::Model } else { Tone::of_state(state) }
}
