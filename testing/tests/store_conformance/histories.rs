//! Random histories, several at once: each thread has stores of its own, and takes the next seed when it is done with
//! one.

use std::{
    env,
    num::NonZero,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use ostler_store::{
    SqliteStore,
    conformance::histories::compare,
    sqlite::{Options, Synchronous},
};
use ostler_testing::{postgres::Place, reference_store::ReferenceStore};
use tempfile::TempDir;
use tokio::runtime::Builder;

use crate::dense::Dense;

pub const N_OPS: usize = 150;

/// After so many a place in PostgreSQL is left behind: what was deleted stays in the way until it is cleaned up.
const PER_PLACE: usize = 50;

pub struct Seeds {
    first: u64,
    end: u64,
    next: AtomicU64,
}

impl Seeds {
    /// The one in `SEED`, or as many as `HISTORIES` says.
    pub fn chosen(usually: u64) -> Self {
        let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
        let (first, end) = match number("SEED") {
            Some(seed) => (seed, seed + 1),
            None => (0, number("HISTORIES").unwrap_or(usually)),
        };
        Self { first, end, next: AtomicU64::new(first) }
    }

    pub fn count(&self) -> u64 {
        self.end - self.first
    }

    fn next(&self) -> Option<u64> {
        let seed = self.next.fetch_add(1, Ordering::Relaxed);
        (seed < self.end).then_some(seed)
    }

    fn stop(&self) {
        self.next.store(self.end, Ordering::Relaxed);
    }
}

/// Goes through the seeds on all processors. What a history waits for happens in its own thread: waking another one for
/// each question would take longer than the answer.
pub fn on_threads(
    seeds: &Seeds,
    compare: impl AsyncFn(&Seeds) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let work = || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(compare(seeds)).inspect_err(|_| seeds.stop())
    };
    thread::scope(|scope| {
        let n_threads = thread::available_parallelism().map_or(1, NonZero::get);
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("nothing panics"))
    })
}

/// What is compared doesn't depend on syncing, and most of the time would go there: in memory it takes half as long.
pub async fn compare_with_sqlite(seeds: &Seeds) -> Result<(), String> {
    while let Some(seed) = seeds.next() {
        let in_memory = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
        let folder = in_memory.expect("a folder");
        let options = Options::at(&folder.path().join("store.db"));
        let options =
            Options { inline: true, synchronous: Synchronous::Normal, reserve_log: false, ..options };
        let sqlite = SqliteStore::open_with(options).expect("a store");
        let compared = compare(&ReferenceStore::new(), &sqlite, seed, N_OPS).await;
        compared.map_err(|difference| again(seed, &difference))?;
    }
    Ok(())
}

pub async fn compare_with_postgres(seeds: &Seeds) -> Result<(), String> {
    loop {
        let place = Place::fresh().expect("PostgreSQL").for_small_things();
        drop(place.open().await.expect("a store in PostgreSQL"));
        let visitor = place.visitor().await.expect("PostgreSQL");
        for _ in 0..PER_PLACE {
            let Some(seed) = seeds.next() else { return Ok(()) };
            visitor.empty().await.expect("PostgreSQL");
            let postgres = Dense::new(place.open().await.expect("a store in PostgreSQL"));
            let compared = compare(&ReferenceStore::new(), &postgres, seed, N_OPS).await;
            compared.map_err(|difference| again(seed, &difference))?;
        }
    }
}

fn again(seed: u64, difference: &str) -> String {
    format!("{difference}\nagain with SEED={seed}")
}
