//! What servers and workers are told at their start: each setting by a flag, a variable or a file. The first of these
//! that says something counts, then the default. All mistakes, wherever they were made, are told at once.

mod file;
mod flags;
pub mod network;
pub mod table;

use std::{collections::BTreeMap, env, fmt, path::PathBuf, str::FromStr};

use ostler_spec::Location;

pub use flags::{AllFlags, Flags, ServerFlags, UpFlags, WorkerFlags};
pub use table::{Group, Setting};

use crate::{error::CommandError, exit::Exit};

/// Who said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Flag(&'static str),
    Variable(&'static str),
    File(Location),
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(flag) => write!(f, "--{flag}"),
            Source::Variable(variable) => f.write_str(variable),
            Source::File(location) => write!(f, "{location}"),
            Source::Default => f.write_str("default"),
        }
    }
}

/// What was said of a setting.
#[derive(Debug, Clone)]
pub struct Said {
    pub text: String,
    pub source: Source,
}

/// All settings, each of them checked.
#[derive(Debug)]
pub struct Settings(BTreeMap<&'static str, Said>);

impl Settings {
    /// Gathers what was said. `data` is the data folder, where the file is unless another one is named.
    pub fn gather(flags: &Flags, data: &std::path::Path) -> Result<Self, CommandError> {
        let variable = |name: &str| env::var(name).ok().filter(|text| !text.is_empty());
        let named = flags.config.clone().or_else(|| variable(file::VARIABLE).map(PathBuf::from));
        let (from_file, mut problems) = file::read(named, data);
        let mut settings = BTreeMap::new();
        for setting in table::all() {
            let by_flag = flags.said(setting).map(|text| (text.to_owned(), Source::Flag(setting.flag)));
            let said = by_flag
                .or_else(|| variable(setting.variable).map(|text| (text, Source::Variable(setting.variable))))
                .or_else(|| from_file.get(setting.key).cloned())
                .or_else(|| setting.default.map(|text| (text.to_owned(), Source::Default)));
            let Some((text, source)) = said else { continue };
            let unfit = match source {
                Source::Flag(_) => setting.unfit_for_flag(&text),
                Source::Variable(_) | Source::File(_) | Source::Default => None,
            };
            if let Err(problem) = unfit.map_or_else(|| (setting.check)(&text), Err) {
                problems.push(format!(
                    "{source}: {:?} is no {}: {problem}",
                    setting.shown(&text),
                    setting.key
                ));
            }
            settings.insert(setting.key, Said { text, source });
        }
        if problems.is_empty() {
            return Ok(Self(settings));
        }
        Err(CommandError::new(Exit::Usage, "the settings can't be used")
            .with_details(problems)
            .with_remedy("`ostler config show` lists every setting with its value and where that comes from"))
    }

    /// Every setting there is, with what was said of it.
    pub fn all(&self) -> impl Iterator<Item = (&'static Setting, Option<&Said>)> {
        table::all().map(|setting| (setting, self.0.get(setting.key)))
    }

    pub fn text(&self, setting: &'static Setting) -> Option<&str> {
        self.0.get(setting.key).map(|said| said.text.as_str())
    }

    /// What was checked can be read.
    pub fn get<T: FromStr>(&self, setting: &'static Setting) -> Option<T> {
        self.text(setting)?.parse().ok()
    }

    pub fn is_set(&self, setting: &'static Setting) -> bool {
        self.text(setting) == Some("true")
    }

    /// The parts of a list.
    pub fn list(&self, setting: &'static Setting) -> impl Iterator<Item = &str> {
        table::parts(self.text(setting).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(flags: &[(&'static str, &str)], file: Option<&str>) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        if let Some(text) = file {
            std::fs::write(folder.path().join("config.yaml"), text).unwrap();
        }
        Settings::gather(&Flags::of(flags), folder.path()).map_err(|error| match error {
            CommandError::Said(complaint) => complaint.details.join("\n"),
            CommandError::Quiet(_) => String::new(),
        })
    }

    #[test]
    fn flags_go_before_files_and_files_before_defaults() {
        let file = "lease: 10s\nworker: {slots: 7, labels: {disk: ssd, zone: a}}\n";
        let settings = gather(&[("lease", "5s")], Some(file)).unwrap();
        let said = |setting: &'static Setting| {
            let said = settings.0.get(setting.key).unwrap();
            (said.text.as_str(), said.source.to_string())
        };
        assert_eq!(said(&table::LEASE), ("5s", "--lease".to_owned()));
        assert_eq!(said(&table::LISTEN), ("127.0.0.1:7070", "default".to_owned()));
        let (slots, place) = said(&table::SLOTS);
        assert!(slots == "7" && place.ends_with("config.yaml:2:10"), "{slots} {place}");
        assert_eq!(said(&table::LABELS).0, "disk=ssd,zone=a");
    }

    #[test]
    fn all_mistakes_are_told_at_once_each_with_its_place() {
        let file = "lisen: 1\nlease: soon\nworker:\n  slots: 0\n";
        let told = gather(&[("listen", "here"), ("store", "mysql://x")], Some(file)).unwrap_err();
        for part in
            ["config.yaml:1:1: lisen", "listen", "config.yaml:2:1", "config.yaml:4:3", "--listen", "--store"]
        {
            assert!(told.contains(part), "{part:?} is not in:\n{told}");
        }
        assert_eq!(told.lines().count(), 5, "{told}");
    }

    #[test]
    fn a_file_that_was_named_has_to_be_there() {
        let mut flags = Flags::default();
        flags.config = Some(PathBuf::from("/nowhere/ostler.yaml"));
        assert!(Settings::gather(&flags, std::path::Path::new(".")).is_err());
        assert!(gather(&[], None).is_ok(), "the usual one need not be");
    }

    #[test]
    fn what_is_secret_is_not_shown() {
        let shown = table::STORE.shown("postgres://user:geheim@host/db?x=1");
        assert_eq!(shown, "postgres://user:***@host/db?x=1");
        assert_eq!(table::STORE.shown("sqlite:a:b@c"), "sqlite:a:b@c");
        let told = gather(&[("store", "mysql://user:geheim@host")], None).unwrap_err();
        assert!(!told.contains("geheim"), "{told}");
    }

    #[test]
    fn a_password_for_the_database_belongs_in_no_flag_and_is_shown_nowhere() {
        for text in
            ["postgres://me:geheim@h/d", "postgres://h/d?user=me&password=geheim", "host=h password=geheim"]
        {
            let told = gather(&[("store", text)], None).unwrap_err();
            assert!(told.contains("OSTLER_STORE") && told.contains("`store`"), "{told}");
            assert!(!told.contains("geheim"), "{told}");
            assert!(!table::STORE.shown(text).contains("geheim"), "{text}");
        }
        let file = "store: \"postgres://h/d?user=me&password=geheim\"\n";
        assert!(gather(&[], Some(file)).is_ok(), "a file may say it");
        assert!(gather(&[("store", "postgres://me@h/d")], None).is_ok());
        let told = gather(&[], Some("store: \"postgres://me:geheim@h:x/d\"\n")).unwrap_err();
        assert!(told.contains("port") && told.contains("me:***@h") && !told.contains("geheim"), "{told}");
    }

    #[test]
    fn a_password_for_the_proxy_belongs_in_no_flag_and_is_shown_nowhere() {
        for text in
            ["http://me:geheim@h:3128", "me:geheim@h:3128", "http://geheim@h", "http://me:ge@geheim@h"]
        {
            let told = gather(&[("network.proxy", text)], None).unwrap_err();
            assert!(told.contains("OSTLER_PROXY") && told.contains("network.proxy"), "{told}");
            assert!(!told.contains("geheim"), "{told}");
            let shown = table::PROXY.shown(text);
            assert!(shown.contains("***@h") && !shown.contains("geheim"), "{shown}");
        }
        let settings = gather(&[], Some("network: {proxy: \"http://me:geheim-wort@h:3128\"}\n")).unwrap();
        assert_eq!(settings.text(&table::PROXY), Some("http://me:geheim-wort@h:3128"), "a file may say it");
        let redactor = ostler_worker::Redactor::default();
        let config = network::config(&settings, &redactor).unwrap();
        assert!(!format!("{config:?}").contains("geheim"), "{config:?}");
        assert_eq!(redactor.hidden("it is geheim-wort"), "it is [REDACTED]");
        let told = gather(&[], Some("network: {proxy: \"socks5://me:geheim@h:1\"}\n")).unwrap_err();
        assert!(!told.contains("geheim"), "{told}");
        assert!(gather(&[("network.proxy", "http://h:3128")], None).is_ok());
    }
}
