//! A disk that remembers what was done to it, in order, and fails when it is told to. It stands for a folder;
//! [`super::vfs`] brings it every operation on the files of stores that are opened there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, FileTimes},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR_DELETE, SQLITE_IOERR_FSYNC, SQLITE_IOERR_WRITE, SQLITE_OK};

use super::vfs;

/// A file, whatever its name was and is: one that was deleted and made again has another number.
pub type FileNumber = u32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Create {
        name: String,
        file: FileNumber,
    },
    Delete {
        name: String,
    },
    SyncFolder,
    Write {
        file: FileNumber,
        offset: u64,
        bytes: Vec<u8>,
    },
    Truncate {
        file: FileNumber,
        size: u64,
    },
    Sync {
        file: FileNumber,
    },
    /// What was to be synced may have been given up by the system, and yet be read back from memory.
    FailedSync {
        file: FileNumber,
    },
}

/// What goes wrong from now on, until [`Disk::heal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// So many bytes still fit; a write that meets the end is cut short.
    Full { bytes: u64 },
    /// So many syncs succeed, then so many fail.
    Sync { after: u64, times: u64 },
    /// So many writes succeed, then so many fail.
    Write { after: u64, times: u64 },
    /// So many operations are carried out, and then the process is dead: nothing it does has any effect.
    Killed { after: u64 },
}

pub struct Disk {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ops: Vec<Op>,
    names: BTreeMap<String, FileNumber>,
    next_file: FileNumber,
    /// Logs that were closed, and marked so that a write around the VFS shows.
    marked: BTreeSet<FileNumber>,
    fault: Option<Fault>,
    struck: u64,
}

/// The disks by their folders, for the VFS to find.
static DISKS: Mutex<BTreeMap<PathBuf, Weak<Disk>>> = Mutex::new(BTreeMap::new());

impl Disk {
    /// Stands for the folder, which must be empty, as long as it is held or a file in it is open.
    pub fn at(folder: &Path) -> anyhow::Result<Arc<Self>> {
        anyhow::ensure!(vfs::register(), "SQLite has no VFS to wrap");
        // SQLite resolves links before it opens.
        let folder = folder.canonicalize()?;
        let disk = Arc::new(Self { folder: folder.clone(), state: Mutex::default() });
        guard(&DISKS).insert(folder, Arc::downgrade(&disk));
        Ok(disk)
    }

    /// How many operations there were so far.
    pub fn n_ops(&self) -> usize {
        self.state().ops.len()
    }

    /// Takes all that was recorded.
    pub fn take_ops(&self) -> Vec<Op> {
        std::mem::take(&mut self.state().ops)
    }

    pub fn breaks(&self, fault: Fault) {
        self.state().fault = Some(fault);
    }

    /// Nothing goes wrong any more. Tells how many operations failed since the disk broke.
    pub fn heal(&self) -> u64 {
        let mut state = self.state();
        state.fault = None;
        std::mem::take(&mut state.struck)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        guard(&self.state)
    }

    // What the VFS tells. An error is the code for SQLite.

    /// A file is opened: the disk of its folder, if there is one, and the file's number on it.
    pub fn opens(path: &Path, fresh: bool) -> Option<(Arc<Self>, FileNumber)> {
        let (disk, name) = find(path)?;
        let mut state = disk.state();
        let number = match state.names.get(&name).copied() {
            Some(number) if !fresh => {
                state.notice_rewrite(number, path);
                number
            }
            _ => {
                state.next_file += 1;
                let file = state.next_file;
                state.names.insert(name.clone(), file);
                state.ops.push(Op::Create { name, file });
                file
            }
        };
        drop(state);
        Some((disk, number))
    }

    pub fn closes(&self, file: FileNumber) {
        let mut state = self.state();
        let name = state.names.iter().find(|(_, number)| **number == file).map(|(name, _)| name.clone());
        // Only of logs: opening a database here would end the locks that SQLite holds on it.
        if let Some(name) = name.filter(|name| name.ends_with("-wal"))
            && mark(&self.folder.join(name)).is_ok()
        {
            state.marked.insert(file);
        }
    }

    pub fn deletes(path: &Path, sync_folder: bool) -> Result<(), i32> {
        let Some((disk, name)) = find(path) else { return Ok(()) };
        let mut state = disk.state();
        if state.names.contains_key(&name) {
            state.alive(SQLITE_IOERR_DELETE)?;
            state.names.remove(&name);
            state.ops.push(Op::Delete { name });
        }
        if sync_folder {
            state.ops.push(Op::SyncFolder);
        }
        Ok(())
    }

    /// How many of the bytes are written, and what to answer.
    pub fn writes(&self, file: FileNumber, offset: u64, bytes: &[u8]) -> (usize, i32) {
        let mut state = self.state();
        let (written, code) = state.may_write(bytes.len());
        if written > 0 {
            state.marked.remove(&file);
            state.ops.push(Op::Write { file, offset, bytes: bytes[..written].to_vec() });
        }
        (written, code)
    }

    pub fn truncates(&self, file: FileNumber, size: u64) -> Result<(), i32> {
        let mut state = self.state();
        state.alive(SQLITE_IOERR_WRITE)?;
        state.ops.push(Op::Truncate { file, size });
        Ok(())
    }

    pub fn syncs(&self, file: FileNumber, folder_too: bool) -> Result<(), i32> {
        let mut state = self.state();
        state.alive(SQLITE_IOERR_FSYNC)?;
        if let Some(Fault::Sync { after, times }) = &mut state.fault
            && strikes(after, times)
        {
            state.struck += 1;
            state.ops.push(Op::FailedSync { file });
            return Err(SQLITE_IOERR_FSYNC);
        }
        state.ops.push(Op::Sync { file });
        if folder_too {
            state.ops.push(Op::SyncFolder);
        }
        Ok(())
    }
}

impl State {
    /// The store writes a log anew, and syncs it, before it lets SQLite open it; not through the VFS. That it
    /// syncs is taken on trust.
    fn notice_rewrite(&mut self, file: FileNumber, path: &Path) {
        if self.marked.remove(&file)
            && !is_marked(path)
            && let Ok(bytes) = std::fs::read(path)
        {
            self.ops.extend([Op::Write { file, offset: 0, bytes }, Op::Sync { file }]);
        }
    }

    fn may_write(&mut self, length: usize) -> (usize, i32) {
        if let Err(code) = self.alive(SQLITE_IOERR_WRITE) {
            return (0, code);
        }
        match &mut self.fault {
            Some(Fault::Full { bytes }) => {
                let fits = length.min(usize::try_from(*bytes).unwrap_or(usize::MAX));
                *bytes -= fits as u64;
                if fits < length {
                    self.struck += 1;
                    return (fits, SQLITE_FULL);
                }
            }
            Some(Fault::Write { after, times }) => {
                if strikes(after, times) {
                    self.struck += 1;
                    return (0, SQLITE_IOERR_WRITE);
                }
            }
            Some(Fault::Sync { .. } | Fault::Killed { .. }) | None => {}
        }
        (length, SQLITE_OK)
    }

    /// Counts an operation; fails with the code when the process is dead.
    fn alive(&mut self, code: i32) -> Result<(), i32> {
        if let Some(Fault::Killed { after }) = &mut self.fault {
            if *after == 0 {
                self.struck += 1;
                return Err(code);
            }
            *after -= 1;
        }
        Ok(())
    }
}

/// A file written to in 1970 was not written to since.
#[allow(clippy::disallowed_types, reason = "a mark on a file, not a time")]
fn mark(path: &Path) -> std::io::Result<()> {
    let times = FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
    File::options().write(true).open(path)?.set_times(times)
}

fn is_marked(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.mtime() == 0)
}

/// Counts an operation; true if it is one of those that fail.
fn strikes(after: &mut u64, times: &mut u64) -> bool {
    let (early, over) = (*after > 0, *times == 0);
    if early {
        *after -= 1;
    } else if !over {
        *times -= 1;
    }
    !early && !over
}

fn find(path: &Path) -> Option<(Arc<Disk>, String)> {
    let disk = guard(&DISKS).get(path.parent()?)?.upgrade()?;
    let name = path.file_name()?.to_str()?.to_owned();
    Some((disk, name))
}

impl Drop for Disk {
    fn drop(&mut self) {
        guard(&DISKS).remove(&self.folder);
    }
}

/// What these guard is never left half-done.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
