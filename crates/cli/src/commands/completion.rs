//! `ostler completion`: what a shell needs to complete our commands.

use clap::{CommandFactory, ValueEnum};
use clap_complete::{Shell, generate};
use ostler_spec::kinds;

use crate::{app::App, error::CommandError, exit::Exit};

/// Prints a script with which a shell completes our commands
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[arg(value_enum)]
    shell: ShellName,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Elvish,
}

const EXAMPLES: &str = "\
Examples:
  ostler completion bash > ~/.local/share/bash-completion/completions/ostler
  ostler completion zsh > ~/.zfunc/_ostler          with ~/.zfunc in fpath
  ostler completion fish > ~/.config/fish/completions/ostler.fish
  source <(ostler completion bash)                  for this shell alone";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let shell = match arguments.shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
        ShellName::Powershell => Shell::PowerShell,
        ShellName::Elvish => Shell::Elvish,
    };
    let mut script = Vec::new();
    generate(shell, &mut crate::args::Arguments::command(), "ostler", &mut script);
    app.output.data(String::from_utf8_lossy(&script).trim_end())?;
    if matches!(arguments.shell, ShellName::Fish) {
        FISH_KINDS_BEHIND.iter().try_for_each(|command| app.output.data(fish_kinds(command)))?;
    }
    Ok(Exit::Ok)
}

/// The generator for fish leaves out what stands behind a command without a flag.
const FISH_KINDS_BEHIND: [&str; 5] = ["get", "describe", "edit", "delete", "wait"];

fn fish_kinds(command: &str) -> String {
    let words = kinds().map(|info| info.plural).collect::<Vec<_>>().join(" ");
    format!("complete -c ostler -n \"__fish_ostler_using_subcommand {command}\" -f -a \"{words}\"")
}
