//! A store that writes down what it acknowledged: the real one on a recorded disk, and a [`History`] beside it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use ostler_kernel::{Bundle, Refusal};
use ostler_store::{
    Answer, Claim, Claimed, Committed, Hint, Query, SqliteStore, Store, StoreError,
    sqlite::{Options, Synchronous},
};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;
use tokio::sync::watch;

use super::{
    disk::{Disk, Op},
    history::{Fact, History, Moment, Rows},
    vfs,
};

/// A log far shorter than in production, so that it is copied into the database and begun anew many times.
const CHECKPOINT_PAGES: u32 = 300;

pub struct Witness {
    pub disk: Arc<Disk>,
    options: Options,
    store: Mutex<Option<Arc<SqliteStore>>>,
    history: Mutex<History>,
    /// Behind the rest, so that the files go when nobody has them open.
    _folder: TempDir,
}

/// Everything that happened to a disk, and what callers were told meanwhile.
pub struct Recording {
    pub ops: Vec<Op>,
    pub history: History,
}

impl Witness {
    pub fn new(synchronous: Synchronous) -> anyhow::Result<Self> {
        let folder = scratch()?;
        let disk = Disk::at(folder.path())?;
        let options = Options {
            synchronous,
            vfs: Some(vfs::NAME.to_owned()),
            inline: true,
            checkpoint_pages: CHECKPOINT_PAGES,
            ..Options::at(&folder.path().canonicalize()?.join("store.db"))
        };
        let store = Mutex::new(Some(Arc::new(SqliteStore::open_with(options.clone())?)));
        let witness = Self { disk, options, store, history: Mutex::default(), _folder: folder };
        witness.note("the birth of the store".to_owned(), Vec::new())?;
        Ok(witness)
    }

    /// Closes the store and opens it again, as a process that was restarted does.
    pub fn restart(&self) -> anyhow::Result<()> {
        self.close();
        *guard(&self.store) = Some(Arc::new(SqliteStore::open_with(self.options.clone())?));
        Ok(())
    }

    pub fn close(&self) {
        guard(&self.store).take();
    }

    pub fn is_closed(&self) -> bool {
        guard(&self.store).is_none()
    }

    /// Ends the recording: what happens to the disk from here on doesn't count.
    pub fn finish(&self) -> Recording {
        Recording { ops: self.disk.take_ops(), history: std::mem::take(&mut guard(&self.history)) }
    }

    pub fn n_told(&self) -> usize {
        guard(&self.history).moments.len()
    }

    fn store(&self) -> Result<Arc<SqliteStore>, StoreError> {
        guard(&self.store).clone().ok_or_else(|| StoreError::Unavailable("the process is dead".to_owned()))
    }

    /// Writes down that a caller was just told so.
    fn note(&self, what: String, facts: Vec<Fact>) -> rusqlite::Result<()> {
        let n_ops = self.disk.n_ops();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags_and_vfs(&self.options.path, flags, vfs::NAME)?;
        let rows = Rows::of(&connection)?;
        guard(&self.history).moments.push(Moment { n_ops, what, rows, facts });
        Ok(())
    }

    fn must_note(&self, what: String, facts: Vec<Fact>) -> Result<(), StoreError> {
        self.note(what, facts).map_err(|error| StoreError::Read(format!("what was written: {error}")))
    }
}

#[async_trait]
impl Store for Witness {
    async fn commit(&self, bundles: Vec<Bundle>) -> Result<Vec<Result<Committed, Refusal>>, StoreError> {
        let results = self.store()?.commit(bundles.clone()).await?;
        let applied = || bundles.iter().zip(&results).filter(|(_, result)| result.is_ok()).map(|(it, _)| it);
        let what = format!("{:?}", applied().map(|bundle| bundle.command).collect::<Vec<_>>());
        self.must_note(what, applied().flat_map(Fact::of).collect())?;
        Ok(results)
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        let claimed = self.store()?.claim(claim).await?;
        self.must_note(format!("a claim of {} runs", claimed.len()), Vec::new())?;
        Ok(claimed)
    }

    async fn read(&self, query: Query) -> Result<Answer, StoreError> {
        self.store()?.read(query).await
    }

    fn watch(&self) -> watch::Receiver<Hint> {
        self.store().map_or_else(|_| watch::channel(Hint::default()).1, |store| store.watch())
    }
}

/// An empty folder, in memory where there is such a place: what a real disk does is not the matter here.
pub fn scratch() -> std::io::Result<TempDir> {
    let shared = PathBuf::from("/dev/shm");
    let parent = if shared.is_dir() { shared } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("power-loss-").tempdir_in(parent)
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
