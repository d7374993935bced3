//! `ostler completion`: what a shell needs to complete our commands.

use clap::{Arg, Command, CommandFactory, ValueEnum, ValueHint};
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
  ostler completion zsh > ~/.zfunc/_ostler          # with ~/.zfunc in fpath
  ostler completion fish > ~/.config/fish/completions/ostler.fish
  source <(ostler completion bash)                  # for this shell alone";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let shell = match arguments.shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
        ShellName::Powershell => Shell::PowerShell,
        ShellName::Elvish => Shell::Elvish,
    };
    app.output.data(script(shell).trim_end())?;
    if matches!(arguments.shell, ShellName::Fish) {
        FISH_KINDS_BEHIND.iter().try_for_each(|command| app.output.data(fish_kinds(command)))?;
    }
    Ok(Exit::Ok)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut offered(), "ostler", &mut script);
    mended(shell, &String::from_utf8_lossy(&script))
}

/// The command line as it is offered: without what is hidden, and with files only where files are meant.
fn offered() -> Command {
    let whole = crate::args::Arguments::command();
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let offered = Command::new("ostler")
        .disable_help_subcommand(true)
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments().cloned())
        .subcommands(shown);
    without_files(offered)
}

fn without_files(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    let command = command.mut_args(|flag| match flag.get_id().as_str() {
        // Any field may stand there too, so that its own parser knows no list.
        "condition" => flag.value_parser(CONDITIONS),
        _ if flag.get_action().takes_values() && has_words_of_its_own(&flag) => {
            flag.value_hint(ValueHint::Other)
        }
        _ => flag,
    });
    names.iter().fold(command, |command, name| command.mut_subcommand(name, without_files))
}

const CONDITIONS: [&str; 5] = ["created", "succeeded", "ended", "ready", "deleted"];

/// Whether it takes neither a file or a folder, by what help calls it, nor one of a list.
fn has_words_of_its_own(flag: &Arg) -> bool {
    let named = flag.get_value_names().unwrap_or_default().iter().map(|name| name.to_uppercase());
    let is_path = named.clone().any(|name| ["FILE", "FOLDER", "PATH"].iter().any(|word| name.contains(word)));
    let is_known = flag.get_value_hint() != ValueHint::Unknown || !flag.get_possible_values().is_empty();
    !is_path && !is_known
}

/// Where a generator's script does less than its shell can.
fn mended(shell: Shell, script: &str) -> String {
    match shell {
        // Behind the first word of a list that is followed by two colons, it offers nothing but what may be in the list.
        Shell::Zsh => script.replace("'*::", "'*:"),
        // The shell takes --flag=value apart at the sign.
        Shell::Bash => script.replacen("    cmd=\"\"\n", BASH_SIGN, 1),
        _ => script.to_owned(),
    }
}

const BASH_SIGN: &str = r#"    if [[ "${cur}" == "=" ]]; then
        cur=""
    elif [[ "${prev}" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}"
    fi
    cmd=""
"#;

/// The generator for fish leaves out what stands behind a command without a flag.
const FISH_KINDS_BEHIND: [&str; 5] = ["get", "describe", "edit", "delete", "wait"];

fn fish_kinds(command: &str) -> String {
    let words = kinds().map(|info| info.plural).collect::<Vec<_>>().join(" ");
    format!("complete -c ostler -n \"__fish_ostler_using_subcommand {command}\" -f -a \"{words}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_offered_behind_a_kind_and_files_only_where_they_are_meant() {
        let zsh = script(Shell::Zsh);
        assert!(zsh.contains("'*:what -- ") && !zsh.contains("'*::"), "kinds take the place of flags");
        assert!(zsh.contains("]:FOLDER:_files'") && !zsh.contains("]:NAME:_default'"), "{zsh}");
        let bash = script(Shell::Bash);
        assert!(!bash.contains("ostler,reference)"), "bash offers what is hidden");
        assert!(bash.contains(BASH_SIGN) && bash.contains("created succeeded ended ready deleted"), "{bash}");
        let behind_profile = bash.split("--profile)\n").nth(1).and_then(|rest| rest.lines().next());
        assert_eq!(behind_profile.map(str::trim), Some("COMPREPLY=(\"${cur}\")"));
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            assert!(
                !script(shell).contains("Prints a page of the reference"),
                "{shell} offers what is hidden"
            );
        }
    }
}
