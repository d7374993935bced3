//! `ostler delete`: removes declared objects, by name, file or label.

use std::path::PathBuf;

use ostler_client::Client;
use ostler_spec::Kind;

use super::{
    apply, listing, missing,
    target::{Target, targets},
};
use crate::{app::App, error::CommandError, exit::Exit, kind_words::KindWords, manifests};

/// Deletes declared objects: by name, by file, or by label
///
/// Tasks under way keep the agent they were accepted with. Tasks themselves are cancelled or archived.
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
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "files")]
    selector: Option<String>,

    /// All of the kind in the namespace
    #[arg(long, conflicts_with_all = ["files", "selector"])]
    all: bool,

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
  ostler delete tools --all -n playground";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let condemned = match arguments.files.is_empty() {
        true => condemned(&arguments, &client).await?,
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
    let done = match arguments.dry_run {
        true => client.get(target.kind, name).await.map(drop),
        false => client.delete(target.kind, name).await,
    };
    match done {
        Ok(()) if arguments.dry_run => app.output.data(format!("{title} deleted (dry run)")),
        Ok(()) => app.output.data(format!("{title} deleted")),
        Err(error) if arguments.ignore_not_found && error.code() == Some("not_found") => Ok(()),
        Err(error) => Err(missing::explain(client, target.kind, name, error).await),
    }
}

/// Those that were named, or that a label or `--all` stands for.
async fn condemned(arguments: &Arguments, client: &Client) -> Result<Vec<(String, Target)>, CommandError> {
    let wanted = targets(&arguments.what)?;
    if wanted.iter().any(|target| target.kind == Kind::Task) {
        return Err(CommandError::new(Exit::Usage, "tasks are not deleted")
            .with_remedy("`ostler cancel TASK` stops one, `ostler archive TASK` puts one away"));
    }
    let is_many = arguments.all || arguments.selector.is_some();
    let home = client.namespace().to_owned();
    match &wanted[..] {
        [Target { kind, name: None }] if is_many => {
            let found = listing::list(client, *kind, arguments.selector.as_deref(), usize::MAX).await?;
            let name = |object| Some(listing::name_of(object).to_owned());
            let targets = found.items.iter().map(|object| Target { kind: *kind, name: name(object) });
            Ok(targets.map(|target| (home.clone(), target)).collect())
        }
        [Target { kind, name: None }] => {
            Err(CommandError::new(Exit::Usage, format!("which {}?", kind.plural()))
                .with_remedy("name one or more; -l LABELS and --all stand for many"))
        }
        _ if is_many => Err(CommandError::new(Exit::Usage, "-l and --all stand for many, a name for one")
            .with_remedy("leave out one of the two")),
        _ => Ok(wanted.into_iter().map(|target| (home.clone(), target)).collect()),
    }
}

/// What the files declare, those first that others need least.
fn declared(arguments: &Arguments, app: &App) -> Result<Vec<(String, Target)>, CommandError> {
    let manifests = manifests::together(manifests::read(&arguments.files)?, "nothing was deleted")?;
    let mut resources = Vec::new();
    for declared in manifests.declared {
        if declared.resource.kind() == Kind::Task {
            app.output.note(format!("{} skipped: tasks are cancelled or archived", declared.title()));
        } else {
            resources.push(declared.resource);
        }
    }
    apply::move_to_namespace(&mut resources, app)?;
    let target = |resource: ostler_spec::Resource| {
        let target = Target { kind: resource.kind(), name: Some(resource.metadata.name) };
        (resource.metadata.namespace, target)
    };
    Ok(resources.into_iter().rev().map(target).collect())
}
