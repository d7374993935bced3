//! `ostler apply`: reads manifests, refuses them all if one has a mistake, puts them in place.

mod check;
mod parts;

use std::path::PathBuf;

use clap::ArgGroup;
use ostler_client::{Client, ClientError, Writing};
use ostler_spec::{Origin, Resource, Spec, TaskMode};
use serde_json::Value;

use crate::{
    app::App,
    error::{CommandError, with_causes},
    exit::Exit,
    manifests::{self, Declared, Manifests, title},
};

/// Puts declared objects in place: agents, systems, model endpoints, tools, tasks
///
/// Every file is checked first, and then the server looks at all of it together, in parts if it is much: what is referred to
/// must be there or be among it. All mistakes are told with file, line and column; if there is one, nothing is applied. A Task is created, and
/// starts; those that merely lie in a folder do so only with --run. A Worker is skipped: it registers itself where it is started.
///
/// A namespace that a manifest writes counts, and -n refuses what writes another. What writes none goes to that of -n, or of
/// the profile.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("manifests").args(["paths", "files"]).required(true).multiple(true))]
pub struct Arguments {
    /// A manifest, a folder of them and of further folders (*.yaml, *.yml, *.json), or - for stdin
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The same, without the flag
    #[arg(value_name = "FILE")]
    paths: Vec<PathBuf>,

    /// Start the Tasks of folders too
    #[arg(long)]
    run: bool,

    /// Let the server check everything and write nothing
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  ostler apply -f agent.yaml
  ostler apply -f agents/ -f tools/ --dry-run
  ostler diff -f project/                     # what would change
  ostler apply -f project/ --run
  ostler get agents -o yaml | sed 's/gpt-4o/gpt-5/' | ostler apply -f -";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let files = [arguments.files, arguments.paths].concat();
    let Manifests { declared, notices } =
        manifests::together(manifests::read(&files)?, "nothing was applied")?;
    for notice in notices {
        app.output.note(format!("note: {notice}"));
    }
    let declared = without_workers(declared, app);
    let mut declared = without_waiting_tasks(declared, arguments.run, app);
    move_to_namespace(&mut declared, app)?;
    let (resources, origins): (Vec<Resource>, Vec<Origin>) =
        declared.into_iter().map(|declared| (declared.resource, declared.origin)).unzip();
    let client = app.client()?;
    let checked = check::check(&client, &resources, &origins, &app.output).await?;
    if let Some(checked) = checked.filter(|_| arguments.dry_run) {
        for (resource, checked) in resources.iter().zip(checked) {
            app.output.data(format!("{} {} (dry run)", title(resource), checked.outcome))?;
        }
        return Ok(Exit::Ok);
    }
    let writing = if arguments.dry_run { Writing::Dry } else { Writing::Real };
    let mut refused = 0;
    for resource in &resources {
        match put(&client, resource, writing).await {
            Ok(done) if arguments.dry_run => app.output.data(format!("{done} (dry run)"))?,
            Ok(done) => app.output.done(done)?,
            Err(error) if is_about_the_server(&error) => return Err(error.into()),
            Err(error) => {
                refused += 1;
                complain(app, resource, error);
            }
        }
    }
    Ok(if refused == 0 { Exit::Ok } else { Exit::Error })
}

/// What comes with them needn't wait for them.
pub fn without_workers(declared: Vec<Declared>, app: &App) -> Vec<Declared> {
    let (workers, kept): (Vec<_>, Vec<_>) = declared.into_iter().partition(Declared::registers_itself);
    for worker in &workers {
        app.output.note(format!("{} skipped: it registers itself", worker.title()));
    }
    kept
}

/// Who applies a folder means its declarations; work is started by those who say so.
fn without_waiting_tasks(declared: Vec<Declared>, run: bool, app: &App) -> Vec<Declared> {
    let (waiting, kept): (Vec<_>, Vec<_>) =
        declared.into_iter().partition(|declared| declared.from_folder && declared.would_run() && !run);
    for declared in &waiting {
        app.output.note(format!("{} skipped: --run starts the tasks of a folder", declared.title()));
    }
    kept
}

/// What names no namespace goes to the one that was asked for, or to the profile's. What names one stays there, and nobody
/// may ask for another.
pub fn move_to_namespace(declared: &mut [Declared], app: &App) -> Result<(), CommandError> {
    let asked = app.written.namespace();
    let elsewhere = match &asked {
        Some(asked) => asked.clone(),
        None => app.written.resolve()?.namespace.text,
    };
    for one in declared {
        if !one.names_namespace() {
            elsewhere.clone_into(&mut one.resource.metadata.namespace);
            continue;
        }
        let written = &one.resource.metadata.namespace;
        if let Some(asked) = asked.as_ref().filter(|asked| *asked != written) {
            let message = format!("{} declares the namespace {written:?}, not {asked:?}", one.title());
            return Err(CommandError::error(message).with_remedy("leave out one of the two"));
        }
    }
    Ok(())
}

/// Puts it in place, and says what that changed.
async fn put(client: &Client, resource: &Resource, writing: Writing) -> Result<String, ClientError> {
    if is_to_run(resource) && writing == Writing::Real {
        return start(client, resource).await;
    }
    let before = current(client, resource).await?;
    let after = client.apply_as(resource, writing).await?;
    let outcome = match before {
        None => "created",
        Some(before) if is_same(&before, &after) => "unchanged",
        Some(_) => "configured",
    };
    Ok(format!("{} {outcome}", title(resource)))
}

/// A task is accepted once: the same request under the same name is there already.
async fn start(client: &Client, resource: &Resource) -> Result<String, ClientError> {
    let created = client.create_task(resource).await?;
    let outcome = if created.existed { "unchanged" } else { "created" };
    Ok(format!("task/{} {outcome}", created.task.metadata.name))
}

/// A task that is accepted by being sent. A template is kept like any other object.
fn is_to_run(resource: &Resource) -> bool {
    matches!(&resource.spec, Spec::Task(task) if task.mode == TaskMode::Run)
}

/// The object as it is now, if it is there.
pub async fn current(client: &Client, resource: &Resource) -> Result<Option<Value>, ClientError> {
    let home = client.clone().in_namespace(&resource.metadata.namespace);
    match home.get(resource.kind(), &resource.metadata.name).await {
        Ok(before) => Ok(Some(before)),
        Err(error) if error.code() == Some("not_found") => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a person declares is the same, whatever the store counts. Of what is not shown, such as a secret, only the
/// generation tells.
fn is_same(before: &Value, after: &Value) -> bool {
    ["/metadata/generation", "/metadata/labels", "/metadata/annotations", "/spec"]
        .iter()
        .all(|path| before.pointer(path) == after.pointer(path))
}

/// The others will meet the same.
pub fn is_about_the_server(error: &ClientError) -> bool {
    match error {
        ClientError::Problem(problem) => matches!(problem.status, 401 | 403 | 500..),
        _ => true,
    }
}

/// Tells what became of one object, so that the others can go on.
pub fn complain(app: &App, resource: &Resource, error: ClientError) {
    let subject = title(resource);
    let words = with_causes(&error);
    if let CommandError::Said(mut complaint) = CommandError::from(error) {
        complaint.message = if complaint.details.is_empty() {
            format!("{subject}: {words}")
        } else {
            format!("{subject} was not accepted")
        };
        app.output.complain(&complaint);
    }
}
