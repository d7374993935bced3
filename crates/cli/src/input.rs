//! What comes in from files and from stdin: text, and not without end.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use ostler_spec::MAX_BYTES;

use crate::error::CommandError;

pub fn read_file(path: &Path) -> Result<String, CommandError> {
    text_of(path).map_err(|why| CommandError::error(format!("can't read {}: {why}", path.display())))
}

/// The same for whoever says which file it is.
pub fn text_of(path: &Path) -> Result<String, String> {
    read(fs::File::open(path))
}

pub fn read_stdin() -> Result<String, CommandError> {
    read(Ok(io::stdin().lock())).map_err(|why| CommandError::error(format!("can't read stdin: {why}")))
}

fn read(source: io::Result<impl Read>) -> Result<String, String> {
    let mut bytes = Vec::new();
    // One byte more than is allowed is enough to tell.
    source
        .and_then(|source| source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let lines: Vec<&[u8]> = valid.split(|byte| *byte == b'\n').collect();
        let column = String::from_utf8_lossy(lines.last().copied().unwrap_or_default()).chars().count() + 1;
        format!("not UTF-8 on line {}, column {column}", lines.len())
    })
}
