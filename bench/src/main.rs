//! Measures Ostler on this machine, each figure beside a physical floor taken in the same run, and says which
//! bars are reached. `--record` writes the same as markdown.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command of the bench")]
#![allow(clippy::disallowed_methods, reason = "real time is what is measured here")]

mod ground;
mod http;
mod litellm;
mod load;
mod machine;
mod measure;
mod office;
mod ostler;
mod prefill;
mod report;
mod samples;
mod settings;

use std::fs;

use anyhow::Context as _;
use clap::Parser;

use measure::{Bench, floors};
use report::Report;
use settings::{Measurement, Settings};

/// The same as in the server: the store is measured in this process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One thread: the client shall take little from the two cores that the server needs too.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let settings = Settings::parse();
    if cfg!(debug_assertions) {
        eprintln!("not built with --release: the figures say little");
    }
    let binary = ostler_testing::program::find_binary()?;
    fs::create_dir_all(&settings.data).context("the data folder can't be made")?;
    let mut report = Report::new()?;
    let floors = floors::measure(&settings, &mut report).await?;
    let bench = Bench { settings, binary, floors };
    let outcome = measure_all(&bench, &mut report).await;
    // What was measured is worth printing even if a later measurement failed.
    println!("{}", report.table());
    println!("{}", report.summary());
    let Settings { record, data, .. } = &bench.settings;
    if let Some(record) = record {
        fs::write(record, report.markdown()).context("the record can't be written")?;
    }
    outcome?;
    fs::remove_dir_all(data).context("the data folder can't be removed")
}

async fn measure_all(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    for measurement in bench.settings.chosen() {
        eprintln!("measuring: {measurement}");
        match measurement {
            // Already taken: all others stand beside them.
            Measurement::Floors => {}
            Measurement::FirstCall => measure::first_call::measure(bench, report).await?,
            Measurement::ThreeSteps => measure::three_steps::measure(bench, report).await?,
            Measurement::Journal => measure::journal::measure(bench, report)?,
            Measurement::Gateway => measure::gateway::measure(bench, report).await?,
            Measurement::Loop => measure::loop_step::measure(bench, report)?,
            Measurement::History => measure::history::measure(bench, report).await?,
            Measurement::Shared => measure::shared::measure(bench, report).await?,
            Measurement::StartUp => measure::start_up::measure(bench, report).await?,
            Measurement::Command => measure::command::measure(bench, report).await?,
        }
    }
    Ok(())
}
