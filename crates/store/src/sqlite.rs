//! The store on SQLite. Exactly one process opens the file; inside it one writer commits many callers'
//! bundles together, and readers stand beside it.

mod apply;
mod backup;
mod chain;
mod claim;
mod forget;
mod judge;
mod lock;
mod open;
mod read;
mod restore;
mod row;
pub(crate) mod schema;
mod tail;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use async_trait::async_trait;
use ostler_kernel::{Bundle, Refusal};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use self::{
    chain::Owner,
    lock::FileLock,
    tail::Tail,
    writer::{Broken, Job, Memory, write_batch},
};
pub use self::{
    open::{OpenError, Options, Synchronous},
    restore::{RestoreError, restore},
    schema::MigrateError,
};
use crate::{
    Answer, Claim, Claimed, Committed, Hint, Query, Store, StoreError, body::Prepared, turns::Turns,
};

/// How many callers a batch may hold. Past it the sync is cheap already, and the first would wait too long.
const MAX_BATCH: usize = 512;

/// Closed in the order of its fields: the readers, then the writer, who as the last one folds the log into the
/// database, and only then the lock is let go.
pub struct SqliteStore {
    options: Options,
    readers: Mutex<Vec<Connection>>,
    writer: Writer,
    tail: Arc<Mutex<Tail>>,
    hints: watch::Receiver<Hint>,
    /// Held as long as the store is open: nobody else may open the file.
    _lock: FileLock,
}

enum Writer {
    Thread(WriterThread),
    /// For the simulation: commits happen inside the call. None after it broke and could not be reopened.
    Inline(Mutex<(Option<Connection>, Memory)>),
}

/// Dropping it waits until the thread has written what it was given and closed its connection.
struct WriterThread {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl SqliteStore {
    /// Opens the file, makes it if it isn't there, and starts the writer's thread.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(Options::at(path))
    }

    /// Without a thread: what a commit does happens inside the call.
    pub fn open_inline(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(Options { inline: true, reserve_log: false, ..Options::at(path) })
    }

    pub fn open_with(options: Options) -> Result<Self, OpenError> {
        let lock = FileLock::take(&options.path)?;
        let connection = open::writer(&options)?;
        let hint = Hint { position: last_position(&connection)?, ..Hint::default() };
        let (watchers, hints) = watch::channel(hint);
        let tail = Arc::default();
        let (turns, planted) = (Turns::default(), options.planted);
        let memory = Memory { turns, hint, tail: Arc::clone(&tail), watchers, planted };
        let writer = if options.inline {
            Writer::Inline(Mutex::new((Some(connection), memory)))
        } else {
            Writer::Thread(WriterThread::start(connection, memory, options.clone())?)
        };
        Ok(Self { options, readers: Mutex::new(Vec::new()), writer, tail, hints, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.options.path
    }

    /// Writes a consistent copy of the store as it is now. Blocks until the copy is synced.
    pub fn backup(&self, target: &Path) -> Result<PathBuf, StoreError> {
        self.with_reader(|reader| backup::backup(reader, target))
    }

    fn with_reader<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let spare = guard(&self.readers).pop();
        let reader = match spare {
            Some(reader) => reader,
            None => open::reader(&self.options).map_err(|error| StoreError::Read(error.to_string()))?,
        };
        let answer = work(&reader).map_err(|error| StoreError::Read(error.to_string()))?;
        guard(&self.readers).push(reader);
        Ok(answer)
    }

    async fn send<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = oneshot::channel();
        let job = job(sender);
        match &self.writer {
            Writer::Thread(writer) => writer.send(job).await?,
            Writer::Inline(state) => self.write_inline(&mut guard(state), job)?,
        }
        receiver.await.unwrap_or_else(|_| Err(StoreError::Unknown("the writer stopped".into())))
    }

    fn write_inline(&self, state: &mut (Option<Connection>, Memory), job: Job) -> Result<(), StoreError> {
        let (connection, memory) = state;
        if connection.is_none() {
            let opened = reopen(&self.options, memory);
            *connection = Some(opened.map_err(|error| StoreError::Unavailable(error.to_string()))?);
        }
        if let Some(open) = connection
            && write_batch(open, memory, vec![job]).is_err()
        {
            *connection = None;
        }
        Ok(())
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, bundles: Vec<Bundle>) -> Result<Vec<Result<Committed, Refusal>>, StoreError> {
        let prepared = Prepared::all(bundles)?;
        self.send(|sender| Job::Commit(prepared, sender)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.send(|sender| Job::Claim(claim, sender)).await
    }

    async fn read(&self, query: Query) -> Result<Answer, StoreError> {
        if let Some(answer) = guard(&self.tail).answer(&query) {
            return Ok(answer);
        }
        self.with_reader(|reader| read::read(reader, &query))
    }

    fn watch(&self) -> watch::Receiver<Hint> {
        self.hints.clone()
    }
}

/// Nothing is left half-done under these locks, so a panic elsewhere doesn't spoil what they guard.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn last_position(connection: &Connection) -> rusqlite::Result<u64> {
    let last: u64 =
        connection.query_row("SELECT coalesce(max(position), 0) FROM events", [], |row| row.get(0))?;
    let forgotten = chain::end(connection, Owner::Log)?.and_then(|end| end.place).unwrap_or(0);
    Ok(last.max(forgotten.cast_unsigned()))
}

/// Opens the store again after a batch broke. That batch may be there all the same, so everyone is told to look.
fn reopen(options: &Options, memory: &mut Memory) -> Result<Connection, OpenError> {
    guard(&memory.tail).forget();
    let connection = open::writer(options)?;
    let Hint { position: _, ready, due, resources, put_back } = memory.hint;
    let position = last_position(&connection)?;
    memory.hint = Hint { position, ready: ready + 1, due: due + 1, resources: resources + 1, put_back };
    memory.watchers.send_replace(memory.hint);
    Ok(connection)
}

impl WriterThread {
    fn start(connection: Connection, memory: Memory, options: Options) -> Result<Self, OpenError> {
        let (jobs, receiver) = mpsc::channel(4096);
        let thread = std::thread::Builder::new()
            .name("ostler-store".into())
            .spawn(move || serve(connection, memory, &options, receiver))
            .map_err(|error| OpenError::Io { path: PathBuf::new(), error })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    async fn send(&self, job: Job) -> Result<(), StoreError> {
        let stopped = || StoreError::Unavailable("the writer has stopped".into());
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).await.map_err(|_| stopped())
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.jobs = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the store's writer ended in a panic");
        }
    }
}

/// The first job and all that waits behind it. Where the processors are busy, those who are about to bring more
/// go first, and share the sync; where they are not, this costs nothing.
fn gather(first: Job, jobs: &mut mpsc::Receiver<Job>) -> Vec<Job> {
    let mut batch = vec![first];
    loop {
        std::thread::yield_now();
        let before = batch.len();
        while batch.len() < MAX_BATCH
            && let Ok(job) = jobs.try_recv()
        {
            batch.push(job);
        }
        if batch.len() == before || batch.len() == MAX_BATCH {
            // They were sent at the same time, so any order is right; behind the others a claim finds more.
            batch.sort_by_key(|job| matches!(job, Job::Claim(..)));
            return batch;
        }
    }
}

/// Takes all that waits, writes it together, and so syncs once for many. After a batch that broke, the
/// connection is opened anew; until that works, callers are told that the store is not available.
fn serve(connection: Connection, mut memory: Memory, options: &Options, mut jobs: mpsc::Receiver<Job>) {
    let mut connection = Some(connection);
    while let Some(first) = jobs.blocking_recv() {
        let batch = gather(first, &mut jobs);
        if connection.is_none() {
            connection = reopen(options, &mut memory)
                .inspect_err(|error| tracing::error!(%error, "the store can't be opened again"))
                .ok();
        }
        let Some(open) = &mut connection else {
            let error = StoreError::Unavailable("the store can't be opened again".into());
            batch.into_iter().for_each(|job| job.fail(&error));
            continue;
        };
        if let Err(Broken(error)) = write_batch(open, &mut memory, batch) {
            tracing::error!(%error, "a batch failed; the store is opened again");
            connection = None;
        }
    }
}

#[cfg(test)]
mod tests;
