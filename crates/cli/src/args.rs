//! The command line.

mod overview;

use std::io::{self, IsTerminal};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

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

impl Arguments {
    /// As they were given; whoever asks for help, or makes no sense, is answered here.
    pub fn read() -> Self {
        let matches = Self::whole().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The command line with its commands in groups.
    pub fn whole() -> clap::Command {
        let whole = overview::grouped(Self::command());
        if io::stdout().is_terminal() { whole } else { whole.max_term_width(WIDEST_IN_A_PIPE) }
    }
}

/// Whoever reads it there may have no more room.
const WIDEST_IN_A_PIPE: usize = 80;

const AFTER_HELP: &str = "\
Start here:
  ostler up                                    # everything, in this folder
  ostler init                                  # make a project to begin with
  ostler apply -f agent.yaml                   # declare an agent
  ostler run hello \"Say hello to the world.\"   # give it something to do

`ostler help COMMAND` explains a command by example; `ostler --help` lists
variables and exit codes too.";

fn after_long_help() -> String {
    format!("{AFTER_HELP}\n\n{VARIABLES}\n\n{}", exit::HELP)
}

pub const VARIABLES: &str = "\
Variables:
  OSTLER_SERVER     as --server
  OSTLER_DATA       as --data
  OSTLER_NAMESPACE  as --namespace
  OSTLER_PROFILE    as --profile
  OSTLER_TOKEN      the token, instead of that of the data folder or the profile
  OSTLER_CA         a file with who vouches for the server, in PEM
  NO_COLOR          no colours
  ORLOJCTL_SERVER, ORLOJ_SERVER
                    as OSTLER_SERVER, where nothing else says it
  ORLOJCTL_API_TOKEN, ORLOJ_API_TOKEN
                    as OSTLER_TOKEN, where nothing else says it

`up`, `server` and `worker` have more of them: their --help says which
variable stands for which flag, `ostler config show` lists every setting.";

#[derive(Debug, Subcommand)]
pub enum Command {
    Up(commands::up::Arguments),
    Server(commands::server::Arguments),
    Worker(commands::worker::Arguments),
    Init(commands::init::Arguments),
    Validate(commands::validate::Arguments),
    Apply(commands::apply::Arguments),
    Diff(commands::diff::Arguments),
    Get(commands::get::Arguments),
    Describe(commands::describe::Arguments),
    Edit(commands::edit::Arguments),
    Delete(commands::delete::Arguments),
    Wait(commands::wait::Arguments),
    Run(commands::run::Arguments),
    Ps(commands::ps::Arguments),
    Logs(commands::logs::Arguments),
    Events(commands::events::Arguments),
    Trace(commands::trace::Arguments),
    Graph(commands::graph::Arguments),
    Top(commands::top::Arguments),
    Cancel(commands::cancel::Arguments),
    Release(commands::release::Arguments),
    Retry(commands::retry::Arguments),
    Archive(commands::archive::Arguments),
    Workers(commands::workers::Arguments),
    Cordon(commands::cordon::CordonArguments),
    Uncordon(commands::cordon::UncordonArguments),
    Drain(commands::cordon::DrainArguments),
    Secret(commands::secret::Arguments),
    Token(commands::token::Arguments),
    User(commands::user::Arguments),
    Profile(commands::profile::Arguments),
    Doctor(commands::doctor::Arguments),
    Backup(commands::backup::Arguments),
    Config(commands::config::Arguments),
    Completion(commands::completion::Arguments),
    Version(commands::version::Arguments),
    Help(commands::help::Arguments),
    Reference(commands::reference::Arguments),
}

#[cfg(test)]
mod tests;
