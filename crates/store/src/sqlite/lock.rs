//! Keeps other processes out, with a lock on a file of its own: SQLite's exclusive mode would shut out our
//! own readers too. The system releases it when the process dies, however it dies.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use super::open::OpenError;

#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    pub fn take(store: &Path) -> Result<Self, OpenError> {
        let mut path = store.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let failed = |error| OpenError::Io { path: path.clone(), error };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(failed)?;
            return Err(OpenError::InUse { path: store.to_owned(), holder: holder.trim().to_owned() });
        }
        file.set_len(0).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}
