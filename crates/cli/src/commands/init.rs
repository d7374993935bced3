//! `ostler init`: a project to begin with, that runs at once.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use clap::ValueEnum;

use crate::{
    app::App,
    error::{CommandError, place_remedy},
    exit::Exit,
};

/// Makes a project to begin with: manifests that run at once, with comments that explain them
///
/// Nothing that is there is overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Where to make it; without it, here
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,

    /// What to begin with
    #[arg(short, long, value_enum, default_value_t = Template::Agent)]
    template: Template,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Template {
    /// One agent on the mock model, and a request
    Agent,
    /// An agent that calls a tool over HTTP, and the tool
    Tool,
    /// Three agents one behind the other
    Pipeline,
}

const EXAMPLES: &str = "\
Examples:
  ostler init hello && cd hello
  ostler init weather --template tool
  ostler init report --template pipeline && ostler graph -f report/";

macro_rules! files {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../templates/", $path)))),+]
    };
}

impl Template {
    /// Path and text of each, the path behind the template's own name.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Template::Agent => files!("agent/README.md", "agent/agent.yaml", "agent/task.yaml"),
            Template::Tool => files!("tool/README.md", "tool/tool.yaml", "tool/tool.py"),
            Template::Pipeline => {
                files!("pipeline/README.md", "pipeline/pipeline.yaml", "pipeline/task.yaml")
            }
        }
    }

    /// What to do with it, in order.
    fn commands(self, folder: &Path) -> Vec<String> {
        let whole = shell_word(folder);
        let mut commands = vec![
            format!("ostler validate {whole}"),
            "ostler up                    # in another terminal".to_owned(),
        ];
        match self {
            Template::Agent | Template::Pipeline => commands.push(format!("ostler apply -f {whole} --run")),
            Template::Tool => commands.extend([
                format!("python3 {}   # in a third one", shell_word(&folder.join("tool.py"))),
                format!("ostler apply -f {whole}"),
                "ostler run clerk \"Lisbon\"".to_owned(),
            ]),
        }
        commands
    }
}

/// A path as a shell reads it, in quotes where it has to be, and not as a flag.
fn shell_word(path: &Path) -> String {
    let path = path.to_string_lossy();
    let path = if path.starts_with('-') { format!("./{path}").into() } else { path };
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@%".contains(letter);
    match !path.is_empty() && path.chars().all(is_plain) {
        true => path.into_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let Arguments { folder, template } = arguments;
    if folder.exists() && !folder.is_dir() {
        return Err(CommandError::error(format!("{} is a file, and no folder", folder.display()))
            .with_remedy("name another place: `ostler init FOLDER`"));
    }
    let name = project_name(&folder);
    let files: Vec<(PathBuf, String)> = template
        .files()
        .iter()
        .map(|(path, text)| {
            let path = path.split_once('/').map_or(*path, |(_, path)| path);
            (folder.join(path), text.replace("{{name}}", &name))
        })
        .collect();
    refuse_to_overwrite(&files)?;
    for (path, text) in &files {
        write(path, text)?;
        app.output.done(format!("{} written", path.display()))?;
    }
    app.output.note(format!("{} says how to go on, or at once:", folder.join("README.md").display()));
    template.commands(&folder).iter().for_each(|command| app.output.note(format!("  {command}")));
    Ok(Exit::Ok)
}

fn refuse_to_overwrite(files: &[(PathBuf, String)]) -> Result<(), CommandError> {
    let there = files.iter().filter(|(path, _)| path.symlink_metadata().is_ok());
    let there: Vec<String> = there.map(|(path, _)| path.display().to_string()).collect();
    if there.is_empty() {
        return Ok(());
    }
    Err(CommandError::error("there is something already; nothing was written")
        .with_details(there)
        .with_remedy("name another folder: `ostler init FOLDER`"))
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let written = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
    };
    written().map_err(|error: std::io::Error| {
        let told = CommandError::error(format!("can't write {}: {error}", path.display()));
        match place_remedy(&error) {
            Some(remedy) => told.with_remedy(remedy),
            None => told,
        }
    })
}

/// What the folder is called.
fn project_name(folder: &Path) -> String {
    let whole = folder.canonicalize().ok();
    let named = whole.as_deref().unwrap_or(folder).file_name();
    named.map_or_else(|| "project".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_done_next_can_be_copied() {
        let tool = Template::Tool.commands(Path::new("bad name!"));
        assert!(tool.contains(&"ostler validate 'bad name!'".to_owned()), "{tool:?}");
        assert!(tool.iter().any(|line| line.starts_with("python3 'bad name!/tool.py' ")), "{tool:?}");
        assert!(!tool.iter().any(|line| line.contains("--run")), "it has no task: {tool:?}");
        let agent = Template::Agent.commands(Path::new("hello"));
        assert_eq!(agent.last().map(String::as_str), Some("ostler apply -f hello --run"));
        assert_eq!(shell_word(Path::new("it's")), r"'it'\''s'");
        assert_eq!(shell_word(Path::new("-dash")), "./-dash");
        for line in tool.iter().chain(&agent) {
            let (command, remark) = line.split_once("   ").unwrap_or((line, ""));
            assert!(remark.is_empty() || remark.trim_start().starts_with("# "), "{command:?} {remark:?}");
        }
    }

    #[test]
    fn every_template_is_valid_and_explains_itself() {
        for template in Template::value_variants() {
            for (path, text) in template.files() {
                if path.ends_with(".yaml") {
                    ostler_spec::parse(path, text).unwrap();
                    assert!(text.contains('#'), "{path} explains nothing");
                }
            }
            let readme = template.files().iter().find(|(path, _)| path.ends_with("README.md")).unwrap().1;
            assert!(readme.starts_with("# {{name}}\n") && readme.contains("ostler up"));
        }
    }
}
