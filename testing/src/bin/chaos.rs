//! Chaos as a command: does everything to a cluster of real processes that happens to such, and judges what came of it.
//! One line of figures at the end; the exit code is 0 only if everything holds.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command of the testing ground")]

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use ostler_testing::chaos::{self, Settings, rolling};
use ostler_testing::program::find_binary;

/// As many failures are printed; the first ones tell the most.
const SHOWN: usize = 20;

const TASKS_PER_MINUTE: f64 = 100.0;

/// Kills, pauses, cuts off, fills up and misleads servers, workers and their database under load.
#[derive(Parser)]
struct Arguments {
    /// How long to go on.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Tasks in all; by default 100 for each minute.
    #[arg(long)]
    tasks: Option<u64>,
    /// Decides what is done; when it strikes is up to the machine.
    #[arg(long)]
    seed: Option<u64>,
    /// Instead: restart every server and every worker in turn, in good order, so many times.
    #[arg(long, value_name = "ROUNDS", conflicts_with = "minutes")]
    rolling: Option<u32>,
    /// For data and logs; kept if anything fails.
    #[arg(long, default_value = "target/chaos")]
    data: PathBuf,
    /// Said to itself: the mounts of this process are its own.
    #[arg(long, hide = true)]
    has_own_mounts: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    if !arguments.has_own_mounts && can_have_own_mounts() {
        return Err(enter_own_mounts());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(play(&arguments))
}

fn can_have_own_mounts() -> bool {
    let tried = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// The disk of the database is mounted where nobody else sees it, and is gone with this process.
fn enter_own_mounts() -> anyhow::Error {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]);
    let this = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("chaos"));
    command.arg(this).args(std::env::args_os().skip(1)).arg("--has-own-mounts");
    anyhow::Error::new(command.exec()).context("a mount namespace can't be made")
}

async fn play(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let seed =
        arguments.seed.unwrap_or_else(|| jiff::Timestamp::now().as_millisecond().unsigned_abs() % 1_000_000);
    let minutes = arguments.minutes;
    let tasks = arguments.tasks.unwrap_or((minutes * TASKS_PER_MINUTE) as u64);
    let folder = std::path::absolute(&arguments.data)?;
    eprintln!("SEED={seed}; data and logs in {}", folder.display());
    let settings = Settings {
        binary: find_binary()?,
        folder: folder.clone(),
        duration: Duration::from_secs_f64(minutes * 60.0),
        tasks,
        seed,
        has_own_mounts: arguments.has_own_mounts,
        progress: Some(|line| eprintln!("{line}")),
    };
    let played = match arguments.rolling {
        Some(n_rounds) => {
            rolling::run(&settings, n_rounds).await.map(|rolled| (rolled.to_string(), rolled.failures()))
        }
        None => chaos::run(&settings).await.map(|outcome| {
            outcome.faults().iter().for_each(|line| println!("{line}"));
            (format!("{outcome}, seed {seed}"), outcome.failures())
        }),
    };
    let (figures, failures) = played.inspect_err(|_| keep(&folder))?;
    for failure in failures.iter().take(SHOWN) {
        eprintln!("failed: {failure}");
    }
    if failures.len() > SHOWN {
        eprintln!("and {} more", failures.len() - SHOWN);
    }
    if failures.is_empty() {
        std::fs::remove_dir_all(&folder).context("the folder can't be removed")?;
    } else {
        std::fs::write(folder.join("failures.txt"), failures.join("\n"))?;
        keep(&folder);
    }
    println!("{figures}");
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn keep(folder: &Path) {
    eprintln!("what there is to look at is kept in {}", folder.display());
}
