//! `ostler graph`: a system drawn in the terminal, and what a task has done of it.

use std::path::PathBuf;

use clap::ValueEnum;
use ostler_client::{Client, MessageView, TaskView};
use ostler_spec::{Kind, Resource, Spec};
use serde_json::Value;

use super::{
    missing::{or_explain, or_offer},
    target::Target,
};
use crate::{
    app::App,
    clock,
    error::CommandError,
    exit::Exit,
    graph::{Canvas, Graph, export},
    manifests,
    paint::Tone,
    words,
};

/// Draws a system: its agents, and where the work of each goes
///
/// Of a task it tells what each agent has done so far, in the line in which they did it, whatever the system is by now. With
/// -f the system comes from a file, and no server is needed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The system, or task/NAME
    #[arg(value_name = "SYSTEM", required_unless_present = "files", conflicts_with = "files")]
    what: Option<String>,

    /// Draw the systems that these manifests declare: a file, a folder, or - for stdin
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// How to draw it
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Boxes and arrows
    Text,
    /// For Graphviz
    Dot,
    /// For Markdown
    Mermaid,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  ostler graph report
  ostler graph task/report-1
  ostler graph -f pipeline.yaml
  ostler graph report -o dot | dot -Tsvg > report.svg";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let format = arguments.output;
    let Some(what) = &arguments.what else {
        return from_files(&arguments, app);
    };
    let client = app.client()?;
    let target = match what.contains('/') {
        true => Target::new(what, None)?,
        false => Target { kind: Kind::AgentSystem, name: Some(what.clone()) },
    };
    let name = target.name.clone().unwrap_or_default();
    match target.kind {
        Kind::AgentSystem => show(app, &name, &of_system(&client, &name).await?, format)?,
        Kind::Task => {
            let task = or_explain(&client, Kind::Task, &name, client.task(&name).await).await?;
            show(app, &name, &of_task(&client, &task, app).await?, format)?;
        }
        kind => {
            let message = format!("{} have no graph", kind.plural());
            return Err(CommandError::new(Exit::Usage, message).with_remedy("name a system, or task/NAME"));
        }
    }
    Ok(Exit::Ok)
}

fn from_files(arguments: &Arguments, app: &App) -> Result<Exit, CommandError> {
    let manifests = manifests::together(manifests::read(&arguments.files)?, "nothing was drawn")?;
    let mut is_first = true;
    for declared in &manifests.declared {
        let Spec::AgentSystem(system) = &declared.resource.spec else { continue };
        if !std::mem::take(&mut is_first) {
            app.output.data("")?;
        }
        if arguments.output == Format::Text {
            app.output.data(app.output.paint().tone(Tone::Quiet, &declared.title()))?;
        }
        show(app, &declared.resource.metadata.name, &Graph::of(system), arguments.output)?;
    }
    if is_first {
        return Err(CommandError::error("there is no AgentSystem in these manifests"));
    }
    Ok(Exit::Ok)
}

async fn of_system(client: &Client, name: &str) -> Result<Graph, CommandError> {
    let object = client.get(Kind::AgentSystem, name).await;
    system_graph(or_offer(client, (Kind::AgentSystem, name), (Kind::Task, "graph"), object).await?)
}

fn system_graph(object: Value) -> Result<Graph, CommandError> {
    let unknown = |why: String| CommandError::error(format!("the system can't be understood: {why}"));
    let resource: Resource = serde_json::from_value(object).map_err(|error| unknown(error.to_string()))?;
    match &resource.spec {
        Spec::AgentSystem(system) => Ok(Graph::of(system)),
        other => Err(unknown(format!("it is a {}", other.kind()))),
    }
}

/// The graph of the task's system with what each agent has done. A system may be another one by now, or gone: then those are
/// drawn that worked on the task.
async fn of_task(client: &Client, task: &TaskView, app: &App) -> Result<Graph, CommandError> {
    let home = client.clone().in_namespace(&task.metadata.namespace);
    let Some(system) = &task.spec.system else {
        let mut graph = Graph::single(&task.spec.agent);
        graph.nodes[0].notes.push(format!("{}, {}", task.status.state, words::tokens(&task.status.usage)));
        graph.nodes[0].tone = Tone::of_state(&task.status.state);
        return Ok(graph);
    };
    let messages = home.messages(&task.metadata.uid).await?;
    let handed: Vec<(&str, &str)> =
        messages.iter().map(|it| (it.from_agent.as_str(), it.to_agent.as_str())).collect();
    let (mut graph, became) = match home.get(Kind::AgentSystem, system).await {
        Ok(object) => (system_graph(object)?, "has changed since"),
        Err(error) if error.code() == Some("not_found") => (Graph::default(), "is gone"),
        Err(error) => return Err(error.into()),
    };
    if !graph.went(&handed, task.succeeded()) {
        graph = Graph::of_messages(&handed);
        let more = if task.is_ended() { "" } else { "; what comes next is not drawn" };
        app.output.note(format!("system/{system} {became}: drawn is who worked on the task{more}"));
    }
    for node in &mut graph.nodes {
        let own: Vec<&MessageView> =
            messages.iter().filter(|message| message.to_agent == node.name).collect();
        let (note, tone) = done_so_far(&own);
        node.notes.push(note);
        node.tone = tone;
    }
    Ok(graph)
}

fn done_so_far(messages: &[&MessageView]) -> (String, Tone) {
    let Some(last) = messages.last() else { return ("not yet".to_owned(), Tone::Quiet) };
    let at = |time: &str| clock::parse(time);
    let took = last.processed_at.as_deref().and_then(at).zip(at(&last.timestamp));
    let took = took.map(|(end, start)| format!(", {}", clock::took_ms(end.saturating_sub(start))));
    let times = if messages.len() > 1 { format!(", {} times", messages.len()) } else { String::new() };
    let (word, tone) = match last.phase.as_str() {
        "Succeeded" => ("done", Tone::Good),
        "Running" => ("at work", Tone::Model),
        "Queued" => ("queued", Tone::Pending),
        "RetryPending" => ("tries again", Tone::Pending),
        "WaitingApproval" => ("waits for an approval", Tone::Pending),
        "DeadLetter" => ("failed", Tone::Bad),
        other => (other, Tone::Plain),
    };
    (format!("{word}{}{times}", took.unwrap_or_default()), tone)
}

fn show(app: &App, name: &str, graph: &Graph, format: Format) -> Result<(), CommandError> {
    match format {
        Format::Dot => app.output.data(export::dot(graph, name)),
        Format::Mermaid => app.output.data(export::mermaid(graph)),
        Format::Json => app.output.json(&export::json(graph, name)),
        Format::Text => {
            let terminal = app.output.terminal;
            let canvas = Canvas {
                columns: terminal.size().columns,
                paint: app.output.paint(),
                is_utf8: terminal.is_utf8,
            };
            graph.lines(canvas).iter().try_for_each(|line| app.output.data(line))
        }
    }
}
