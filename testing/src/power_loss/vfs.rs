//! SQLite's way to a disk, with a [`Disk`] listening: one VFS for the whole process, around the system's own.
//! A file in the folder of a disk tells it of every write, truncate, sync, create and delete, and the disk says
//! what may happen. Reads, locks and shared memory go straight through.
//!
//! Syncs are told and not made: whether bytes reach the real disk doesn't matter here.

#![allow(unsafe_code, reason = "a VFS is a table of C functions; this is the one module that is one")]

use std::{
    ffi::{CStr, OsStr, c_char, c_int, c_void},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rusqlite::ffi::{
    SQLITE_CANTOPEN, SQLITE_IOERR, SQLITE_OK, SQLITE_OPEN_CREATE, SQLITE_OPEN_MAIN_DB,
    SQLITE_OPEN_MAIN_JOURNAL, SQLITE_OPEN_WAL, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs,
    sqlite3_vfs_find, sqlite3_vfs_register,
};

use super::disk::{Disk, FileNumber};

/// The name to open a store with.
pub const NAME: &str = "recorded-disk";

const C_NAME: &CStr = c"recorded-disk";

/// Where the system's own file begins behind ours: a multiple of any alignment it may want.
const INNER: usize = 32;

/// Registers the VFS, once; false if SQLite has no default one to wrap.
pub fn register() -> bool {
    WRAPPED.get_or_init(wrap).is_some()
}

static WRAPPED: OnceLock<Option<Wrapped>> = OnceLock::new();

/// The system's VFS. It lives as long as the process: SQLite never frees its built-in ones.
struct Wrapped(*mut sqlite3_vfs);

// SAFETY: the pointer is only read and handed back to SQLite, whose VFS methods may be called from any thread.
unsafe impl Send for Wrapped {}
// SAFETY: as above; nothing is written through it.
unsafe impl Sync for Wrapped {}

fn wrap() -> Option<Wrapped> {
    // SAFETY: a null name asks for the default VFS; the answer is null or lives as long as the process.
    let system = unsafe { sqlite3_vfs_find(ptr::null()) };
    // SAFETY: just found, and not written to by anyone while SQLite is set up.
    let template = unsafe { system.as_ref() }?;
    // Methods that are not replaced get our table in place of the system's: it equals it in what they look at.
    let ours = Box::new(sqlite3_vfs {
        szOsFile: template.szOsFile + INNER as c_int,
        pNext: ptr::null_mut(),
        zName: C_NAME.as_ptr(),
        xOpen: Some(open),
        xDelete: Some(delete),
        ..*template
    });
    // SAFETY: SQLite keeps the pointer, and a leaked box is never moved or freed.
    let code = unsafe { sqlite3_vfs_register(Box::leak(ours), 0) };
    (code == SQLITE_OK).then_some(Wrapped(system))
}

/// What SQLite allocates for each open file, with the system's own file `INNER` bytes behind its start.
#[repr(C)]
struct RecordedFile {
    base: sqlite3_file,
    /// Owned: made in `open`, freed in `close`.
    handle: *mut Handle,
}

const _: () = assert!(size_of::<RecordedFile>() <= INNER);

struct Handle {
    recorded: Option<(Arc<Disk>, FileNumber)>,
    /// SQLite syncs the folder with the first sync through each handle on a log or a journal that it would have
    /// made if it had not been there: another handle may have made it and never synced.
    sync_folder: AtomicBool,
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    // Version 2 is without memory-mapped reads and writes, which could not be recorded.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Calls a method of the system's file behind ours.
///
/// Sound where SQLite handed us `$file`: it was opened by `open`, so that the system's file stands behind it and
/// has methods; all of version 2 are there in the system's table.
macro_rules! forward {
    ($file:ident.$method:ident($($argument:expr),*), or $missing:expr) => {{
        // SAFETY: see above.
        unsafe {
            let inner = inner($file);
            match (*(*inner).pMethods).$method {
                Some(method) => method(inner $(, $argument)*),
                None => $missing,
            }
        }
    }};
}

unsafe extern "C" fn open(
    _vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives us `szOsFile` bytes at `file`; null methods tell it not to close what didn't open.
    unsafe { (*file).pMethods = ptr::null() };
    let Some(Wrapped(system)) = WRAPPED.get().and_then(Option::as_ref) else { return SQLITE_CANTOPEN };
    // SAFETY: a name is null or a C string that lives through the call.
    let path = unsafe { path(name) };
    let fresh = path.as_deref().is_some_and(|path| !path.exists());
    // SAFETY: our bytes reach `szOsFile` of the system past `INNER`; the name is passed on untouched, since
    // SQLite hides parameters behind its end.
    let code = unsafe {
        match (**system).xOpen {
            Some(open) => open(*system, name, inner(file), flags, out_flags),
            None => SQLITE_CANTOPEN,
        }
    };
    if code != SQLITE_OK {
        return code;
    }
    let durable = flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL) != 0;
    let recorded = path.filter(|_| durable).and_then(|path| Disk::opens(&path, fresh));
    let sync_folder =
        flags & SQLITE_OPEN_CREATE != 0 && flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL) != 0;
    let handle = Box::new(Handle { recorded, sync_folder: AtomicBool::new(sync_folder) });
    // SAFETY: the bytes at `file` are ours, and `RecordedFile` fits in front of the system's file.
    unsafe {
        (*file.cast::<RecordedFile>()).handle = Box::into_raw(handle);
        (*file).pMethods = &raw const METHODS;
    }
    SQLITE_OK
}

unsafe extern "C" fn delete(_vfs: *mut sqlite3_vfs, name: *const c_char, sync_folder: c_int) -> c_int {
    let Some(Wrapped(system)) = WRAPPED.get().and_then(Option::as_ref) else { return SQLITE_IOERR };
    // SAFETY: a name is null or a C string that lives through the call.
    let path = unsafe { path(name) };
    if let Some(path) = path
        && let Err(code) = Disk::deletes(&path, sync_folder != 0)
    {
        return code;
    }
    // SAFETY: the system's own method with its own table, and the arguments as they came.
    unsafe {
        match (**system).xDelete {
            Some(delete) => delete(*system, name, 0),
            None => SQLITE_IOERR,
        }
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let code = forward!(file.xClose(), or SQLITE_IOERR);
    // SAFETY: the handle was made in `open`, and SQLite closes a file once and uses it no more.
    let handle = unsafe { Box::from_raw((*file.cast::<RecordedFile>()).handle) };
    if let Some((disk, number)) = &handle.recorded {
        disk.closes(*number);
    }
    code
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    amount: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite says that `amount` bytes can be read there, and leaves them alone through the call.
    let bytes =
        unsafe { std::slice::from_raw_parts(from.cast::<u8>(), usize::try_from(amount).unwrap_or(0)) };
    // SAFETY: SQLite handed us the file.
    let (written, code) = match &unsafe { handle(file) }.recorded {
        Some((disk, number)) => disk.writes(*number, offset.unsigned_abs(), bytes),
        None => (bytes.len(), SQLITE_OK),
    };
    if written > 0 {
        let passed = forward!(file.xWrite(from, written as c_int, offset), or SQLITE_IOERR);
        if passed != SQLITE_OK {
            return passed;
        }
    }
    code
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    // SAFETY: SQLite handed us the file.
    if let Some((disk, number)) = &unsafe { handle(file) }.recorded
        && let Err(code) = disk.truncates(*number, size.unsigned_abs())
    {
        return code;
    }
    forward!(file.xTruncate(size), or SQLITE_IOERR)
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: SQLite handed us the file.
    let handle = unsafe { handle(file) };
    let Some((disk, number)) = &handle.recorded else { return SQLITE_OK };
    match disk.syncs(*number, handle.sync_folder.load(Ordering::Relaxed)) {
        Ok(()) => {
            handle.sync_folder.store(false, Ordering::Relaxed);
            SQLITE_OK
        }
        Err(code) => code,
    }
}

// What follows only passes on.

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    to: *mut c_void,
    amount: c_int,
    offset: sqlite3_int64,
) -> c_int {
    forward!(file.xRead(to, amount, offset), or SQLITE_IOERR)
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, size: *mut sqlite3_int64) -> c_int {
    forward!(file.xFileSize(size), or SQLITE_IOERR)
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    forward!(file.xLock(level), or SQLITE_IOERR)
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    forward!(file.xUnlock(level), or SQLITE_IOERR)
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite3_file, result: *mut c_int) -> c_int {
    forward!(file.xCheckReservedLock(result), or SQLITE_IOERR)
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, op: c_int, argument: *mut c_void) -> c_int {
    forward!(file.xFileControl(op, argument), or SQLITE_IOERR)
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    forward!(file.xSectorSize(), or 0)
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    forward!(file.xDeviceCharacteristics(), or 0)
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    mapped: *mut *mut c_void,
) -> c_int {
    forward!(file.xShmMap(region, size, extend, mapped), or SQLITE_IOERR)
}

unsafe extern "C" fn shm_lock(file: *mut sqlite3_file, offset: c_int, n: c_int, flags: c_int) -> c_int {
    forward!(file.xShmLock(offset, n, flags), or SQLITE_IOERR)
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    forward!(file.xShmBarrier(), or());
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, delete: c_int) -> c_int {
    forward!(file.xShmUnmap(delete), or SQLITE_IOERR)
}

/// The system's file behind ours. The file must have been allocated for this VFS.
unsafe fn inner(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: SQLite allocated `INNER` bytes and those of the system's file behind them, aligned for any type.
    unsafe { file.byte_add(INNER) }
}

/// The file must have been opened by `open`, and not closed.
unsafe fn handle<'f>(file: *mut sqlite3_file) -> &'f Handle {
    // SAFETY: `open` put a box there, and it is only freed in `close`.
    unsafe { &*(*file.cast::<RecordedFile>()).handle }
}

/// The name must be null or a C string.
unsafe fn path(name: *const c_char) -> Option<PathBuf> {
    // SAFETY: as the caller promised.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
    Some(Path::new(OsStr::from_bytes(name.to_bytes())).to_owned())
}
