//! `ostler validate`: checks manifests without a server.

use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::{
    app::App,
    error::CommandError,
    exit::Exit,
    manifests::{self, Source, title},
    paint::Tone,
};

/// Checks manifests, without a server
///
/// Every mistake of every file is told at once, each with file, line, column, and the nearest valid name. What is valid
/// and can't be done by this version is noted. Ends with 0 if all is well, with 1 if there is a mistake.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A manifest, a folder of them and of further folders (*.yaml, *.yml, *.json), or - for stdin
    #[arg(value_name = "FILE", required_unless_present = "files")]
    paths: Vec<PathBuf>,

    /// The same, as `apply` takes it
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// How to tell it
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line per file, mistakes on stderr
    Text,
    /// An object per file, with what it declares, its mistakes and what is noted
    Json,
}

const EXAMPLES: &str = "\
Examples:
  ostler validate agents/
  ostler validate -f agent.yaml -f tools/
  cat agent.yaml | ostler validate -
  ostler validate agents/ -o json | jq '.[].problems[]'";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let files: Vec<PathBuf> = arguments.paths.into_iter().chain(arguments.files).collect();
    let sources = manifests::read(&files)?;
    match arguments.output {
        Format::Json => as_json(app, &sources),
        Format::Text => as_text(app, sources),
    }
}

fn as_text(app: &App, sources: Vec<Source>) -> Result<Exit, CommandError> {
    for Source { name, outcome, .. } in &sources {
        let Ok(parsed) = outcome else { continue };
        let titles: Vec<String> = parsed.resources.iter().map(title).collect();
        let valid = app.output.paint().tone(Tone::Good, "ok");
        let declares = if titles.is_empty() { "nothing declared".to_owned() } else { titles.join(", ") };
        app.output.data(format!("{name}: {valid}, {declares}"))?;
    }
    let n_sources = sources.len();
    let manifests = manifests::together(sources, &format!("{} read", counted(n_sources, "file")))?;
    for notice in manifests.notices {
        app.output.note(format!("note: {notice}"));
    }
    Ok(Exit::Ok)
}

fn as_json(app: &App, sources: &[Source]) -> Result<Exit, CommandError> {
    let told: Vec<Value> = sources.iter().map(file_json).collect();
    app.output.json(&told)?;
    let is_valid = manifests::mistakes(sources).is_empty();
    Ok(if is_valid { Exit::Ok } else { Exit::Error })
}

fn file_json(source: &Source) -> Value {
    let Source { name, outcome, .. } = source;
    match outcome {
        Ok(parsed) => {
            let titles: Vec<String> = parsed.resources.iter().map(title).collect();
            json!({ "file": name, "valid": true, "declares": titles, "problems": [], "notes": parsed.notices })
        }
        Err(problems) => {
            json!({ "file": name, "valid": false, "declares": [], "problems": problems, "notes": [] })
        }
    }
}

fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
