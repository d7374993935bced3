//! A consistent copy while the store is in use. `VACUUM INTO` from a reader sees one moment and is not sent
//! back to the start by other writers, as the online backup would be.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use super::open::private_file;

/// Copies to a file beside the target, syncs it, and renames: a copy that is there is whole.
pub fn backup(reader: &Connection, target: &Path) -> rusqlite::Result<PathBuf> {
    let mut part = target.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let failed = |error: std::io::Error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
    if part.exists() {
        std::fs::remove_file(&part).map_err(failed)?;
    }
    private_file(&part).map_err(failed)?;
    // It writes to no table of ours, but a reader that may only ask is not allowed even that.
    reader.pragma_update(None, "query_only", false)?;
    reader.execute("VACUUM INTO ?1", [part.to_string_lossy()])?;
    reader.pragma_update(None, "query_only", true)?;
    File::open(&part).and_then(|file| file.sync_all()).map_err(failed)?;
    std::fs::rename(&part, target).map_err(failed)?;
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(target.to_owned())
}
