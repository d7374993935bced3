//! Opens connections: the one place that does, so that every one of them has the same settings.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::schema::{MigrateError, migrate};
use crate::planted::{Bug, Planted};

#[derive(Debug, Clone)]
pub struct Options {
    pub path: PathBuf,
    pub synchronous: Synchronous,
    /// Another VFS than the system's: the testing ground's failing disk.
    pub vfs: Option<String>,
    pub inline: bool,
    /// How long the log may grow before it is copied into the database.
    pub checkpoint_pages: u32,
    /// Whether the log gets that much room at once. Worth it for a store that is open for long.
    pub reserve_log: bool,
    pub planted: Planted,
}

/// Sixteen megabytes: copied seldom enough to cost little, and read through quickly after a crash.
const CHECKPOINT_PAGES: u32 = 4000;

/// A page in the log, with its header.
const FRAME: u64 = 4096 + 24;

/// What the last batch before a copy, or a reader that hinders it, may take beyond that.
const LOG_SLACK: u64 = 1 << 20;

/// When a commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronous {
    /// Once it is synced. The only safe one.
    Full,
    /// Once it is written. Loses acknowledged work in a power cut; here so that a test can prove that it
    /// would notice.
    Normal,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{path:?} is in use by another ostler (process {holder}); one process opens a store")]
    InUse { path: PathBuf, holder: String },
    #[error("can't use {path:?}")]
    Io {
        path: PathBuf,
        #[source]
        error: std::io::Error,
    },
    #[error("can't open the store")]
    Sqlite(#[from] rusqlite::Error),
    #[error("can't bring the store up to date")]
    Migrate(#[from] MigrateError),
}

impl Options {
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            synchronous: Synchronous::Full,
            vfs: None,
            inline: false,
            checkpoint_pages: CHECKPOINT_PAGES,
            reserve_log: true,
            planted: Planted::default(),
        }
    }
}

pub fn writer(options: &Options) -> Result<Connection, OpenError> {
    if options.vfs.is_none() {
        let path = &options.path;
        private_file(path).map_err(|error| OpenError::Io { path: path.clone(), error })?;
    }
    settle_log(&options.path)?;
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = connect(options, flags)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", options.checkpoint_pages)?;
    migrate(&mut connection)?;
    if options.planted.is(Bug::TwoLiveRuns) {
        connection.execute_batch("DROP INDEX IF EXISTS runs_live")?;
    }
    if options.reserve_log {
        reserve_log(options)?;
    }
    Ok(connection)
}

/// Opens a file, makes it if it isn't there, for its owner only: a store holds what people told their agents.
/// SQLite gives the files beside a database the permissions of the database.
pub fn private_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Brings to disk what a log holds before anyone hears of it. A process that died, or a sync that failed, leaves
/// commits in it that can be read back from the system's memory and yet may be nowhere else; behind a failed
/// sync even the next one need not write them, unless they are written anew. SQLite would take them for
/// committed, and put what comes later behind a gap.
///
/// No connection writes meanwhile, the bytes are the same, and SQLite locks other files than this one.
fn settle_log(store: &Path) -> Result<(), OpenError> {
    let path = log_beside(store);
    let rewrite = || {
        let mut log = OpenOptions::new().read(true).write(true).open(&path)?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        log.rewind()?;
        log.write_all(&bytes)?;
        log.sync_all()
    };
    match rewrite() {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(OpenError::Io { path, error }),
        _ => Ok(()),
    }
}

/// Gives the log the room it will take, so that a commit overwrites what is there: a sync that also has to bring
/// a new size of the file to disk takes twice as long. SQLite ends the log where a frame's checksum is wrong.
///
/// Of a disk without that much room the rest is left to be asked for when it is needed.
fn reserve_log(options: &Options) -> Result<(), OpenError> {
    let path = log_beside(&options.path);
    let room = u64::from(options.checkpoint_pages) * FRAME + LOG_SLACK;
    let fill = || {
        let mut log = OpenOptions::new().append(true).open(&path)?;
        let lacking = room.saturating_sub(log.metadata()?.len());
        std::io::copy(&mut std::io::repeat(0).take(lacking), &mut log)?;
        log.sync_all()
    };
    match fill() {
        Err(error) if !matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            Err(OpenError::Io { path, error })
        }
        _ => Ok(()),
    }
}

fn log_beside(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push("-wal");
    PathBuf::from(path)
}

pub fn reader(options: &Options) -> rusqlite::Result<Connection> {
    let connection = connect(options, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(options: &Options, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = match &options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(&options.path, flags, vfs.as_str())?,
        None => Connection::open_with_flags(&options.path, flags)?,
    };
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_prepared_statement_cache_capacity(128);
    // Plans shall not depend on what is bound: with partial indexes every statement would be compiled again at
    // each use.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -16_000)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}
