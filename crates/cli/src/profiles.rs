//! Profiles: servers by name, with what is needed to talk to them. They lie in one file of the person's, which nobody
//! else may read: `~/.config/ostler/profiles.yaml`.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ostler_spec::Leaf;
use serde::Serialize;

use crate::{error::CommandError, exit::Exit, suggest};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Profiles {
    /// The one that counts where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    pub profiles: BTreeMap<String, Profile>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Profile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The variable that holds the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// A file with who vouches for the server, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

const FIELDS: [&str; 5] = ["server", "token", "token_env", "namespace", "ca"];

/// Where profiles lie, if this person has a place for such files.
pub fn file(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").filter(|folder| folder.is_absolute());
    let folder = folder.or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("ostler/profiles.yaml"))
}

impl Profiles {
    /// What the file says; nothing if there is none.
    pub fn read(path: &Path) -> Result<Self, CommandError> {
        let shown = path.display().to_string();
        let read = match fs::read_to_string(path) {
            Ok(text) => Self::parse(&shown, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => Err(vec![format!("{shown}: can't be read: {error}")]),
        };
        read.map_err(|problems| {
            CommandError::new(Exit::Usage, "the profiles can't be used")
                .with_details(problems)
                .with_remedy(format!("mend {shown}, or remove it"))
        })
    }

    fn parse(shown: &str, text: &str) -> Result<Self, Vec<String>> {
        let leaves = ostler_spec::leaves(shown, text)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let mut profiles = Self::default();
        let problems: Vec<String> = leaves.into_iter().filter_map(|leaf| profiles.take(leaf).err()).collect();
        if problems.is_empty() { Ok(profiles) } else { Err(problems) }
    }

    fn take(&mut self, Leaf { path, text, location }: Leaf) -> Result<(), String> {
        if path == "current" {
            self.current = Some(text);
            return Ok(());
        }
        let named = path.strip_prefix("profiles.").and_then(|rest| rest.rsplit_once('.'));
        let place = location.map(|location| format!("{location}: ")).unwrap_or_default();
        let Some((name, field)) = named else {
            return Err(format!("{place}{path} is unknown; expected `current` and `profiles.NAME`"));
        };
        let profile = self.profiles.entry(name.to_owned()).or_default();
        let slot = match field {
            "server" => &mut profile.server,
            "token" => &mut profile.token,
            "token_env" => &mut profile.token_env,
            "namespace" => &mut profile.namespace,
            "ca" => &mut profile.ca,
            _ => {
                let near = suggest::nearest(field, FIELDS);
                let near = near.map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
                return Err(format!("{place}{path}: unknown field{near}"));
            }
        };
        *slot = Some(text);
        Ok(())
    }

    /// Writes them whole or not at all, for their owner only: there may be tokens in it.
    pub fn write(&self, path: &Path) -> Result<(), CommandError> {
        let failed = |error: &dyn std::fmt::Display| {
            CommandError::error(format!("can't write {}: {error}", path.display()))
        };
        let text = serde_saphyr::to_string(self).map_err(|error| failed(&error))?;
        let part = path.with_extension("part");
        let write = || {
            if let Some(folder) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&part, path)
        };
        write().map_err(|error: io::Error| failed(&error))
    }

    pub fn get(&self, name: &str) -> Result<&Profile, CommandError> {
        let make = format!("`ostler profile set {name} --server URL` makes one");
        self.profiles.get(name).ok_or_else(|| self.missing(name, &make))
    }

    /// All of these, or none if one of them is not there.
    pub fn forget(&mut self, names: &[String]) -> Result<(), CommandError> {
        if let Some(name) = names.iter().find(|name| !self.profiles.contains_key(*name)) {
            return Err(self.missing(name, "`ostler profile list` lists them"));
        }
        self.profiles.retain(|name, _| !names.contains(name));
        self.current = self.current.take().filter(|current| !names.contains(current));
        Ok(())
    }

    fn missing(&self, name: &str, otherwise: &str) -> CommandError {
        let error = CommandError::new(Exit::Usage, format!("there is no profile {name:?}"));
        match suggest::nearest(name, self.profiles.keys().map(String::as_str)) {
            Some(near) => error.with_remedy(format!("did you mean {near}? `ostler profile list` lists them")),
            None => error.with_remedy(otherwise),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/ostler/profiles.yaml");
        assert_eq!(Profiles::read(&path).unwrap(), Profiles::default(), "there need not be a file");
        let profile = Profile { server: Some("https://a.example".into()), ..Profile::default() };
        let mut profiles = Profiles { current: Some("a.b".into()), ..Profiles::default() };
        profiles.profiles.insert("a.b".into(), profile);
        profiles.write(&path).unwrap();
        assert_eq!(Profiles::read(&path).unwrap(), profiles);
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        profiles.profiles.clear();
        profiles.current = None;
        profiles.write(&path).unwrap();
        assert_eq!(Profiles::read(&path).unwrap(), profiles);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let problems = Profiles::parse("p.yaml", "profiles:\n  a:\n    sever: x\ncurent: a\n").unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("p.yaml:3:") && problems[0].contains("\"server\""), "{problems:?}");
        assert!(Profiles::parse("p.yaml", "# nothing yet\n").unwrap().profiles.is_empty());
        assert!(Profiles::default().get("a").is_err());
    }

    #[test]
    fn all_are_forgotten_or_none() {
        let mut profiles = Profiles { current: Some("b".into()), ..Profiles::default() };
        profiles.profiles = ["a", "b"].map(|name| (name.to_owned(), Profile::default())).into();
        assert_eq!(profiles.forget(&["a".into(), "c".into()]).unwrap_err().exit(), Exit::Usage);
        assert_eq!(profiles.profiles.len(), 2);
        profiles.forget(&["b".into(), "b".into()]).unwrap();
        assert_eq!((profiles.profiles.len(), profiles.current), (1, None));
    }

    #[test]
    fn the_file_is_where_such_files_are() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs: BTreeMap<String, String> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            file(&|name| pairs.get(name).cloned())
        };
        assert_eq!(of(&[("HOME", "/h")]), Some("/h/.config/ostler/profiles.yaml".into()));
        let both = of(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]);
        assert_eq!(both, Some("/x/ostler/profiles.yaml".into()));
        assert_eq!(of(&[]), None);
    }
}
