//! `ostler describe`: one object for people: what it is, how it fares, and what hangs together with it.

mod page;
mod relations;
mod task;

use ostler_client::Client;
use serde_json::Value;

use self::page::Page;
pub use self::relations::{aliases, references};
use super::{
    get::phase_tone,
    missing,
    target::{Target, targets},
};
use crate::{app::App, clock, error::CommandError, exit::Exit, kind_words::KindWords, paint::Tone};

/// Tells all there is to know about objects: what they are, how they fare, what hangs together with them
///
/// Of an agent its model, its tools, the systems it is in and its last tasks; of a system its graph; of a task its
/// steps, its messages, its error and what to do about it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A kind and names, or kind/name, several of them
    #[arg(value_name = "KIND NAME", required = true, value_parser = KindWords, hide_possible_values = true)]
    what: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  ostler describe agent hello
  ostler describe task/report worker/gpu-1
  ostler get agent hello -o yaml              # the same for programs";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let wanted = match targets(&arguments.what) {
        Ok(wanted) => wanted,
        Err(error) => return Err(missing::explain_kind(app, &arguments.what, error).await),
    };
    for (place, target) in wanted.iter().enumerate() {
        let Some(name) = &target.name else {
            let message = format!("which {}? Give its name", target.kind.singular());
            return Err(CommandError::new(Exit::Usage, message));
        };
        if place > 0 {
            app.output.data("")?;
        }
        let object =
            missing::or_explain(&client, target.kind, name, client.get(target.kind, name).await).await?;
        describe(app, &client, target, &object).await?;
    }
    Ok(Exit::Ok)
}

async fn describe(app: &App, client: &Client, target: &Target, object: &Value) -> Result<(), CommandError> {
    let mut page = Page::new(app.output);
    head(&mut page, app, target, object);
    if target.kind == ostler_spec::Kind::Task {
        task::describe(&mut page, app, client, object).await;
    } else {
        page.section("spec");
        // A graph is drawn further down.
        page.fields(object.get("spec"), &["graph"]);
        if object.get("status").and_then(Value::as_object).is_some_and(|status| !status.is_empty()) {
            page.section("status");
            let status = object.get("status").cloned().map(with_names_of_tasks);
            page.fields(status.as_ref(), &["phase"]);
        }
        relations::describe(&mut page, app, client, target.kind, object).await;
    }
    page.print()
}

/// A worker's status with the tasks that it works on as others call them.
fn with_names_of_tasks(mut status: Value) -> Value {
    let name =
        |task: &Value| Some(format!("{}/{}", task.get("namespace")?.as_str()?, task.get("name")?.as_str()?));
    for task in status.get_mut("tasks").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(name) = name(task) {
            *task = Value::String(name);
        }
    }
    status
}

/// What every kind has.
fn head(page: &mut Page, app: &App, target: &Target, object: &Value) {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    page.title(&target.kind.singular(), &text("/metadata/name"));
    let state = [text("/status/state"), text("/status/phase")].into_iter().find(|state| !state.is_empty());
    if let Some(state) = state {
        let standing = text("/status/standing");
        let state =
            if matches!(standing.as_str(), "" | "open") { state } else { format!("{state},{standing}") };
        let tone = match Tone::of_state(&state) {
            Tone::Plain => phase_tone(&state),
            tone => tone,
        };
        page.toned("state", &state, tone);
    }
    page.line("namespace", &text("/metadata/namespace"));
    for (title, path) in [("labels", "/metadata/labels"), ("annotations", "/metadata/annotations")] {
        page.line(title, &pairs(object.pointer(path)));
    }
    let created = text("/metadata/createdAt");
    if let Some(at) = clock::parse(&created) {
        page.line("created", &format!("{created}, {} ago", clock::age(at, app.now_ms())));
    }
    page.line("uid", &text("/metadata/uid"));
    if let Some(generation) = object.pointer("/metadata/generation") {
        let version = text("/metadata/resourceVersion");
        page.line("generation", &format!("{generation}, version {version}"));
    }
}

fn pairs(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object);
    let pair = |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or_default());
    labels.into_iter().flatten().map(pair).collect::<Vec<_>>().join(", ")
}
