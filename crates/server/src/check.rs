//! What a configuration gets wrong, as far as that can be told before anything is opened or made. Each of these ends a
//! start, and none goes away by itself; so they are told all at once.

use std::path::Path;

use ostler_control::store::postgres;

use crate::{
    ServerConfig, StartError, StoreAddress, data_folder, secret_keys::KeySource, store::StoreOpenError, tls,
};

impl ServerConfig {
    /// What combinations and the contents of files get wrong. Files that the server makes itself are not looked at.
    pub fn mistakes(&self) -> Vec<StartError> {
        let tokens = [&self.token_file, &self.worker_token_file].into_iter().flatten();
        let tls = self.tls.as_ref().map(tls::acceptor).transpose().map(drop).map_err(StartError::Tls);
        let found =
            [self.may_listen(), tls, self.setup_token().map(drop), self.check_keys(), self.check_store()];
        let found = tokens.map(|path| given_token(path).map(drop)).chain(found);
        found.filter_map(Result::err).collect()
    }

    /// Others are served over TLS, or because somebody said that it may be without.
    pub(crate) fn may_listen(&self) -> Result<(), StartError> {
        let listen = self.listen;
        match listen.ip().is_loopback() || self.tls.is_some() || self.insecure {
            true => Ok(()),
            false => Err(StartError::NotLoopback { listen }),
        }
    }

    /// What makes the first user, if it was given.
    pub(crate) fn setup_token(&self) -> Result<Option<String>, StartError> {
        match (&self.setup_token, &self.setup_token_file) {
            (Some(token), _) => {
                let failed = |error| StartError::Token { path: "OSTLER_SETUP_TOKEN".into(), error };
                data_folder::check_token(token.as_str()).map(Some).map_err(failed)
            }
            (None, Some(path)) => given_token(path).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn check_keys(&self) -> Result<(), StartError> {
        let source = KeySource::of(self);
        let failed = |error| StartError::SecretKey { place: source.to_string(), error };
        source.given(self).map(drop).map_err(failed)
    }

    fn check_store(&self) -> Result<(), StartError> {
        match &self.store {
            StoreAddress::Postgres(url) => postgres::Options::at(url)
                .map(drop)
                .map_err(|error| StartError::Store(StoreOpenError::Postgres(error))),
            StoreAddress::DataFolder | StoreAddress::Sqlite(_) => Ok(()),
        }
    }
}

/// A token that someone else has made.
pub(crate) fn given_token(path: &Path) -> Result<String, StartError> {
    data_folder::given_token(path).map_err(|error| StartError::Token { path: path.to_owned(), error })
}
