//! Proves that what a store acknowledged survives a power cut. The real store works on a disk that remembers
//! every write and sync; the power is then cut at many points of that recording, what a disk may hold at each is
//! put together, and must open with everything that callers had been told.
//!
//! The proof is proven by a store that doesn't sync its commits: there the same cuts must find losses.

mod cuts;
mod disk;
mod faults;
mod history;
mod platter;
mod story;
mod vfs;
mod witness;

use std::sync::Arc;

use ostler_store::{conformance::world::World, sqlite::Synchronous};

pub use self::{cuts::Findings, faults::Struck};
use self::{
    story::Story,
    witness::{Recording, Witness},
};

/// Cuts during ordinary work of so many commits.
pub fn during_work(
    synchronous: Synchronous,
    n_commits: usize,
    n_cuts: usize,
    seed: u64,
) -> anyhow::Result<Findings> {
    let recording = runtime()?.block_on(work(synchronous, n_commits, seed))?;
    cuts::cut(&recording, n_cuts, seed)
}

/// Rounds of trouble with the disk, and cuts during them. An error says what a caller was told wrongly.
pub fn during_faults(n_rounds: usize, n_cuts: usize, seed: u64) -> anyhow::Result<(Struck, Findings)> {
    let (recording, struck) = runtime()?.block_on(faults::record(n_rounds, seed))?;
    Ok((struck, cuts::cut(&recording, n_cuts, seed)?))
}

async fn work(synchronous: Synchronous, n_commits: usize, seed: u64) -> anyhow::Result<Recording> {
    let witness = Arc::new(Witness::new(synchronous)?);
    let world = World::new(witness.clone());
    let mut story = Story::begin(&world, seed).await;
    while witness.n_told() < n_commits {
        if story.dice.one_in(150) {
            witness.restart()?;
        }
        story.go_on().await;
    }
    Ok(witness.finish())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().build()
}
