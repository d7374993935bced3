//! Plays seeds of the simulation. A failing seed is one command to rerun: `sim --seed N --log`.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a command of the testing ground"
)]

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant as Clock,
};

use clap::Parser;
use ostler_kernel::Command;
use ostler_testing::sim::{Bug, Condition, Instant, Outcome, run_seed};

#[derive(Parser)]
#[command(about = "Plays seeds of the deterministic simulation")]
struct Args {
    /// Play this one seed alone.
    #[arg(long)]
    seed: Option<u64>,
    /// Play so many seeds, from --first on.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    #[arg(long, default_value_t = 0)]
    first: u64,
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Plant a bug, and succeed if it is caught.
    #[arg(long)]
    bug: Option<Bug>,
    /// Plant the bugs in turn but for the rarest, each on up to --seeds seeds.
    #[arg(long)]
    all_bugs: bool,
    /// With a bug: play all seeds instead of stopping at the first that catches it, and count those that do.
    #[arg(long)]
    count: bool,
    /// Print the log of each seed.
    #[arg(long)]
    log: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.all_bugs {
        return all_bugs(&args);
    }
    let (first, seeds) = args.seed.map_or((args.first, args.seeds), |seed| (seed, 1));
    let started = Clock::now();
    let total = play(&args, first, seeds, args.bug, args.bug.is_some() && !args.count);
    report(&total, seeds, started);
    let caught = total.failed.first();
    let good = match args.bug {
        Some(_) => caught.is_some(),
        None => caught.is_none() && (seeds < 500 || (covers_crashes(&total) & covers_conditions(&total))),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[derive(Default)]
struct Total {
    played: u64,
    polls: u64,
    failed: Vec<(u64, String)>,
    coverage: BTreeMap<(String, Instant), u64>,
    refusals: BTreeMap<(Command, Condition), u64>,
}

fn play(args: &Args, first: u64, seeds: u64, bug: Option<Bug>, stop_at_first: bool) -> Total {
    let next = AtomicU64::new(first);
    let total = Mutex::new(Total::default());
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    let enough = stop_at_first && !total.lock().expect("no panic").failed.is_empty();
                    if seed >= first + seeds || enough {
                        return;
                    }
                    let outcome = play_one(seed, bug);
                    if args.log {
                        println!("seed {seed}\n{}", outcome.log);
                    }
                    add(
                        &mut total.lock().expect("no panic"),
                        seed,
                        outcome,
                        args.bug.is_none() && bug.is_none(),
                    );
                }
            });
        }
    });
    total.into_inner().expect("no panic")
}

fn play_one(seed: u64, bug: Option<Bug>) -> Outcome {
    // In memory where there is such a folder: what is tried here is order, not the disk.
    let shared = std::path::Path::new("/dev/shm");
    let parent = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    let folder = tempfile::tempdir_in(parent).expect("a folder for the store");
    run_seed(seed, folder.path(), bug)
}

fn add(total: &mut Total, seed: u64, outcome: Outcome, loud: bool) {
    total.played += 1;
    total.polls += outcome.polls;
    for (key, count) in outcome.coverage {
        *total.coverage.entry(key).or_default() += count;
    }
    for (key, count) in outcome.refusals {
        *total.refusals.entry(key).or_default() += count;
    }
    if let Some(violation) = outcome.violations.first() {
        if loud {
            println!("seed {seed} failed: {violation}\n  again: make sim SEED={seed}");
        }
        total.failed.push((seed, violation.clone()));
    }
}

/// The commands at which a crash must have been tried, right before and right after.
const COMMANDS: [&str; 16] = [
    "Accept",
    "AcceptInput",
    "Journal",
    "Finish",
    "Yield",
    "TakeOver",
    "Wake",
    "Resolve",
    "Cancel",
    "Expire",
    "Register",
    "Renew",
    "Apply",
    "Delete",
    "PutBlob",
    "Claim",
];

fn covers_crashes(total: &Total) -> bool {
    let missing: Vec<String> = COMMANDS
        .iter()
        .flat_map(|command| [Instant::Before, Instant::After].map(|instant| (command.to_string(), instant)))
        .filter(|key| !total.coverage.contains_key(key))
        .map(|(command, instant)| format!("{instant:?} {command}"))
        .collect();
    if !missing.is_empty() {
        println!("no crash was tried {}", missing.join(", "));
    }
    missing.is_empty()
}

/// Stated, and out of the simulation's reach: no worker is gone for long enough to be forgotten while it registers.
const OUT_OF_REACH: [(Command, Condition); 1] = [(Command::Register, Condition::Resource)];

/// Every condition that is stated has refused something, or its absence could go unnoticed; and for every one
/// there is a bug that leaves it out.
fn covers_conditions(total: &Total) -> bool {
    let all = Bug::all();
    let mut covered = true;
    let reached = total.refusals.iter().filter(|(condition, _)| !OUT_OF_REACH.contains(condition));
    for (&(command, condition), refusals) in reached {
        let bug = Bug::Unchecked(command, condition);
        if !all.contains(&bug) {
            println!("no planted bug is {bug}");
        }
        if *refusals == 0 {
            println!("the condition {command:?}.{condition:?} never refused anything");
        }
        covered &= all.contains(&bug) && *refusals > 0;
    }
    covered
}

fn report(total: &Total, seeds: u64, started: Clock) {
    let crashes: u64 = total.coverage.values().sum();
    let least = |counts: &mut dyn Iterator<Item = &u64>| counts.min().copied().unwrap_or(0);
    println!(
        "sim: {} of {seeds} seeds played, {} failed, {} steps, {crashes} crashes at {} instants of commands (least {}), \
         {} refusals by {} conditions (least {}), {:.1} s",
        total.played,
        total.failed.len(),
        total.polls,
        total.coverage.len(),
        least(&mut total.coverage.values()),
        total.refusals.values().sum::<u64>(),
        total.refusals.len(),
        least(&mut total.refusals.values()),
        started.elapsed().as_secs_f64()
    );
}

fn all_bugs(args: &Args) -> ExitCode {
    let mut missed = 0;
    let bugs: Vec<Bug> = Bug::all().into_iter().filter(|bug| !bug.is_rare()).collect();
    for bug in bugs.iter().copied() {
        let total = play(args, args.first, args.seeds, Some(bug), !args.count);
        match total.failed.iter().min() {
            Some((seed, violation)) => {
                let (caught, played) = (total.failed.len(), total.played);
                println!("{bug}: caught by {caught} of {played} seeds, first by seed {seed}: {violation}");
            }
            None => {
                println!("{bug}: NOT CAUGHT in {} seeds", total.played);
                missed += 1;
            }
        }
    }
    println!("sim: {} planted bugs caught, {missed} missed", bugs.len() - missed);
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
