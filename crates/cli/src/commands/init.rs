//! `ostler init`: a project to begin with, that runs at once.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use clap::ValueEnum;

use crate::{app::App, error::CommandError, exit::Exit};

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
}

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let Arguments { folder, template } = arguments;
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
        app.output.data(format!("{} written", path.display()))?;
    }
    let folder = folder.display();
    app.output.note(format!("{folder}/README.md says how to go on, or at once:"));
    app.output.note(format!("  ostler validate {folder}"));
    app.output.note("  ostler up                    in another terminal");
    app.output.note(format!("  ostler apply -f {folder} --run"));
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
        CommandError::error(format!("can't write {}: {error}", path.display()))
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
