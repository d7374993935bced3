//! What to measure and how much of it.

use std::fmt;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Measures Ostler beside the floors of this machine.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub struct Settings {
    /// Only these, besides the floors; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub only: Vec<Measurement>,

    /// Write the figures to this file, as markdown
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// The folder for data; it must lie on the disk that is measured, and is removed at the end
    #[arg(long, value_name = "FOLDER", default_value = "target/bench")]
    pub data: PathBuf,

    /// Tasks that are measured one at a time
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = at_least_one)]
    pub tasks: usize,

    /// Tasks and runs at once, under load
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    pub at_once: usize,

    /// Seconds under load
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,

    /// Runs of the loop whose CPU time is taken
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = at_least_one)]
    pub loops: usize,

    /// Finished tasks in the full store
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = at_least_one)]
    pub prefill: usize,

    /// Tasks on each of the two stores whose cost is compared
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = at_least_one)]
    pub cost_tasks: usize,

    /// Tasks on PostgreSQL behind which dead rows are counted
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = at_least_one)]
    pub shared_tasks: usize,

    /// On PostgreSQL: how many workers dial, one number after the other; 0 is the one process that does it all
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [0, 1, 2, 4])]
    pub workers: Vec<usize>,

    /// Starts of the server
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    pub starts: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Measurement {
    /// fdatasync, loopback round trip, batched inserts
    Floors,
    /// Accept to first model call, idle system
    FirstCall,
    /// Model, tool, model over HTTP: one at a time and many at once
    ThreeSteps,
    /// Journaled steps per second
    Journal,
    /// The model gateway beside LiteLLM: added latency, first token, calls per second
    Gateway,
    /// CPU of a loop step beside model and store
    Loop,
    /// The cost of a task with few and with many finished ones in the store
    History,
    /// PostgreSQL and workers that dial: how soon tasks are picked up, throughput, cost, dead rows
    Shared,
    /// Start to ready, and memory when idle
    StartUp,
    /// `ostler get agents` beside a warm server
    Command,
}

impl Settings {
    /// In the order in which they are taken.
    pub fn chosen(&self) -> Vec<Measurement> {
        let is_chosen = |name: &Measurement| self.only.is_empty() || self.only.contains(name);
        Measurement::value_variants().iter().copied().filter(is_chosen).collect()
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("expected at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("expected a number".to_owned()),
    }
}
