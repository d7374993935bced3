//! The store on PostgreSQL, for many servers at once. Each server gathers what its callers bring and writes it in
//! batches, on a few connections; the database's row locks keep servers apart.

pub mod address;
mod along;
mod apply;
mod claim;
mod connection;
mod gather;
mod known;
mod read;
mod row;
pub(crate) mod schema;
mod statement;
pub mod tls;
mod twist;
mod watch;
mod writer;
mod writers;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use ostler_kernel::{Bundle, Event, Refusal, Runtime, runtime::AbortOnDrop};
use tokio::sync::{Semaphore, mpsc, oneshot, watch as tokio_watch};
use tokio_postgres::{Config, config::Host, config::SslMode, error::SqlState};

use self::{
    connection::{Connection, timely},
    tls::{Connector, TlsError, Wanted},
    watch::Notices,
    writer::Job,
    writers::Writers,
};
use crate::{
    Answer, Claim, Claimed, Committed, Hint, Query, Store, StoreError,
    body::Prepared,
    planted::{Bug, Planted},
};

#[derive(Clone)]
pub struct Options {
    pub database: Config,
    pub tls: Connector,
    /// The schema that holds the tables; a store of its own.
    pub schema: String,
    /// How many connections write.
    pub writers: usize,
    /// How many connections are kept for reading.
    pub readers: usize,
    pub planted: Planted,
}

impl Options {
    /// From a URL like `postgres://user@host/database?sslmode=verify-full`.
    pub fn at(url: &str) -> Result<Self, OpenError> {
        let (url, wanted) = Wanted::take(url)?;
        let mut database: Config = url.parse().map_err(OpenError::Url)?;
        // What does not leave the machine is not encrypted.
        let is_socket = |host: &Host| matches!(host, Host::Unix(_));
        let all_sockets = !database.get_hosts().is_empty() && database.get_hosts().iter().all(is_socket);
        database.ssl_mode(if all_sockets { SslMode::Disable } else { wanted.mode() });
        notice_the_dead(&mut database);
        let (tls, schema) = (wanted.connector()?, "ostler".into());
        Ok(Self { database, tls, schema, writers: 2, readers: 8, planted: Planted::default() })
    }
}

/// A firewall forgets connections that are idle, and tells nobody: unless the address says otherwise, each is looked after, and
/// given up soon.
fn notice_the_dead(database: &mut Config) {
    let usual = Config::new();
    if database.get_keepalives_idle() == usual.get_keepalives_idle() {
        database.keepalives_idle(Duration::from_secs(15));
    }
    if database.get_keepalives_interval().is_none() {
        database.keepalives_interval(Duration::from_secs(5));
    }
    if database.get_keepalives_retries().is_none() {
        database.keepalives_retries(3);
    }
    if database.get_tcp_user_timeout().is_none() {
        database.tcp_user_timeout(Duration::from_secs(30));
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("that is no address of a database")]
    Url(#[source] tokio_postgres::Error),
    #[error("the address of the database names no host")]
    NoHost,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("can't use the database")]
    Database(#[from] tokio_postgres::Error),
    #[error("can't use the database: {0}")]
    Connection(String),
    #[error("the store was written by a newer version of ostler (schema {found}, this one knows {known})")]
    Newer { found: i64, known: i64 },
}

/// Why something could not be written or read.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("row {0} is kept out")]
    KeptOut(usize),
    /// A constraint said so, and the transaction is lost.
    #[error("row {0} is against a constraint")]
    Constraint(usize),
    /// Two transactions waited for each other: nothing was written, and it may be tried again.
    #[error("another transaction was in the way")]
    InTheWay,
    /// Someone held a row for long: nothing was written.
    #[error("a row is held by another transaction")]
    Held,
    /// The database can't hold a value, such as a text with a NUL in it.
    #[error("the database can't hold it: {}", said(.0))]
    Unfit(tokio_postgres::Error),
    /// It holds what can't be said in a script; by itself it may be refused.
    #[error("a text has a NUL in it")]
    Unsaid,
    /// More events than a transaction has positions for.
    #[error("too many events at once")]
    TooMany,
    #[error("the database refused or went away: {}", said(.0))]
    Database(tokio_postgres::Error),
    /// It did not answer. Whether what it was asked counts, nobody knows.
    #[error("the database does not answer")]
    Silent,
    /// Whether it counts, nobody knows.
    #[error("a commit was not answered: {}", said(.0))]
    Commit(tokio_postgres::Error),
    #[error("a row can't be read or written: {0}")]
    Body(String),
}

/// In the database's own words, where it said something.
fn said(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |said| said.message().to_owned())
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE) => Failed::InTheWay,
            Some(&SqlState::LOCK_NOT_AVAILABLE) => Failed::Held,
            Some(code) if code.code().starts_with("22") => Failed::Unfit(error),
            _ => Failed::Database(error),
        }
    }
}

impl Failed {
    /// Of a message that ends with a commit. Only what the database says of a statement in it tells that nothing counts.
    fn of_commit(self) -> Self {
        match self {
            Failed::Database(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                Failed::Constraint(0)
            }
            Failed::Database(error) => Failed::Commit(error),
            known => known,
        }
    }

    /// The same failure, of the row at this place.
    fn at(self, place: usize) -> Self {
        match self {
            Failed::Database(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                Failed::Constraint(place)
            }
            other => other,
        }
    }
}

/// The most time that a reader of the log is kept waiting for those who began to write before what it knows of.
const SETTLING: Duration = Duration::from_secs(1);

pub struct PostgresStore {
    options: Options,
    runtime: Arc<dyn Runtime>,
    readers: Mutex<Vec<Connection>>,
    /// As many may read at once as there are connections for it.
    turns_to_read: Semaphore,
    jobs: mpsc::Sender<Job>,
    notices: Arc<Notices>,
    _activities: Vec<AbortOnDrop>,
}

impl PostgresStore {
    /// Opens the store, and makes its tables if they aren't there.
    pub async fn open(options: Options, runtime: Arc<dyn Runtime>) -> Result<Self, OpenError> {
        let mut first = Connection::open(&options, &runtime).await?;
        schema::migrate(&mut first.client, &options, &*runtime).await?;
        let position = timely(&*runtime, read::log_end(&first)).await?.position;
        let notices = Arc::new(Notices::new(&options.schema, &*runtime, position));
        let (jobs, receiver) = mpsc::channel(4096);
        let (writers, claims) =
            Writers::new(options.clone(), Arc::clone(&runtime), receiver, Arc::clone(&notices));
        let mut activities = Vec::new();
        for _ in 0..options.writers.max(1) {
            let writers = Arc::clone(&writers);
            let writing = async move { writers.write_batches().await };
            activities.push(runtime.spawn("database writer", Box::pin(writing)).abort_on_drop());
        }
        let claiming = async move { writers.write_claims(claims).await };
        activities.push(runtime.spawn("database claims", Box::pin(claiming)).abort_on_drop());
        if !options.planted.is(Bug::NoticesLost) {
            let listening = watch::listen(options.clone(), Arc::clone(&runtime), Arc::clone(&notices));
            activities.push(runtime.spawn("database listener", Box::pin(listening)).abort_on_drop());
            let telling = watch::tell(options.clone(), Arc::clone(&runtime), Arc::clone(&notices));
            activities.push(runtime.spawn("database notifier", Box::pin(telling)).abort_on_drop());
        }
        let (readers, turns_to_read) = (Mutex::new(vec![first]), Semaphore::new(options.readers.max(1)));
        Ok(Self { options, runtime, readers, turns_to_read, jobs, notices, _activities: activities })
    }

    async fn send<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = oneshot::channel();
        let stopped = || StoreError::Unavailable("the writers have stopped".into());
        self.jobs.send(job(sender)).await.map_err(|_| stopped())?;
        receiver.await.unwrap_or_else(|_| Err(StoreError::Unknown("a writer stopped".into())))
    }

    async fn reader(&self) -> Result<Connection, StoreError> {
        loop {
            let spare = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match spare {
                Some(reader) if reader.is_closed() => {}
                Some(reader) => return Ok(reader),
                None => {
                    let opened = Connection::open(&self.options, &self.runtime).await;
                    return opened.map_err(|error| StoreError::Read(error.to_string()));
                }
            }
        }
    }

    fn give_back(&self, reader: Connection) {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
    }

    /// The log with all in it that this server knows of: others who began earlier may still write.
    async fn log(&self, reader: &Connection, after: u64, limit: usize) -> Result<Vec<Event>, Failed> {
        let known = self.notices.hint().position;
        let log = read::log(reader, after, limit).await?;
        if log.settled > known {
            return Ok(log.events);
        }
        self.settle(reader, known).await?;
        Ok(read::log(reader, after, limit).await?.events)
    }

    async fn settle(&self, reader: &Connection, known: u64) -> Result<(), Failed> {
        let deadline = self.runtime.monotonic() + SETTLING;
        let mut pause = Duration::from_millis(1);
        while read::settled(reader).await? <= known && self.runtime.monotonic() < deadline {
            self.runtime.sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        Ok(())
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn commit(&self, bundles: Vec<Bundle>) -> Result<Vec<Result<Committed, Refusal>>, StoreError> {
        let prepared = Prepared::all(bundles)?;
        self.send(|sender| Job::Commit(prepared, sender)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.send(|sender| Job::Claim(claim, sender)).await
    }

    async fn read(&self, query: Query) -> Result<Answer, StoreError> {
        let closed = |_| StoreError::Read("the store is closed".into());
        let _turn = self.turns_to_read.acquire().await.map_err(closed)?;
        let reader = self.reader().await?;
        if reader.planted.is(Bug::ReaderStandsStill) {
            drop(reader.client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await);
        }
        let answer = async {
            match query {
                Query::Log { after, limit } => self.log(&reader, after, limit).await.map(Answer::Events),
                query => read::read(&reader, &query).await,
            }
        };
        let answer = timely(&*self.runtime, answer).await;
        if let Err(Failed::Silent) = &answer {
            // What became of this one has become of those that are as old, and each would be waited for as long.
            self.readers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        let answer = answer.map_err(|error| StoreError::Read(error.to_string()))?;
        self.give_back(reader);
        Ok(answer)
    }

    fn watch(&self) -> tokio_watch::Receiver<Hint> {
        self.notices.subscribe()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

impl From<Failed> for OpenError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Database(error) => OpenError::Database(error),
            other => OpenError::Connection(other.to_string()),
        }
    }
}

impl Failed {
    /// Whether it may concern one bundle alone, so that its neighbours can be written without it.
    fn is_of_one(&self) -> bool {
        match self {
            Failed::KeptOut(_)
            | Failed::Constraint(_)
            | Failed::Held
            | Failed::Unfit(_)
            | Failed::Unsaid
            | Failed::TooMany
            // A row that a newer server wrote, perhaps.
            | Failed::Body(_) => true,
            Failed::InTheWay | Failed::Database(_) | Failed::Silent | Failed::Commit(_) => false,
        }
    }

    fn for_caller(&self) -> StoreError {
        match self {
            Failed::Commit(_) | Failed::Silent => StoreError::Unknown(self.to_string()),
            _ => StoreError::Unavailable(self.to_string()),
        }
    }
}
