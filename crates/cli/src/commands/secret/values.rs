//! The values that a person gives: by the terminal, stdin, files, or as words of the command, which is warned of.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ostler_spec::KEPT;
use ostler_worker::SHORTEST_SECRET;
use zeroize::Zeroizing;

use super::{SetArguments, pair};
use crate::{app::App, error::CommandError, exit::Exit, password};

/// In base64, by key.
pub type Values = BTreeMap<String, Zeroizing<String>>;

/// Of one value.
const LONGEST: u64 = 1 << 20;

pub fn gather(arguments: &SetArguments, app: &App) -> Result<Values, CommandError> {
    let mut values = Values::new();
    for word in &arguments.values {
        let (key, value) = word.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            // What was typed may be the secret itself: it is not shown again.
            CommandError::new(Exit::Usage, "expected KEY=VALUE behind the name")
                .with_remedy("without it the value is asked for; --from-stdin and --from-file read it")
        })?;
        add(&mut values, key, value.as_bytes(), app)?;
    }
    if !arguments.values.is_empty() {
        app.output.note(
            "warning: others on this machine can see what stands in a command, and your shell remembers it; without \
             it the value is asked for, --from-stdin and --from-file read it",
        );
    }
    for file in &arguments.from_file {
        let (key, path) = pair(file)?;
        add(&mut values, &key, &read(&path.display().to_string(), fs::File::open(Path::new(&path)))?, app)?;
    }
    if arguments.from_stdin {
        add(&mut values, &arguments.key, &read("stdin", Ok(io::stdin().lock()))?, app)?;
    } else if values.is_empty() {
        let question = format!("Value of {}:{}: ", arguments.name, arguments.key);
        let typed = Zeroizing::new(password::ask(&question, "--from-stdin or --from-file KEY=PATH read it")?);
        add(&mut values, &arguments.key, typed.as_bytes(), app)?;
    }
    Ok(values)
}

fn add(values: &mut Values, key: &str, value: &[u8], app: &App) -> Result<(), CommandError> {
    let trimmed = value.trim_ascii();
    let usage = |message: String| Err(CommandError::new(Exit::Usage, message));
    let what = if key == "value" { "the value".to_owned() } else { format!("the value of {key}") };
    if trimmed.is_empty() {
        return usage(format!("{what} is empty"));
    }
    if trimmed == KEPT.as_bytes() {
        return usage(format!("{KEPT} is what is shown in the place of a value, and can't be one"));
    }
    if trimmed.len() < SHORTEST_SECRET {
        app.output.note(format!(
            "warning: {what} is shorter than {SHORTEST_SECRET} characters: it can't be hidden where a model \
             or a tool repeats it"
        ));
    }
    if values.insert(key.to_owned(), Zeroizing::new(STANDARD.encode(value))).is_some() {
        return usage(format!("{key} is given twice"));
    }
    Ok(())
}

fn read(name: &str, source: io::Result<impl Read>) -> Result<Zeroizing<Vec<u8>>, CommandError> {
    let cannot = |why: String| CommandError::error(format!("can't read {name}: {why}"));
    let mut bytes = Zeroizing::new(Vec::new());
    let read = source.and_then(|source| source.take(LONGEST + 1).read_to_end(&mut bytes));
    match read {
        Ok(length) if length as u64 > LONGEST => Err(cannot(format!("it is longer than {LONGEST} bytes"))),
        Ok(_) => Ok(bytes),
        Err(error) => Err(cannot(error.to_string())),
    }
}
