//! `ostler ps -w`: the tasks under way, then a row for each that begins, goes on or ends.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use ostler_client::{Change, ChangeKind, Client, TaskView, WatchQuery, Watched};
use ostler_spec::Kind;
use serde_json::{Value, json};

use super::{Arguments, LIVE, Look, list, step, steps, table};
use crate::{app::App, clock, error::CommandError, exit::Exit, follow::keep_trying, format::Format};

/// Beyond so many, those that have ended are forgotten.
const MOST_SEEN: usize = 10_000;

pub async fn run(arguments: &Arguments, client: &Client, app: &App) -> Result<Exit, CommandError> {
    let mut rows =
        Rows { app, arguments, client, seen: BTreeMap::new(), known_until_ms: None, widths: Vec::new() };
    if arguments.output.is_table() {
        rows.begin().await?;
    }
    let query = WatchQuery { selector: arguments.selector.clone(), ..WatchQuery::default() };
    let mut stream = client.watch(Kind::Task, &query);
    while let Some(item) = stream.next().await {
        match item? {
            Watched::Came(change) => rows.take(change).await?,
            Watched::Reconnecting { attempt, wait, error } => {
                let why = keep_trying(attempt, error)?;
                app.output.note(format!("{why}; trying again in {}", clock::took(wait)));
            }
        }
    }
    Ok(Exit::Ok)
}

struct Rows<'a> {
    app: &'a App,
    arguments: &'a Arguments,
    client: &'a Client,
    /// Those that were shown, as they were last.
    seen: BTreeMap<(String, String), TaskView>,
    /// There are more than were asked for: those that were made before this are shown once they change.
    known_until_ms: Option<i64>,
    widths: Vec<usize>,
}

impl Rows<'_> {
    /// Shows what is there.
    async fn begin(&mut self) -> Result<(), CommandError> {
        let (tasks, has_more) = list(self.client, self.arguments).await?;
        if has_more {
            self.known_until_ms = tasks.iter().filter_map(created_ms).max();
        }
        let table = table(&tasks, &steps(self.client, &tasks).await, self.look());
        let (paint, room) = (self.app.output.paint(), self.app.output.room());
        self.widths = table.steady_widths(room);
        self.app.output.note_left_out(&table, room);
        self.app.output.lines(&table.lines_in(&self.widths, paint, room))?;
        self.seen.extend(tasks.into_iter().map(|task| (key(&task), task)));
        Ok(())
    }

    async fn take(&mut self, change: Change) -> Result<(), CommandError> {
        if change.kind == ChangeKind::Deleted {
            let gone = place(&change.resource).and_then(|place| self.seen.remove(&place));
            return match gone.filter(|task| self.is_wanted(task)) {
                Some(task) => self.show(change.kind, &task).await,
                None => Ok(()),
            };
        }
        // A template is no task, and has no state.
        let task = serde_json::from_value::<TaskView>(change.resource).ok();
        let Some(task) = task.filter(|task| !task.status.state.is_empty()) else { return Ok(()) };
        let is_shown = match self.seen.get(&key(&task)) {
            // Of one change several events may tell, and after a new connection what we know is told again.
            Some(seen) => seen.metadata.resource_version != task.metadata.resource_version,
            None => self.begins_with(change.kind, &task),
        };
        if is_shown {
            self.show(change.kind, &task).await?;
            self.seen.insert(key(&task), task);
        }
        if self.seen.len() > MOST_SEEN {
            let is_wanted = |task: &TaskView| self.arguments.all || is_live(task);
            self.seen.retain(|_, task| is_wanted(task));
        }
        Ok(())
    }

    /// Whether one that was not shown yet is shown now. What has ended counts if that happened before our eyes: only what
    /// was there at first, or is new, is told as added.
    fn begins_with(&self, kind: ChangeKind, task: &TaskView) -> bool {
        let is_old = self.known_until_ms.is_some() && created_ms(task) <= self.known_until_ms;
        kind != ChangeKind::Added || self.is_wanted(task) && !is_old
    }

    fn is_wanted(&self, task: &TaskView) -> bool {
        self.arguments.all || is_live(task)
    }

    async fn show(&mut self, kind: ChangeKind, task: &TaskView) -> Result<(), CommandError> {
        let output = self.app.output;
        match self.arguments.output {
            Format::Json => output.json_line(&json!({ "type": kind, "resource": task })),
            Format::Yaml => {
                output.data("---")?;
                output.yaml(task)
            }
            Format::Name => output.data(format!("task/{} {}", task.metadata.name, task.status.state)),
            Format::Table | Format::Wide => {
                let step = step(self.client, task).await;
                let table = table(std::slice::from_ref(task), &[step], self.look());
                let line = table.next_line(&mut self.widths, output.paint(), output.room());
                let mark = if kind == ChangeKind::Deleted { "   (deleted)" } else { "" };
                output.data(format!("{}{mark}", line.unwrap_or_default()))
            }
        }
    }

    fn look(&self) -> Look {
        self.arguments.look(self.arguments.output == Format::Wide, self.app)
    }
}

fn is_live(task: &TaskView) -> bool {
    LIVE.contains(&task.status.state.as_str())
}

/// Of what is gone only the name is told.
fn place(resource: &Value) -> Option<(String, String)> {
    let text = |path| resource.pointer(path).and_then(Value::as_str).map(str::to_owned);
    text("/metadata/namespace").zip(text("/metadata/name"))
}

fn key(task: &TaskView) -> (String, String) {
    (task.metadata.namespace.clone(), task.metadata.name.clone())
}

fn created_ms(task: &TaskView) -> Option<i64> {
    clock::parse(&task.metadata.created_at)
}
