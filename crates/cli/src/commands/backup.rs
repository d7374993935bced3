//! `ostler backup`: a consistent copy of everything, while the server works.

use std::path::PathBuf;

use crate::{app::App, error::CommandError, exit::Exit};

/// Writes a consistent copy of the store to a file; the server goes on working
///
/// The file holds every declared object, task and conversation: keep it as safe as the data folder. Secrets are in it,
/// sealed, and the key that opens them is not: keep a copy of `secret-key` of the data folder, or of what --secret-key-file
/// names, apart from it. `ostler up --restore FILE` starts from it. A store in PostgreSQL is backed up with pg_dump.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Where to write it
    file: PathBuf,

    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  ostler backup ostler-$(date +%F).db
  ostler up --data ./restored --restore ostler-2026-01-31.db";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let Arguments { file, force } = arguments;
    if file.as_os_str() == "-" {
        let message = "a backup is written to a file, not to stdout";
        return Err(CommandError::new(Exit::Usage, message)
            .with_remedy("name a file: `ostler backup ostler.db`; ./- is one that is called so"));
    }
    if file.is_dir() {
        return Err(CommandError::error(format!("{} is a folder", file.display())));
    }
    if file.exists() && !force {
        let message = format!("{} is there already", file.display());
        return Err(CommandError::error(message).with_remedy("--force replaces it"));
    }
    let bytes = app.client()?.backup(&file).await?;
    app.output.note(format!("{} written, {}", file.display(), size(bytes)));
    Ok(Exit::Ok)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes % 1_000_000_000 / 100_000_000),
    }
}
