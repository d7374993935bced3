//! `ostler delete`: removes declared objects, by name, file or label.

use std::path::PathBuf;

use ostler_client::Client;
use ostler_spec::Kind;
use serde_json::Value;

use super::{
    apply,
    listing::{self, Listing, is_template},
    missing,
    target::{Target, targets},
};
use crate::{
    app::App,
    error::CommandError,
    exit::Exit,
    kind_words::KindWords,
    manifests::{self, Declared},
};

/// Deletes declared objects: by name, by file, or by label
///
/// Tasks under way keep the agent they were accepted with. A task that has ended is forgotten by its name, with all it
/// told; one under way has to be cancelled first. Of sessions only those that were declared are deleted; conversations stay.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A kind and names, or kind/name, several of them
    #[arg(
        value_name = "KIND [NAME]", required_unless_present = "files", conflicts_with = "files",
        value_parser = KindWords, hide_possible_values = true
    )]
    what: Vec<String>,

    /// What these manifests declare: a file, a folder, or - for stdin
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Those of the kind with these labels: team=a,tier!=test,owner,!old
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "files", value_parser = super::selector)]
    selector: Option<String>,

    /// All of the kind in the namespace
    #[arg(long, conflicts_with_all = ["files", "selector"])]
    all: bool,

    /// With tasks and -l or --all: the templates
    #[arg(long, conflicts_with = "files")]
    templates: bool,

    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,

    /// What is not there counts as deleted
    #[arg(long)]
    ignore_not_found: bool,
}

const EXAMPLES: &str = "\
Examples:
  ostler delete agent hello
  ostler delete tool/lookup agent/weather
  ostler delete -f project/
  ostler delete agents -l team=sales --dry-run
  ostler delete tools --all -n playground
  ostler delete task/daily-digest        # a template, or a task that has ended
  ostler delete tasks --templates --all";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let condemned = match arguments.files.is_empty() {
        true => condemned(&arguments, &client, app).await?,
        false => declared(&arguments, app)?,
    };
    if condemned.is_empty() {
        app.output.note("there is nothing to delete");
    }
    for (namespace, target) in condemned {
        let home = client.clone().in_namespace(namespace);
        delete(&arguments, &home, &target, app).await?;
    }
    Ok(Exit::Ok)
}

async fn delete(
    arguments: &Arguments,
    client: &Client,
    target: &Target,
    app: &App,
) -> Result<(), CommandError> {
    let (title, name) = (target.title(), target.name.as_deref().unwrap_or_default());
    if target.kind == Kind::Worker {
        return Err(CommandError::new(
            Exit::Usage,
            "a worker registers itself when it starts, and is not deleted",
        )
        .with_remedy(format!(
            "`ostler cordon {name}` gives it no new runs, `ostler drain {name}` takes those it has too"
        )));
    }
    let done = match (target.kind, arguments.dry_run) {
        (Kind::Task, _) => match client.get(target.kind, name).await {
            Ok(task) if !is_template(&task) && !has_ended(&task) => return Err(under_way(&title)),
            Ok(_) if arguments.dry_run => Ok(()),
            Ok(_) => client.delete(target.kind, name).await,
            Err(error) => Err(error),
        },
        (_, true) => client.get(target.kind, name).await.map(drop),
        (_, false) => client.delete(target.kind, name).await,
    };
    match done {
        Ok(()) if arguments.dry_run => app.output.data(format!("{title} deleted (dry run)")),
        Ok(()) => app.output.done(format!("{title} deleted")),
        Err(error) if arguments.ignore_not_found && error.code() == Some("not_found") => Ok(()),
        Err(error) => Err(missing::explain(client, target.kind, name, error).await),
    }
}

/// Those that were named, or that a label or `--all` stands for.
async fn condemned(
    arguments: &Arguments,
    client: &Client,
    app: &App,
) -> Result<Vec<(String, Target)>, CommandError> {
    let wanted = match targets(&arguments.what) {
        Ok(wanted) => wanted,
        Err(error) => return Err(missing::explain_kind(app, &arguments.what, error).await),
    };
    let is_many = arguments.all || arguments.selector.is_some();
    let home = client.namespace().to_owned();
    match &wanted[..] {
        [Target { kind: Kind::Task, name: None }] if is_many && !arguments.templates => {
            Err(CommandError::new(Exit::Usage, "of tasks, only templates are deleted many at a time")
                .with_remedy("--templates says that they are meant"))
        }
        [Target { kind: Kind::Task, name: None }] if is_many => {
            all(arguments, client, Listing::Templates).await
        }
        _ if arguments.templates => {
            Err(CommandError::new(Exit::Usage, "--templates goes with `tasks` and -l LABELS or --all"))
        }
        [Target { kind, name: None }] if is_many => all(arguments, client, Listing::Kind(*kind)).await,
        [Target { kind, name: None }] => {
            Err(CommandError::new(Exit::Usage, format!("which {}?", kind.plural()))
                .with_remedy("name one or more; -l LABELS and --all stand for many"))
        }
        _ if is_many => Err(CommandError::new(Exit::Usage, "-l and --all stand for many, a name for one")
            .with_remedy("leave out one of the two")),
        _ => Ok(wanted.into_iter().map(|target| (home.clone(), target)).collect()),
    }
}

/// Those of a list that have the labels.
async fn all(
    arguments: &Arguments,
    client: &Client,
    listing: Listing,
) -> Result<Vec<(String, Target)>, CommandError> {
    let found = listing::list(client, listing, arguments.selector.as_deref(), usize::MAX).await?;
    let target = |object| {
        let target = Target { kind: listing.kind(), name: Some(listing::name_of(object).to_owned()) };
        (client.namespace().to_owned(), target)
    };
    Ok(found.items.iter().map(target).collect())
}

/// What the files declare, those first that others need least.
fn declared(arguments: &Arguments, app: &App) -> Result<Vec<(String, Target)>, CommandError> {
    let manifests = manifests::together(manifests::read(&arguments.files)?, "nothing was deleted")?;
    let (ran, mut kept): (Vec<_>, Vec<_>) = manifests.declared.into_iter().partition(Declared::would_run);
    kept = apply::without_workers(kept, app);
    for declared in &ran {
        app.output.note(format!("{} skipped: tasks are cancelled or archived", declared.title()));
    }
    apply::move_to_namespace(&mut kept, app)?;
    let target = |Declared { resource, .. }| {
        let target = Target { kind: resource.kind(), name: Some(resource.metadata.name) };
        (resource.metadata.namespace, target)
    };
    Ok(kept.into_iter().rev().map(target).collect())
}

fn has_ended(task: &Value) -> bool {
    let phase = task.pointer("/status/phase").and_then(Value::as_str);
    phase.is_some_and(|phase| matches!(phase, "Succeeded" | "Failed" | "DeadLetter"))
}

fn under_way(title: &str) -> CommandError {
    CommandError::new(Exit::Usage, format!("{title} has not ended, and is not deleted under way"))
        .with_remedy("`ostler cancel TASK` stops it, `ostler archive TASK` puts it away once it has ended")
}
