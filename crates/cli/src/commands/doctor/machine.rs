//! What can be seen without a server: the data folder, the disk, the limits of this machine, the profiles.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use rustix::{
    fs::statvfs,
    process::{Resource, getrlimit},
};

use super::Check;
use crate::{
    app::App,
    error::CommandError,
    profiles::{self, Profiles},
};

/// Less than this, and a busy day fills the disk.
const FREE_WARN: u64 = 1 << 30;
const FREE_FAIL: u64 = 64 << 20;

/// A server holds a file for each connection.
const OPEN_FILES: u64 = 1024;

pub fn checks(app: &App) -> Vec<Check> {
    let data = app.written.resolve().ok().and_then(|resolved| resolved.data);
    let data = data.unwrap_or_else(|| app.written.data_folder());
    let mut checks = Vec::new();
    if data.is_dir() {
        checks.push(rights(&data));
        checks.push(disk(&data));
    } else {
        checks.push(Check::ok("data folder", format!("none here; `ostler up` makes {}", data.display())));
    }
    checks.push(open_files());
    checks.extend(profile_file());
    checks
}

/// The folder holds what people told their agents, and the token.
fn rights(data: &Path) -> Check {
    let mode = |path: &Path| fs::metadata(path).map(|metadata| metadata.permissions().mode() & 0o777);
    let open: Vec<String> = ["", "token", "worker-token", "store.db"]
        .iter()
        .map(|name| if name.is_empty() { data.to_owned() } else { data.join(name) })
        .filter(|path| mode(path).is_ok_and(|mode| mode & 0o077 != 0))
        .map(|path| path.display().to_string())
        .collect();
    if !open.is_empty() {
        let found = format!("others on this machine may read {}", open.join(", "));
        return Check::warn("data folder", found, format!("chmod -R go= {}", data.display()));
    }
    match fs::read_dir(data) {
        Ok(_) => Check::ok("data folder", format!("{}, for its owner only", data.display())),
        Err(error) => Check::fail(
            "data folder",
            format!("{} can't be read: {error}", data.display()),
            "run this as the user that the server runs as",
        ),
    }
}

fn disk(data: &Path) -> Check {
    let free = match statvfs(data) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => {
            return Check::warn("disk", format!("can't be looked at: {error}"), "look at it with `df`");
        }
    };
    let found = format!("{} free where {} is", size(free), data.display());
    let remedy = "make room; a server that can't write accepts nothing";
    match free {
        0..FREE_FAIL => Check::fail("disk", found, remedy),
        FREE_FAIL..FREE_WARN => Check::warn("disk", found, remedy),
        _ => Check::ok("disk", found),
    }
}

fn open_files() -> Check {
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < OPEN_FILES => Check::warn(
            "open files",
            format!("at most {most} may be open here"),
            "raise it for the server: `ulimit -n`, or LimitNOFILE= of its unit",
        ),
        Some(most) => Check::ok("open files", format!("up to {most}")),
        None => Check::ok("open files", "no limit"),
    }
}

/// It may hold tokens.
fn profile_file() -> Option<Check> {
    let path = profiles::file(&|name| std::env::var(name).ok())?;
    let mode = fs::metadata(&path).ok()?.permissions().mode();
    if let Err(CommandError::Said(unread)) = Profiles::read(&path) {
        return Some(Check::fail("profiles", unread.details.join("; "), unread.remedy.unwrap_or_default()));
    }
    if mode & 0o077 != 0 {
        let found = format!("others on this machine may read {}", path.display());
        return Some(Check::warn("profiles", found, format!("chmod go= {}", path.display())));
    }
    Some(Check::ok("profiles", path.display().to_string()))
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}
