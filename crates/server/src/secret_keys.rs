//! Where the keys come from that secrets are sealed with: the environment, a file, or else one that is made in the data
//! folder at the first start. Servers on one store have to have the same.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use ostler_control::secrets::{Key, KeyError, KeyRing, Redactor};
use ostler_kernel::Runtime;

use crate::{ServerConfig, data_folder, telemetry};

#[derive(Debug, Clone)]
pub enum KeySource {
    Environment,
    File(PathBuf),
    /// Ours to write.
    DataFolder(PathBuf),
}

#[derive(Debug, thiserror::Error)]
pub enum KeyReadError {
    #[error("can't read it")]
    Read(#[from] io::Error),
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl KeySource {
    pub fn of(config: &ServerConfig) -> Self {
        match (&config.secret_key, &config.secret_key_file) {
            (Some(_), _) => Self::Environment,
            (None, Some(path)) => Self::File(path.clone()),
            (None, None) => Self::DataFolder(data_folder::secret_key_file(&config.data)),
        }
    }

    /// The keys as they are now. That of the data folder is made if it is not there yet.
    pub fn read(&self, config: &ServerConfig, runtime: &dyn Runtime) -> Result<KeyRing, KeyReadError> {
        let ring = match self.given(config)? {
            Some(ring) => ring,
            None => own(&data_folder::secret_key_file(&config.data), runtime)?,
        };
        hide(&ring, &config.redactor);
        Ok(ring)
    }

    /// Whether they would be made by reading them.
    pub fn is_to_be_made(&self) -> bool {
        match self {
            Self::Environment | Self::File(_) => false,
            Self::DataFolder(path) => !path.exists(),
        }
    }

    /// Takes a key away that nothing was sealed with: it would stand in the way of the right one.
    pub fn unmake(&self) {
        match self {
            Self::Environment | Self::File(_) => {}
            Self::DataFolder(path) => {
                if let Err(error) = fs::remove_file(path) {
                    telemetry::not_removed("a key that fits nothing", &error);
                }
            }
        }
    }

    /// The keys that somebody gave us, unless they are ours to make.
    pub fn given(&self, config: &ServerConfig) -> Result<Option<KeyRing>, KeyReadError> {
        match (self, &config.secret_key) {
            (Self::Environment, Some(text)) => Ok(Some(KeyRing::parse(text.expose())?)),
            (Self::Environment, None) => Err(KeyError::Empty.into()),
            (Self::File(path), _) => read(path).map(Some),
            (Self::DataFolder(_), _) => Ok(None),
        }
    }

    /// The keys to turn to: a new one in front of those of the data folder, or what somebody has put into the file. None if
    /// they can't change while the server runs.
    pub fn next(&self, redactor: &Redactor, runtime: &dyn Runtime) -> Result<Option<KeyRing>, KeyReadError> {
        let ring = match self {
            Self::Environment => return Ok(None),
            Self::File(path) => read(path)?,
            Self::DataFolder(path) => read(path)?.with_first(Key::generate(runtime)),
        };
        hide(&ring, redactor);
        Ok(Some(ring))
    }

    /// Writes down the keys that are turned to, if that is ours to do.
    pub fn keep(&self, ring: &KeyRing) -> Result<(), KeyReadError> {
        match self {
            Self::Environment | Self::File(_) => Ok(()),
            Self::DataFolder(path) => Ok(data_folder::replace(path, ring.write().as_bytes())?),
        }
    }
}

fn own(path: &Path, runtime: &dyn Runtime) -> Result<KeyRing, KeyReadError> {
    match read(path) {
        Err(KeyReadError::Read(error)) if error.kind() == io::ErrorKind::NotFound => {
            let ring = KeyRing::of(Key::generate(runtime));
            data_folder::replace(path, ring.write().as_bytes())?;
            Ok(ring)
        }
        ring => ring,
    }
}

fn read(path: &Path) -> Result<KeyRing, KeyReadError> {
    Ok(KeyRing::parse(&zeroize::Zeroizing::new(fs::read_to_string(path)?))?)
}

fn hide(ring: &KeyRing, redactor: &Redactor) {
    ring.write().lines().for_each(|line| redactor.hide_for_good(line));
}

impl fmt::Display for KeySource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => out.write_str("OSTLER_SECRET_KEY"),
            Self::File(path) | Self::DataFolder(path) => write!(out, "{}", path.display()),
        }
    }
}
