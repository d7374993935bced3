//! The crash test as a command: kills `ostler up` again and again, and judges what came of it. One line of
//! figures at the end; the exit code is 0 only if everything holds.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command of the testing ground")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ostler_testing::{
    crash::{self, Settings},
    program::find_binary,
};

/// As many failures are printed; the first ones tell the most.
const SHOWN: usize = 20;

/// Kills the real server under load and checks that nothing was lost or done twice.
#[derive(Parser)]
struct Arguments {
    /// How often to kill.
    #[arg(long, default_value_t = 300)]
    kills: u32,
    /// Tasks kept live.
    #[arg(long, default_value_t = 200)]
    live: usize,
    /// Decides when kills come; the rest is up to the machine.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder for the server's data; kept if anything fails.
    #[arg(long, default_value = "target/crash")]
    data: PathBuf,
    /// On PostgreSQL instead of SQLite.
    #[arg(long)]
    postgres: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let Arguments { kills, live, seed, data, postgres } = Arguments::parse();
    let settings = Settings { binary: find_binary()?, folder: data, kills, live, seed, postgres };
    let outcome = crash::run(&settings).await.inspect_err(|_| keep(&settings))?;
    let failures = outcome.failures();
    println!("{outcome}");
    if failures.is_empty() {
        std::fs::remove_dir_all(&settings.folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    for failure in failures.iter().take(SHOWN) {
        eprintln!("failed: {failure}");
    }
    if failures.len() > SHOWN {
        eprintln!("and {} more", failures.len() - SHOWN);
    }
    keep(&settings);
    Ok(ExitCode::FAILURE)
}

fn keep(settings: &Settings) {
    eprintln!("seed {}; the data folder is kept: {}", settings.seed, settings.folder.display());
}
