//! What comes in from files and from stdin: text, and not without end.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use ostler_spec::MAX_BYTES;

use crate::error::CommandError;

pub fn read_file(path: &Path) -> Result<String, CommandError> {
    read(&path.display().to_string(), fs::File::open(path))
}

pub fn read_stdin() -> Result<String, CommandError> {
    read("stdin", Ok(io::stdin().lock()))
}

fn read(name: &str, source: io::Result<impl Read>) -> Result<String, CommandError> {
    let cannot = |why: String| CommandError::error(format!("can't read {name}: {why}"));
    let mut bytes = Vec::new();
    // One byte more than is allowed is enough to tell.
    source
        .and_then(|source| source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| cannot(error.to_string()))?;
    if bytes.len() > MAX_BYTES {
        return Err(cannot(format!("it is longer than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| cannot(format!("not UTF-8: {}", error.utf8_error())))
}
