//! The store a server stands on: a file of its own, or a database that it shares with other servers.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use ostler_control::store::{
    PostgresStore, SqliteStore, Store, StoreError, postgres,
    sqlite::{self, RestoreError, restore},
};
use ostler_kernel::Runtime;

use crate::{ServerConfig, data_folder};

/// Where a store is.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum StoreAddress {
    /// `store.db` in the data folder.
    #[default]
    DataFolder,
    /// An SQLite file: `sqlite:PATH`.
    Sqlite(PathBuf),
    /// `postgres://user@host/database`.
    Postgres(String),
}

#[derive(Debug, thiserror::Error)]
pub enum BadStoreAddress {
    #[error("expected sqlite:PATH or postgres://USER@HOST/DATABASE")]
    Unknown,
    #[error(transparent)]
    Postgres(postgres::OpenError),
}

impl FromStr for StoreAddress {
    type Err = BadStoreAddress;

    fn from_str(text: &str) -> Result<Self, BadStoreAddress> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                postgres::address::check(text).map_err(BadStoreAddress::Postgres)?;
                Ok(Self::Postgres(text.to_owned()))
            }
            _ => Err(BadStoreAddress::Unknown),
        }
    }
}

impl StoreAddress {
    /// What must not be shown of it, in the forms in which it may stand somewhere.
    pub fn hidden(&self) -> Vec<String> {
        match self {
            Self::Postgres(url) => postgres::address::hidden(url),
            Self::DataFolder | Self::Sqlite(_) => Vec::new(),
        }
    }

    /// What somebody wrote as an address, without a password in it.
    pub fn shown(text: &str) -> String {
        match text.starts_with("sqlite:") {
            true => text.to_owned(),
            false => postgres::address::shown(text),
        }
    }
}

/// Without what is secret in it.
impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataFolder => f.write_str("the data folder"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(_) => f.write_str("postgres"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    #[error(transparent)]
    Sqlite(#[from] sqlite::OpenError),
    #[error(transparent)]
    Postgres(#[from] postgres::OpenError),
    #[error("a backup of SQLite can't be restored into PostgreSQL; use pg_restore")]
    RestoreElsewhere,
    #[error("can't restore the backup")]
    Restore(#[source] RestoreError),
}

/// A backup as the store that it would be. The copy goes last.
pub struct Rehearsal {
    pub store: Arc<SqliteStore>,
    _copy: data_folder::Copy,
}

/// A store that is open.
#[derive(Clone)]
pub enum Opened {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl Opened {
    /// Puts a backup in place if there is one to be put, and opens the store.
    pub async fn open(config: &ServerConfig, runtime: &Arc<dyn Runtime>) -> Result<Self, StoreOpenError> {
        let path = match &config.store {
            StoreAddress::DataFolder => data_folder::store_file(&config.data),
            StoreAddress::Sqlite(path) => path.clone(),
            StoreAddress::Postgres(_) if config.restore.is_some() => {
                return Err(StoreOpenError::RestoreElsewhere);
            }
            StoreAddress::Postgres(url) => {
                let options = postgres::Options::at(url)?;
                return Ok(Self::Postgres(Arc::new(
                    PostgresStore::open(options, Arc::clone(runtime)).await?,
                )));
            }
        };
        let (backup, force) = (config.restore.clone(), config.force_restore);
        // Checking a large backup takes its time; others on this thread should not have to wait for it.
        let opened = tokio::task::spawn_blocking(move || {
            if let Some(backup) = backup {
                restore(&backup, &path, force).map_err(StoreOpenError::Restore)?;
            }
            Ok(Self::Sqlite(Arc::new(SqliteStore::open(&path)?)))
        });
        opened.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
    }

    /// The backup that would be put in place, restored to a copy of its own that goes when this is dropped. None if there is
    /// no backup, or if it can't come in place anyway: who restores it says why.
    pub async fn rehearsed(
        config: &ServerConfig,
        runtime: &dyn Runtime,
    ) -> Result<Option<Rehearsal>, StoreOpenError> {
        let path = match &config.store {
            StoreAddress::DataFolder => data_folder::store_file(&config.data),
            StoreAddress::Sqlite(path) => path.clone(),
            StoreAddress::Postgres(_) => return Ok(None),
        };
        let Some(backup) = config.restore.clone() else { return Ok(None) };
        if path.exists() && !config.force_restore {
            return Ok(None);
        }
        let copy = data_folder::Copy::at(&config.data, runtime.random());
        let restored = tokio::task::spawn_blocking(move || {
            restore(&backup, copy.path(), true).map_err(StoreOpenError::Restore)?;
            Ok(Some(Rehearsal { store: Arc::new(SqliteStore::open(copy.path())?), _copy: copy }))
        });
        restored.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
    }

    pub fn port(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::clone(store) as _,
            Self::Postgres(store) => Arc::clone(store) as _,
        }
    }

    /// Writes a consistent copy to a file. None if that is not ours to do.
    pub fn backup(&self, target: &Path) -> Option<Result<PathBuf, StoreError>> {
        match self {
            Self::Sqlite(store) => Some(store.backup(target)),
            Self::Postgres(_) => None,
        }
    }

    /// Whether nobody else holds it any more.
    pub fn is_last(&self) -> bool {
        match self {
            Self::Sqlite(store) => Arc::strong_count(store) == 1,
            Self::Postgres(store) => Arc::strong_count(store) == 1,
        }
    }
}
