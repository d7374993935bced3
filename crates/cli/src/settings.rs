//! What servers and workers are told at their start: each setting by a flag, a variable or a file. The first of these
//! that says something counts, then the default. All mistakes, wherever they were made, are told at once.

mod file;
mod flags;
pub mod network;
pub mod server;
pub mod table;
mod together;

use std::{
    collections::BTreeMap,
    env, fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

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

/// What is secret is not given by a flag, which others on the machine can read. These hold it themselves.
pub const WORKER_TOKEN: &str = "OSTLER_WORKER_TOKEN";
pub const SETUP_TOKEN: &str = "OSTLER_SETUP_TOKEN";
pub const SECRET_KEY: &str = "OSTLER_SECRET_KEY";

/// All settings, each of them checked.
#[derive(Debug, Clone, Default)]
pub struct Settings(BTreeMap<&'static str, Said>);

/// What is wrong, and with which setting, if it is one's.
#[derive(Debug)]
pub struct Mistake {
    pub key: Option<&'static str>,
    pub text: String,
}

/// What was said, whether it makes sense or not.
#[derive(Debug)]
pub struct Gathered {
    pub settings: Settings,
    pub mistakes: Vec<Mistake>,
    /// The file, if there is one.
    pub file: Option<(PathBuf, Source)>,
}

impl Mistake {
    fn of_none(text: String) -> Self {
        Self { key: None, text }
    }
}

impl Gathered {
    /// `data` is the data folder, where the file is unless another one is named.
    pub fn from(flags: &Flags, data: &Path) -> Self {
        let file = file::choose(flags.config.as_deref(), data);
        let (from_file, unread) = file.as_ref().map(|(path, _)| file::read(path)).unwrap_or_default();
        let mut mistakes: Vec<_> = unread.into_iter().map(Mistake::of_none).collect();
        let (mut settings, mut sound) = (Settings::default(), Settings::default());
        for setting in table::all() {
            let Some(said) = said(setting, flags, &from_file) else { continue };
            match check(setting, &said) {
                Ok(()) => drop(sound.0.insert(setting.key, said.clone())),
                Err(text) => mistakes.push(Mistake { key: Some(setting.key), text }),
            }
            settings.0.insert(setting.key, said);
        }
        mistakes.extend(together::mistakes(&settings, &sound, flags.groups));
        Self { settings, mistakes, file }
    }

    /// All that is wrong with a setting.
    pub fn mistake_of(&self, setting: &Setting) -> Option<String> {
        let of_it = self.mistakes.iter().filter(|mistake| mistake.key == Some(setting.key));
        let told: Vec<_> = of_it.map(|mistake| mistake.text.as_str()).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// All that is wrong at once.
    pub fn complaint(&self) -> Option<CommandError> {
        let details = self.mistakes.iter().map(|mistake| mistake.text.clone());
        let complaint = || CommandError::new(Exit::Usage, "the settings can't be used").with_details(details);
        (!self.mistakes.is_empty()).then(complaint)
    }
}

/// What counts of what was said of a setting.
fn said(
    setting: &'static Setting,
    flags: &Flags,
    file: &BTreeMap<&'static str, (String, Source)>,
) -> Option<Said> {
    let by_flag = flags.said(setting).map(|text| (text.to_owned(), Source::Flag(setting.flag)));
    let by_variable = || {
        let text = env::var(setting.variable).ok().filter(|text| !text.is_empty())?;
        Some((text, Source::Variable(setting.variable)))
    };
    let (text, source) = by_flag
        .or_else(by_variable)
        .or_else(|| file.get(setting.key).cloned())
        .or_else(|| setting.default.map(|text| (text.to_owned(), Source::Default)))?;
    Some(Said { text, source })
}

/// What is wrong with it by itself.
fn check(setting: &'static Setting, said: &Said) -> Result<(), String> {
    let Said { text, source } = said;
    let unfit = match source {
        Source::Flag(_) => setting.unfit_for_flag(text),
        Source::Variable(_) | Source::File(_) | Source::Default => None,
    };
    let checked = unfit.map_or_else(|| (setting.check)(text), Err);
    checked.map_err(|problem| format!("{source}: {:?} can't be used: {problem}", setting.shown(text)))
}

impl Settings {
    /// Gathers what was said.
    pub fn gather(flags: &Flags, data: &Path) -> Result<Self, CommandError> {
        let gathered = Gathered::from(flags, data);
        match gathered.complaint() {
            None => Ok(gathered.settings),
            Some(complaint) => Err(complaint.with_remedy(
                "`ostler config show` lists every setting with its value and where that comes from",
            )),
        }
    }

    /// What is wrong with a setting, with who said it.
    fn mistake(&self, setting: &'static Setting, text: impl fmt::Display) -> Mistake {
        let source = self.0.get(setting.key).map_or(&Source::Default, |said| &said.source);
        Mistake { key: Some(setting.key), text: format!("{source}: {text}") }
    }

    /// Every setting there is, with what was said of it.
    pub fn all(&self) -> impl Iterator<Item = (&'static Setting, Option<&Said>)> {
        table::all().map(|setting| (setting, self.0.get(setting.key)))
    }

    pub fn text(&self, setting: &'static Setting) -> Option<&str> {
        self.0.get(setting.key).map(|said| said.text.as_str())
    }

    pub fn is_by_flag(&self, setting: &'static Setting) -> bool {
        self.0.get(setting.key).is_some_and(|said| matches!(said.source, Source::Flag(_)))
    }

    /// What a variable holds that otherwise stands in a file. A flag that names the file goes first, as everywhere.
    pub fn held_by(&self, variable: &str, file: &'static Setting) -> Option<String> {
        let held = || env::var(variable).ok().filter(|text| !text.trim().is_empty());
        if self.is_by_flag(file) { None } else { held() }
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
    fn a_mistake_is_told_with_what_is_expected() {
        let told = gather(&[("listen", "foo"), ("tokens.worker", "nope"), ("worker.slots", "none")], None)
            .unwrap_err();
        for part in [
            "--listen: \"foo\" can't be used: expected an address and a port, such as 127.0.0.1:7070",
            "--worker-token-file: \"nope\" can't be used: expected a file that holds a token: No such file",
            "--slots: \"none\" can't be used: expected a number from 1 on",
        ] {
            assert!(told.contains(part), "{part:?} is not in:\n{told}");
        }
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
    fn a_proxy_is_an_address_or_one_of_two_words() {
        for text in
            ["off", "environment", "http://h:3128", "https://proxy.example:3128/", "http://h", "h:3128"]
        {
            assert!(gather(&[("network.proxy", text)], None).is_ok(), "{text}");
        }
        for text in ["on", "h:x", "socks5://h:1", "http://", "http://h:1/path", "h:1/path", "http://h:x"] {
            let told = gather(&[("network.proxy", text)], None).unwrap_err();
            assert!(told.contains("expected off, environment, or http://HOST:PORT"), "{told}");
            let told = gather(&[], Some(&format!("network: {{proxy: {text:?}}}\n"))).unwrap_err();
            assert!(told.contains("config.yaml:1:") && told.contains("expected off"), "{told}");
        }
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
