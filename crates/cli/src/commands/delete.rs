//! `ostler delete`: removes declared objects.

use ostler_spec::Kind;

use super::target::Target;
use crate::{app::App, error::CommandError, exit::Exit};

/// Deletes agents, model endpoints or tools
///
/// Tasks under way keep the agent they were accepted with. Tasks themselves are cancelled or archived.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The kind, or kind/name
    #[arg(value_name = "KIND")]
    kind: String,

    /// Which ones
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  ostler delete agent hello
  ostler delete tool/lookup
  ostler delete agents one two";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let mut names = arguments.names.into_iter();
    let first = Target::new(&arguments.kind, names.next())?;
    if first.kind == Kind::Task {
        return Err(CommandError::new(Exit::Usage, "tasks are not deleted")
            .with_remedy("`ostler cancel TASK` stops one, `ostler archive TASK` puts one away"));
    }
    let Some(name) = first.name else {
        let message = format!("which {}?", first.kind.plural());
        return Err(CommandError::new(Exit::Usage, message).with_remedy("name one or more"));
    };
    let client = app.client()?;
    for name in std::iter::once(name).chain(names) {
        client.delete(first.kind, &name).await?;
        app.output.data(format!("{}/{name} deleted", first.kind.singular()))?;
    }
    Ok(Exit::Ok)
}
