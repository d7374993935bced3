//! `ostler help`: what `--help` says, for those who ask in words.

use crate::{app::App, error::CommandError, exit::Exit, suggest};

/// Explains a command, or lists them all
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The command; for one inside another, both words
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  ostler help
  ostler help run
  ostler help token create";

pub fn run(arguments: &Arguments, app: &App) -> Result<Exit, CommandError> {
    let mut all = crate::args::Arguments::whole().color(app.written.color.into());
    // Only then the commands know what they are called in full, and which flags all of them take.
    all.build();
    let command = find(&mut all, &arguments.command)?;
    match command.print_long_help() {
        Ok(()) => Ok(Exit::Ok),
        Err(error) => Err(CommandError::output(&error)),
    }
}

fn find<'a>(command: &'a mut clap::Command, words: &[String]) -> Result<&'a mut clap::Command, CommandError> {
    let Some((word, rest)) = words.split_first() else { return Ok(command) };
    let unknown = unknown(command, word);
    match command.find_subcommand_mut(word) {
        Some(inner) => find(inner, rest),
        None => Err(unknown),
    }
}

fn unknown(command: &clap::Command, word: &str) -> CommandError {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let error = CommandError::new(Exit::Usage, format!("there is no command \"{name} {word}\""));
    let known = command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(clap::Command::get_name);
    match suggest::nearest(word, known) {
        Some(near) => error.with_remedy(format!("did you mean {near}? `{name} --help` lists them")),
        None if command.has_subcommands() => error.with_remedy(format!("`{name} --help` lists them")),
        None => error.with_remedy(format!("`ostler help {}`", name.trim_start_matches("ostler "))),
    }
}
