//! Cuts the power under the store, many times: `power-loss --cuts 1000`. Ends with one line of figures.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a command of the testing ground")]

use std::{process::ExitCode, time::Instant};

use clap::Parser;
use ostler_store::sqlite::Synchronous;
use ostler_testing::power_loss::{Findings, during_faults, during_work};

#[derive(Parser)]
#[command(about = "Cuts the power under the store and looks for everything that was acknowledged")]
struct Args {
    /// How often the power is cut.
    #[arg(long, default_value_t = 1000)]
    cuts: usize,
    /// How many commits the power is cut between.
    #[arg(long, default_value_t = 600)]
    commits: usize,
    /// How often the disk fails or the process is killed.
    #[arg(long, default_value_t = 200)]
    faults: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let started = Instant::now();
    // Most of the cuts during ordinary work, the others while the disk fails.
    let n_during_faults = args.cuts / 4;
    let work = during_work(Synchronous::Full, args.commits, args.cuts - n_during_faults, args.seed)?;
    let (struck, faults) = during_faults(args.faults, n_during_faults, args.seed)?;
    let normal = during_work(Synchronous::Normal, args.commits, args.cuts / 4, args.seed)?;
    [&work, &faults].into_iter().for_each(complain);
    normal.unopened.iter().for_each(|line| println!("with synchronous=NORMAL not opened: {line}"));
    let n_lost = work.lost.len() + faults.lost.len();
    let n_unopened = work.unopened.len() + faults.unopened.len();
    println!(
        "power-loss: {} cuts, {n_lost} lost, {n_unopened} unopened; with synchronous=NORMAL {} of {} cuts lost \
         acknowledged work; full disk {} faults, failing sync {} faults, failing write {} faults and {} kills \
         in a commit survived, {:.1} s",
        work.n_cuts + faults.n_cuts,
        normal.lost.len(),
        normal.n_cuts,
        struck.full,
        struck.sync,
        struck.write,
        struck.killed,
        started.elapsed().as_secs_f64()
    );
    let good = n_lost + n_unopened + normal.unopened.len() == 0 && !normal.lost.is_empty();
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn complain(findings: &Findings) {
    findings.lost.iter().for_each(|line| println!("lost: {line}"));
    findings.unopened.iter().for_each(|line| println!("not opened: {line}"));
}
