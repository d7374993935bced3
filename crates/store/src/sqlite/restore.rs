//! Puts a backup in the place of a store. Whatever interrupts it, the store is the old one or the new one,
//! whole; the old one is kept beside it.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use super::{
    lock::FileLock,
    open::{self, OpenError, Options},
};

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("{path:?} is in use by another ostler (process {holder}); stop it first")]
    InUse { path: PathBuf, holder: String },
    #[error(
        "there is a store at {path:?} already; it is only replaced if that is forced, and then kept beside"
    )]
    Exists { path: PathBuf },
    #[error("{path:?} is not a backup of an ostler store: {reason}")]
    NotAStore { path: PathBuf, reason: String },
    #[error("the backup {path:?} is damaged: {found}")]
    Damaged { path: PathBuf, found: String },
    #[error("the backup can't be brought up to date")]
    Outdated(#[source] OpenError),
    #[error("can't use {path:?}")]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
}

/// What SQLite may keep beside a database. Beside the wrong one, it would be written into it.
const SIDE_FILES: [&str; 3] = ["-wal", "-journal", "-shm"];

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Checks a copy of the backup, moves a former store aside if `force` says so, and swaps with one rename.
pub fn restore(backup: &Path, store: &Path, force: bool) -> Result<(), RestoreError> {
    let _lock = FileLock::take(store).map_err(lock_failed)?;
    if store.exists() && !force {
        return Err(RestoreError::Exists { path: store.to_owned() });
    }
    let copy = beside(store, ".restoring");
    let checked = copy_files(backup, &copy).and_then(|()| check(backup, &copy));
    let swapped = checked.and_then(|()| {
        if store.exists() {
            keep(store)?;
        }
        // Of a database that is gone: they must not be there when the new one takes its place.
        remove_side_files(store)?;
        fs::rename(&copy, store).map_err(io_at(store))?;
        sync_folder(store)
    });
    if swapped.is_err() {
        // The error that matters is the first one; the next restore writes over what stays.
        let _ = fs::remove_file(&copy);
        let _ = remove_side_files(&copy);
    }
    swapped
}

/// Copies the backup, with the log that a store which was not closed well has beside it.
fn copy_files(backup: &Path, copy: &Path) -> Result<(), RestoreError> {
    remove_side_files(copy)?;
    check_magic(backup)?;
    copy_file(backup, copy)?;
    let log = beside(backup, "-wal");
    if log.exists() { copy_file(&log, &beside(copy, "-wal")) } else { Ok(()) }
}

/// Without the permissions of the source: a backup may be read-only, a store may not.
fn copy_file(from: &Path, to: &Path) -> Result<(), RestoreError> {
    let mut source = File::open(from).map_err(io_at(from))?;
    let mut target = open::private_file(to).map_err(io_at(to))?;
    target.set_len(0).map_err(io_at(to))?;
    io::copy(&mut source, &mut target).map_err(io_at(to))?;
    target.sync_all().map_err(io_at(to))
}

/// Before a large file that is something else is copied for nothing.
fn check_magic(backup: &Path) -> Result<(), RestoreError> {
    let mut start = [0; 16];
    let mut file = File::open(backup).map_err(io_at(backup))?;
    match io::Read::read_exact(&mut file, &mut start) {
        Ok(()) if start == *MAGIC => Ok(()),
        Ok(()) => Err(not_a_store(backup, "it is not an SQLite database")),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(not_a_store(backup, "it is too short to be a database"))
        }
        Err(error) => Err(io_at(backup)(error)),
    }
}

/// Looks at the copy as a store, brings it to the present schema and leaves it as a single synced file.
fn check(backup: &Path, copy: &Path) -> Result<(), RestoreError> {
    let damaged =
        |error: rusqlite::Error| RestoreError::Damaged { path: backup.to_owned(), found: error.to_string() };
    let options = Options::at(copy);
    let reader = open::reader(&options).map_err(damaged)?;
    if !is_ours(&reader).map_err(damaged)? {
        return Err(not_a_store(backup, "it is a database of something else"));
    }
    let found: String =
        reader.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(damaged)?;
    if found != "ok" {
        return Err(RestoreError::Damaged { path: backup.to_owned(), found });
    }
    drop(reader);
    drop(open::writer(&options).map_err(RestoreError::Outdated)?);
    into_one_file(copy).map_err(damaged)?;
    File::open(copy).and_then(|file| file.sync_all()).map_err(io_at(copy))
}

fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' \
               AND name IN ('tasks', 'runs', 'sessions', 'steps', 'events', 'resources')";
    let tables: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(version > 0 && tables == 6)
}

/// Writes what is in the log into the database, and goes on without a log.
fn into_one_file(path: &Path) -> rusqlite::Result<()> {
    let connection = open::reader(&Options::at(path))?;
    connection.pragma_update(None, "query_only", false)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))?;
    let is_one = mode == "delete";
    connection.close().map_err(|(_, error)| error)?;
    if is_one { Ok(()) } else { Err(rusqlite::Error::InvalidQuery) }
}

/// Gives the store a second name, so that it is there until the new one is. One that can't even be opened is
/// kept with the files beside it, as it was found: trying to open it may have removed them.
fn keep(store: &Path) -> Result<(), RestoreError> {
    let kept = unused_name(store);
    remove_side_files(&kept)?;
    for suffix in SIDE_FILES {
        let side = beside(store, suffix);
        if side.exists() {
            copy_file(&side, &beside(&kept, suffix))?;
        }
    }
    let is_whole = into_one_file(store).is_ok();
    link(store, &kept)?;
    if is_whole {
        remove_side_files(&kept)?;
    }
    sync_folder(store)
}

fn unused_name(store: &Path) -> PathBuf {
    let name = |number: u32| beside(store, &format!(".replaced-{number}"));
    (1..u32::MAX).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}

/// Not every file system has links; then it is a copy.
fn link(from: &Path, to: &Path) -> Result<(), RestoreError> {
    fs::hard_link(from, to).or_else(|_| copy_file(from, to))
}

fn remove_side_files(database: &Path) -> Result<(), RestoreError> {
    for suffix in SIDE_FILES {
        let side = beside(database, suffix);
        match fs::remove_file(&side) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_at(&side)(error)),
            _ => {}
        }
    }
    Ok(())
}

fn sync_folder(file: &Path) -> Result<(), RestoreError> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io_at(folder))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn io_at(path: &Path) -> impl Fn(io::Error) -> RestoreError {
    move |error| RestoreError::Io { path: path.to_owned(), error }
}

fn not_a_store(path: &Path, reason: &str) -> RestoreError {
    RestoreError::NotAStore { path: path.to_owned(), reason: reason.to_owned() }
}

fn lock_failed(error: OpenError) -> RestoreError {
    match error {
        OpenError::InUse { path, holder } => RestoreError::InUse { path, holder },
        OpenError::Io { path, error } => RestoreError::Io { path, error },
        other @ (OpenError::Sqlite(_) | OpenError::Migrate(_)) => RestoreError::Outdated(other),
    }
}

#[cfg(test)]
mod tests;
