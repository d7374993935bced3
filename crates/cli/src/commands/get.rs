//! `ostler get`: lists declared objects and tasks, or shows one.

use clap::ValueEnum;
use ostler_client::{Client, PageRequest};
use ostler_spec::Kind;
use serde_json::Value;

use super::target::Target;
use crate::{
    app::App,
    clock,
    error::CommandError,
    exit::Exit,
    paint::Tone,
    table::{Cell, Table},
};

/// Lists objects of a kind, or shows one of them
///
/// Kinds are agents, model-endpoints (mep, models), tools and tasks (tk); singular or plural.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The kind, or kind/name
    #[arg(value_name = "KIND")]
    kind: String,

    /// One object, instead of all of them
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,

    /// From all namespaces
    #[arg(short = 'A', long, conflicts_with = "name")]
    all_namespaces: bool,

    /// At most so many (of tasks the newest; by default 100 of those, and all of anything else)
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Columns
    Table,
    /// More columns
    Wide,
    /// One object, or an array of them
    Json,
    /// One document each, as `ostler apply` takes them
    Yaml,
    /// kind/name, one per line
    Name,
}

const EXAMPLES: &str = "\
Examples:
  ostler get agents
  ostler get agent hello -o yaml
  ostler get tasks -A -o wide
  ostler get tasks -o json | jq -r '.[].status.state'";

/// The most a server gives at once.
const PAGE: usize = 1000;
const TASKS: usize = 100;

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let Arguments { kind, name, output: format, all_namespaces, limit } = arguments;
    let target = Target::new(&kind, name)?;
    let mut client = app.client()?;
    if all_namespaces {
        client = client.in_namespace("*");
    }
    if let Some(name) = &target.name {
        let object = client.get(target.kind, name).await?;
        return show_one(app, target.kind, &object, format);
    }
    let default_limit = if target.kind == Kind::Task { TASKS } else { usize::MAX };
    let (objects, has_more) = list(&client, target.kind, limit.unwrap_or(default_limit)).await?;
    if objects.is_empty() && matches!(format, Format::Table | Format::Wide) {
        let place =
            if all_namespaces { String::new() } else { format!(" in namespace {}", client.namespace()) };
        app.output.note(format!("no {}{place}", target.kind.plural()));
        return Ok(Exit::Ok);
    }
    show_all(app, target.kind, &objects, format, all_namespaces)?;
    if has_more {
        app.output.note(format!("there are more; --limit {} shows them", objects.len().saturating_mul(10)));
    }
    Ok(Exit::Ok)
}

/// At most `limit` of them, and whether there are more.
async fn list(client: &Client, kind: Kind, limit: usize) -> Result<(Vec<Value>, bool), CommandError> {
    let mut objects = Vec::new();
    let mut after = None;
    loop {
        let wanted = (limit - objects.len()).min(PAGE);
        if wanted == 0 {
            return Ok((objects, after.is_some()));
        }
        let page = client.list(kind, &PageRequest { limit: Some(wanted), after: after.take() }).await?;
        objects.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok((objects, false));
        }
    }
}

fn show_one(app: &App, kind: Kind, object: &Value, format: Format) -> Result<Exit, CommandError> {
    match format {
        Format::Json => app.output.json(object)?,
        Format::Yaml => app.output.yaml(object)?,
        Format::Table | Format::Wide | Format::Name => {
            show_all(app, kind, std::slice::from_ref(object), format, false)?;
        }
    }
    Ok(Exit::Ok)
}

fn show_all(
    app: &App,
    kind: Kind,
    objects: &[Value],
    format: Format,
    with_namespace: bool,
) -> Result<(), CommandError> {
    match format {
        Format::Json => app.output.json(&objects),
        Format::Yaml => objects.iter().enumerate().try_for_each(|(place, object)| {
            if place > 0 {
                app.output.data("---")?;
            }
            app.output.yaml(object)
        }),
        Format::Name => objects.iter().try_for_each(|object| {
            app.output.data(format!("{}/{}", kind.singular(), at(object, "/metadata/name")))
        }),
        Format::Table | Format::Wide => {
            app.output.table(&table(app, kind, objects, format == Format::Wide, with_namespace))
        }
    }
}

/// A column: its title, and where its text is found.
type Column = (&'static str, fn(&Value) -> String);

fn table(app: &App, kind: Kind, objects: &[Value], wide: bool, with_namespace: bool) -> Table {
    let mut columns: Vec<Column> = vec![("NAME", |object| at(object, "/metadata/name"))];
    if with_namespace {
        columns.insert(0, ("NAMESPACE", |object| at(object, "/metadata/namespace")));
    }
    let (narrow, more) = columns_of(kind);
    columns.extend(narrow);
    if wide {
        columns.extend(more);
    }
    let now = app.now_ms();
    let mut table = Table::new(columns.iter().map(|column| column.0).chain(["AGE"]));
    for object in objects {
        let cell = |(title, find): &Column| {
            let text = find(object);
            let tone = if *title == "STATE" { Tone::of_state(&text) } else { Tone::Plain };
            Cell::toned(text, tone)
        };
        let created = clock::parse(&at(object, "/metadata/createdAt"));
        let age = created.map_or_else(String::new, |created| clock::age(created, now));
        table.row(columns.iter().map(cell).chain([age.into()]));
    }
    table
}

/// Those always shown, and those shown where there is room.
fn columns_of(kind: Kind) -> (Vec<Column>, Vec<Column>) {
    match kind {
        Kind::Agent => (
            vec![("MODEL", |it| at(it, "/spec/model_ref")), ("TOOLS", |it| listed(it, "/spec/tools"))],
            vec![
                ("RUNNER", |it| at(it, "/spec/runner")),
                ("MAX STEPS", |it| at(it, "/spec/limits/max_steps")),
                ("TIMEOUT", |it| at(it, "/spec/limits/timeout")),
                ("GENERATION", |it| at(it, "/metadata/generation")),
            ],
        ),
        Kind::ModelEndpoint => (
            vec![("PROVIDER", |it| at(it, "/spec/provider")), ("MODEL", |it| at(it, "/spec/default_model"))],
            vec![
                ("ADDRESS", |it| at(it, "/spec/base_url")),
                ("SECRET", |it| at(it, "/spec/auth/secretRef")),
                ("GENERATION", |it| at(it, "/metadata/generation")),
            ],
        ),
        Kind::Tool => (
            vec![("TYPE", |it| at(it, "/spec/type")), ("ENDPOINT", |it| at(it, "/spec/endpoint"))],
            vec![
                ("DESCRIPTION", |it| at(it, "/spec/description")),
                ("GENERATION", |it| at(it, "/metadata/generation")),
            ],
        ),
        Kind::Quota => (
            vec![
                ("AGENT", |it| at(it, "/spec/agent")),
                ("WEIGHT", |it| at(it, "/spec/weight")),
                ("CONCURRENT", |it| at(it, "/spec/max_concurrent")),
                ("PER MINUTE", |it| at(it, "/spec/tasks_per_minute")),
                ("QUEUED", |it| at(it, "/spec/max_queued")),
            ],
            Vec::new(),
        ),
        Kind::AgentSystem => (
            vec![("AGENTS", |it| listed(it, "/spec/agents")), ("PHASE", |it| at(it, "/status/phase"))],
            vec![("GENERATION", |it| at(it, "/metadata/generation"))],
        ),
        Kind::Task => (
            vec![
                ("AGENT", |it| at(it, "/spec/agent")),
                ("STATE", |it| at(it, "/status/state")),
                ("TOKENS", tokens),
            ],
            vec![
                ("PRIORITY", |it| at(it, "/spec/priority")),
                ("SESSION", |it| at(it, "/spec/session")),
                ("UID", |it| at(it, "/metadata/uid")),
                ("ERROR", |it| at(it, "/status/error/code")),
            ],
        ),
        _ => (
            vec![("PHASE", |it| at(it, "/status/phase"))],
            vec![
                ("GENERATION", |it| at(it, "/metadata/generation")),
                ("ERROR", |it| at(it, "/status/lastError")),
            ],
        ),
    }
}

fn at(object: &Value, path: &str) -> String {
    match object.pointer(path) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn listed(object: &Value, path: &str) -> String {
    let items = object.pointer(path).and_then(Value::as_array);
    let words = items.into_iter().flatten().map(|item| item.as_str().unwrap_or_default());
    words.collect::<Vec<_>>().join(",")
}

fn tokens(task: &Value) -> String {
    let count = |path| task.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    count("/status/usage/input_tokens").saturating_add(count("/status/usage/output_tokens")).to_string()
}
