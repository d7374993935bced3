//! What a worker is called. The same after a restart, so that its former self's runs are taken up at once; and never
//! the same as another one's, for the two would take each other's runs.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read as _, Write as _},
    path::Path,
};

use ostler_worker::Runtime;
use rustix::fs::{FlockOperation, flock};

use super::host_name;
use crate::error::CommandError;

/// In the data folder; locked by the worker that has the name.
const FILE: &str = "worker-name";

pub struct Name {
    text: String,
    /// Holds the lock.
    _file: Option<File>,
}

impl Name {
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The name that was given, or else the data folder's, which is made up at the first start.
pub fn of_worker(given: Option<&str>, data: &Path, runtime: &dyn Runtime) -> Result<Name, CommandError> {
    match given {
        Some(name) => Ok(Name { text: name.to_owned(), _file: None }),
        None => of_folder(data, runtime),
    }
}

fn of_folder(data: &Path, runtime: &dyn Runtime) -> Result<Name, CommandError> {
    let path = data.join(FILE);
    let failed = |error: std::io::Error| {
        CommandError::error(format!("can't keep the worker's name in {}: {error}", path.display()))
            .with_remedy("choose another folder with --data, or give a name with --worker-name")
    };
    fs::create_dir_all(data).map_err(failed)?;
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        CommandError::error(format!("another worker runs in {}", data.display()))
            .with_remedy("choose another folder with --data, or give this one a name with --worker-name")
    })?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    if text.trim().is_empty() {
        text = format!("{}-{:06x}", host_name(), runtime.random() & 0xff_ffff);
        file.write_all(text.as_bytes()).map_err(failed)?;
    }
    Ok(Name { text: text.trim().to_owned(), _file: Some(file) })
}
