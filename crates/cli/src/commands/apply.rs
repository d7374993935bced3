//! `ostler apply`: reads manifests, refuses them all if one has a mistake, puts them in place.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ostler_client::{Client, ClientError};
use ostler_spec::{Kind, Parsed, Resource, kinds};
use serde_json::Value;

use crate::{
    app::App,
    error::{CommandError, with_causes},
    exit::Exit,
    input,
};

/// Puts declared objects in place: agents, model endpoints, tools, tasks
///
/// Every file is checked first, and all mistakes are told with file, line and column; if there is one,
/// nothing is applied. A Task is created, and starts.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A manifest, a folder of them (*.yaml, *.yml, *.json), or - for stdin
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  ostler apply -f agent.yaml
  ostler apply -f agents/ -f tools/
  ostler get agents -o yaml | sed 's/gpt-4o/gpt-5/' | ostler apply -f -";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let Parsed { mut resources, notices } = read(&arguments.files)?;
    for notice in notices {
        app.output.note(format!("note: {notice}"));
    }
    if let Some(namespace) = app.written.namespace() {
        move_to(&mut resources, namespace)?;
    }
    // A task needs its agent, and an agent its model.
    resources.sort_by_key(|resource| kinds().position(|info| info.kind == resource.kind()));
    let client = app.client()?;
    let mut refused = 0;
    for resource in &resources {
        match put(&client, resource).await {
            Ok(done) => app.output.data(done)?,
            Err(error) if is_about_the_server(&error) => return Err(error.into()),
            Err(error) => {
                refused += 1;
                complain(app, resource, error);
            }
        }
    }
    Ok(if refused == 0 { Exit::Ok } else { Exit::Error })
}

/// What all the files declare; or everything that is wrong with them.
fn read(files: &[PathBuf]) -> Result<Parsed, CommandError> {
    let (mut resources, mut notices) = (Vec::new(), Vec::new());
    let mut problems = Vec::new();
    for source in sources(files)? {
        let (name, text) = source.read()?;
        match ostler_spec::parse_with_notices(&name, &text) {
            Ok(parsed) => {
                resources.extend(parsed.resources);
                notices.extend(parsed.notices);
            }
            Err(found) => problems.extend(found.iter().map(ToString::to_string)),
        }
    }
    if problems.is_empty() {
        return Ok(Parsed { resources, notices });
    }
    let message = match problems.len() {
        1 => "a mistake in the manifests; nothing was applied".to_owned(),
        count => format!("{count} mistakes in the manifests; nothing was applied"),
    };
    Err(CommandError::error(message).with_details(problems))
}

enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    /// What mistakes call it, and its text.
    fn read(&self) -> Result<(String, String), CommandError> {
        match self {
            Source::Stdin => Ok(("<stdin>".to_owned(), input::read_stdin()?)),
            Source::File(path) => Ok((path.display().to_string(), input::read_file(path)?)),
        }
    }
}

fn sources(files: &[PathBuf]) -> Result<Vec<Source>, CommandError> {
    let mut sources = Vec::new();
    for path in files {
        if path.as_os_str() == "-" {
            sources.push(Source::Stdin);
        } else if path.is_dir() {
            sources.extend(manifests_in(path)?.into_iter().map(Source::File));
        } else {
            sources.push(Source::File(path.clone()));
        }
    }
    Ok(sources)
}

fn manifests_in(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let cannot = |error: io::Error| CommandError::error(format!("can't read {}: {error}", folder.display()));
    let is_manifest = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        path.is_file() && matches!(extension, Some("yaml" | "yml" | "json"))
    };
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(cannot)?.collect();
    let mut paths: Vec<PathBuf> = entries.map_err(cannot)?.into_iter().map(|entry| entry.path()).collect();
    paths.retain(is_manifest);
    paths.sort();
    if paths.is_empty() {
        let message = format!("there is no manifest (*.yaml, *.yml, *.json) in {}", folder.display());
        return Err(CommandError::error(message));
    }
    Ok(paths)
}

/// What names no namespace goes to the one that was asked for.
fn move_to(resources: &mut [Resource], namespace: &str) -> Result<(), CommandError> {
    for resource in resources {
        let declared = &mut resource.metadata.namespace;
        if declared == ostler_spec::DEFAULT_NAMESPACE {
            namespace.clone_into(declared);
        } else if declared != namespace {
            let (kind, name) = (resource.spec.kind().singular(), &resource.metadata.name);
            let message = format!("{kind}/{name} declares the namespace {declared:?}, not {namespace:?}");
            return Err(CommandError::error(message).with_remedy("leave out one of the two"));
        }
    }
    Ok(())
}

/// Puts it in place, and says what that changed.
async fn put(client: &Client, resource: &Resource) -> Result<String, ClientError> {
    if resource.kind() == Kind::Task {
        let created = client.create_task(resource).await?;
        let outcome = if created.existed { "unchanged" } else { "created" };
        return Ok(format!("task/{} {outcome}", created.task.metadata.name));
    }
    let Resource { metadata, .. } = resource;
    let home = client.clone().in_namespace(&metadata.namespace);
    let before = match home.get(resource.kind(), &metadata.name).await {
        Ok(before) => Some(before),
        Err(error) if error.code() == Some("not_found") => None,
        Err(error) => return Err(error),
    };
    let after = client.apply(resource).await?;
    let outcome = match before {
        None => "created",
        Some(before) if is_same(&before, &after) => "unchanged",
        Some(_) => "configured",
    };
    Ok(format!("{}/{} {outcome}", resource.kind().singular(), metadata.name))
}

/// What a person declares is the same, whatever the store counts.
fn is_same(before: &Value, after: &Value) -> bool {
    ["/metadata/generation", "/metadata/labels", "/metadata/annotations"]
        .iter()
        .all(|path| before.pointer(path) == after.pointer(path))
}

/// The others will meet the same.
fn is_about_the_server(error: &ClientError) -> bool {
    match error {
        ClientError::Problem(problem) => matches!(problem.status, 401 | 403 | 500..),
        _ => true,
    }
}

fn complain(app: &App, resource: &Resource, error: ClientError) {
    let subject = format!("{}/{}", resource.kind().singular(), resource.metadata.name);
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
