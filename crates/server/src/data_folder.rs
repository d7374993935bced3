//! The files of the data folder beside the store: the token, and where the server is.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ostler_control::access::make_secret;
use ostler_kernel::Runtime;
use serde_json::json;

use crate::telemetry;

const SERVER: &str = "server.json";
const TOKEN: &str = "token";
const WORKER: &str = "worker";
const WORKER_TOKEN: &str = "worker-token";
const SECRET_KEY: &str = "secret-key";

/// Copies on their way out; what is left of them after a crash is removed at the next start.
const BACKUP: &str = "backup-";

pub fn store_file(data: &Path) -> PathBuf {
    data.join("store.db")
}

pub fn secret_key_file(data: &Path) -> PathBuf {
    data.join(SECRET_KEY)
}

pub fn backup_file(data: &Path, random: u64) -> PathBuf {
    data.join(format!("{BACKUP}{random:016x}"))
}

/// A copy of a store that is looked at and not kept, with what SQLite puts beside it.
pub struct Copy(PathBuf);

impl Copy {
    pub fn at(data: &Path, random: u64) -> Self {
        Self(backup_file(data, random))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let (Some(folder), Some(name)) = (self.0.parent(), self.0.file_name()) else { return };
        sweep_those_with(folder, &name.to_string_lossy());
    }
}

/// Makes the folder, for its owner only: it holds what people told their agents.
pub fn create(data: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(data)
}

/// Removes copies that a crash left behind. To be called by who holds the store.
pub fn sweep(data: &Path) {
    sweep_those_with(data, BACKUP);
}

fn sweep_those_with(data: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(data) else { return };
    let leftovers = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    for leftover in leftovers {
        if let Err(error) = fs::remove_file(leftover.path()) {
            telemetry::not_removed("a copy of the store", &error);
        }
    }
}

/// The token of this folder.
pub fn token(data: &Path, runtime: &dyn Runtime) -> io::Result<String> {
    made_once(&data.join(TOKEN), || make_secret("ostler_", runtime))
}

/// The token of workers that dial this folder's server.
pub fn worker_token(data: &Path, runtime: &dyn Runtime) -> io::Result<String> {
    made_once(&data.join(WORKER_TOKEN), || make_secret("ostlerw_", runtime))
}

/// A token that someone else has made.
pub fn given_token(path: &Path) -> io::Result<String> {
    check_token(fs::read_to_string(path)?.trim())
}

/// Whether someone else's token is one.
pub fn check_token(token: &str) -> io::Result<String> {
    // Shorter ones can be guessed, and others can't be sent.
    if token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = "expected one token of at least 16 letters, digits and signs";
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(token.to_owned())
}

/// The name of this folder's worker among those on a shared store.
pub fn worker_name(data: &Path, runtime: &dyn Runtime) -> io::Result<String> {
    made_once(&data.join(WORKER), || format!("worker-{:016x}", runtime.random()))
}

/// What the file says. It is made at the first start.
fn made_once(path: &Path, make: impl FnOnce() -> String) -> io::Result<String> {
    match fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        // Empty: a crash, or someone who wants a new one.
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let text = make();
    replace(path, text.as_bytes())?;
    Ok(text)
}

/// Says where the server is, for the command line. To be called when it can be reached.
pub fn announce(data: &Path, url: &str) -> io::Result<()> {
    let document = json!({ "url": url, "pid": std::process::id() });
    replace(&data.join(SERVER), format!("{document}\n").as_bytes())
}

pub fn retract(data: &Path) {
    if let Err(error) = fs::remove_file(data.join(SERVER)) {
        telemetry::not_removed(SERVER, &error);
    }
}

/// Writes a file whole or not at all, readable by its owner only.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    // The name too has to survive a power cut.
    path.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}
