//! The file of settings.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use ostler_spec::Leaf;

use super::{
    Source,
    table::{self, LABELS},
};
use crate::suggest::nearest;

/// Names the file.
pub const VARIABLE: &str = "OSTLER_CONFIG";

/// Its name in the data folder.
const NAME: &str = "config.yaml";

type Found = BTreeMap<&'static str, (String, Source)>;

/// Which file it is: the one that was named, or else that of the data folder, which need not be there.
pub fn choose(named: Option<&Path>, data: &Path) -> Option<(PathBuf, Source)> {
    if let Some(path) = named {
        return Some((path.to_owned(), Source::Flag("config")));
    }
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return Some((path.into(), Source::Variable(VARIABLE)));
    }
    let usual = data.join(NAME);
    // One that can't be looked for may well be there: reading it tells.
    let is_missing = matches!(usual.try_exists(), Ok(false));
    (!is_missing).then_some((usual, Source::Default))
}

/// What the file says, and what is wrong with it.
pub fn read(path: &Path) -> (Found, Vec<String>) {
    let shown = path.display().to_string();
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return (Found::new(), vec![format!("can't read {shown}: {error}")]),
    };
    match ostler_spec::leaves(&shown, &text) {
        Ok(leaves) => sort(leaves),
        Err(problems) => (Found::new(), problems.iter().map(ToString::to_string).collect()),
    }
}

fn sort(leaves: Vec<Leaf>) -> (Found, Vec<String>) {
    let (mut found, mut problems) = (Found::new(), Vec::new());
    for Leaf { path, text, location } in leaves {
        let source = location.map_or(Source::Default, Source::File);
        let label = path.strip_prefix(LABELS.key).and_then(|rest| rest.strip_prefix('.'));
        if let Some(label) = label {
            // Labels may stand as a map; as a list they read `a=b,c=d`.
            let (all, _) = found.entry(LABELS.key).or_insert_with(|| (String::new(), source));
            let comma = if all.is_empty() { "" } else { "," };
            all.push_str(&format!("{comma}{label}={text}"));
            continue;
        }
        match table::all().find(|setting| setting.key == path) {
            Some(setting) => drop(found.insert(setting.key, (text, source))),
            None => problems.push(unknown(&path, &source)),
        }
    }
    (found, problems)
}

fn unknown(path: &str, source: &Source) -> String {
    match nearest(path, table::all().map(|setting| setting.key)) {
        Some(known) => format!("{source}: {path} is no setting, did you mean {known:?}?"),
        None => format!("{source}: {path} is no setting"),
    }
}
