//! `ostler diff`: what `apply` would change, as a unified diff.

use std::path::PathBuf;

use clap::ArgGroup;
use ostler_client::{Client, Writing};
use ostler_spec::Resource;

use super::apply;
use crate::{
    app::App,
    document,
    error::CommandError,
    exit::Exit,
    manifests::{self, Declared, title},
    unified,
};

/// Shows what `apply` would change
///
/// The server says what it would store, and nothing is written. Ends with 0 if nothing would change, with 1 if something
/// would, and with 2 or more where other commands end with 1 or more.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("manifests").args(["paths", "files"]).required(true).multiple(true))]
pub struct Arguments {
    /// A manifest, a folder of them and of further folders (*.yaml, *.yml, *.json), or - for stdin
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The same, without the flag
    #[arg(value_name = "FILE")]
    paths: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  ostler diff -f agent.yaml
  ostler diff -f project/ || ostler apply -f project/";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    compare(&arguments, app).await.map_err(apart_from_differences)
}

async fn compare(arguments: &Arguments, app: &App) -> Result<Exit, CommandError> {
    let files = [&arguments.files[..], &arguments.paths[..]].concat();
    let manifests = manifests::together(manifests::read(&files)?, "nothing was compared")?;
    // Tasks are asked for and workers register themselves: neither is changed by applying it.
    let is_kept = |declared: &Declared| !declared.would_run() && !declared.registers_itself();
    let kept = manifests.declared.into_iter().filter(is_kept);
    let mut kept: Vec<Declared> = kept.collect();
    apply::move_to_namespace(&mut kept, app)?;
    let client = app.client()?;
    let (mut differs, mut refused) = (false, false);
    for Declared { resource, .. } in &kept {
        match one(&client, resource).await {
            Ok((before, after)) => differs |= show(app, resource, &before, &after)?,
            Err(error) if apply::is_about_the_server(&error) => return Err(error.into()),
            Err(error) => {
                refused = true;
                apply::complain(app, resource, error);
            }
        }
    }
    match (refused, differs) {
        (true, _) => Err(CommandError::Quiet(Exit::Usage)),
        (false, true) => Ok(Exit::Error),
        (false, false) => Ok(Exit::Ok),
    }
}

async fn one(client: &Client, resource: &Resource) -> Result<(String, String), ostler_client::ClientError> {
    let before = apply::current(client, resource).await?;
    let after = client.apply_as(resource, Writing::Dry).await?;
    Ok((before.as_ref().map(document::declared).unwrap_or_default(), document::declared(&after)))
}

/// Whether there was anything to show.
fn show(app: &App, resource: &Resource, before: &str, after: &str) -> Result<bool, CommandError> {
    let title = title(resource);
    let names = unified::Names { before: format!("{title} (stored)"), after: format!("{title} (manifest)") };
    let lines = unified::lines(before, after, &names, app.output.paint());
    lines.iter().try_for_each(|line| app.output.data(line))?;
    Ok(!lines.is_empty())
}

/// 1 means that something differs.
fn apart_from_differences(error: CommandError) -> CommandError {
    match error {
        CommandError::Said(mut complaint) if complaint.exit == Exit::Error => {
            complaint.exit = Exit::Usage;
            CommandError::Said(complaint)
        }
        other => other,
    }
}
