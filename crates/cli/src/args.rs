//! The command line.

use clap::{Parser, Subcommand};

use crate::{commands, config::Written, exit};

/// Runs AI agents in production.
#[derive(Debug, Parser)]
#[command(
    name = "ostler",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = AFTER_HELP,
    after_long_help = after_long_help(),
)]
pub struct Arguments {
    #[command(flatten)]
    pub written: Written,

    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Start here:
  ostler up                                      start everything in this folder
  ostler apply -f agent.yaml                     declare an agent
  ostler run hello \"Say hello to the world.\"     give it something to do

`ostler COMMAND --help` explains a command by example; `ostler --help` lists variables and exit codes too.";

fn after_long_help() -> String {
    format!("{AFTER_HELP}\n\n{VARIABLES}\n\n{}", exit::HELP)
}

pub const VARIABLES: &str = "\
Variables:
  OSTLER_SERVER     as --server
  OSTLER_DATA       as --data
  OSTLER_NAMESPACE  as --namespace
  OSTLER_TOKEN      the token, instead of the one in the data folder
  NO_COLOR          no colours

`up`, `server` and `worker` have more of them: `ostler config show` lists every setting, and their --help says which
variable stands for which flag.";

#[derive(Debug, Subcommand)]
pub enum Command {
    Up(commands::up::Arguments),
    Server(commands::server::Arguments),
    Worker(commands::worker::Arguments),
    Apply(commands::apply::Arguments),
    Get(commands::get::Arguments),
    Describe(commands::describe::Arguments),
    Delete(commands::delete::Arguments),
    Run(commands::run::Arguments),
    Ps(commands::ps::Arguments),
    Logs(commands::logs::Arguments),
    Events(commands::events::Arguments),
    Trace(commands::trace::Arguments),
    Cancel(commands::cancel::Arguments),
    Release(commands::release::Arguments),
    Retry(commands::retry::Arguments),
    Archive(commands::archive::Arguments),
    Workers(commands::workers::Arguments),
    Cordon(commands::cordon::CordonArguments),
    Uncordon(commands::cordon::UncordonArguments),
    Drain(commands::cordon::DrainArguments),
    Backup(commands::backup::Arguments),
    Config(commands::config::Arguments),
    Version(commands::version::Arguments),
    Reference(commands::reference::Arguments),
}
