//! Mistakes that no setting makes alone: what goes together with what, and what the files say that are named.

use std::{env, path::Path};

use ostler_server::{StartError, TlsSetupError};
use ostler_worker::{RemotePort, telemetry};

use super::{Group, Mistake, Setting, Settings, network, server, table};
use crate::error::with_causes;

/// Of these groups. `said` is all that was said; what is `sound` has nothing wrong with it by itself.
pub fn mistakes(said: &Settings, sound: &Settings, groups: &[Group]) -> Vec<Mistake> {
    let mut found = Vec::new();
    if groups.contains(&Group::Server) {
        found.extend(half_of_tls(said));
        found.extend(of_server(said, sound));
    }
    if groups.contains(&Group::Link) {
        found.extend(of_link(sound));
    }
    if groups.contains(&Group::Network) {
        let proxy = network::proxy(sound);
        found.extend(proxy.err().map(|error| said.mistake(&table::PROXY, with_causes(&error))));
    }
    let collector = telemetry::Config::read(&|name| env::var(name).ok());
    found.extend(collector.err().map(|error| Mistake::of_none(with_causes(&error))));
    found
}

fn half_of_tls(said: &Settings) -> Option<Mistake> {
    let lacking = |has: &'static Setting, lacks: &'static Setting| {
        let needed = format!("TLS takes a certificate and its key: give --{} too", lacks.flag);
        (said.text(has).is_some() && said.text(lacks).is_none()).then(|| said.mistake(has, needed))
    };
    lacking(&table::TLS_CERTIFICATE, &table::TLS_KEY)
        .or_else(|| lacking(&table::TLS_KEY, &table::TLS_CERTIFICATE))
}

fn of_server(said: &Settings, sound: &Settings) -> Vec<Mistake> {
    let wants_tls = said.text(&table::TLS_CERTIFICATE).or(said.text(&table::TLS_KEY)).is_some();
    let found = server::config(sound).mistakes().into_iter();
    // Who serves others without TLS only because of what is wrong with it has been told so.
    let found = found.filter(|error| !(wants_tls && matches!(error, StartError::NotLoopback { .. })));
    found.map(|error| told(said, &error)).collect()
}

fn told(said: &Settings, error: &StartError) -> Mistake {
    let remedy = server::remedy(error).map_or_else(String::new, |remedy| format!("; {remedy}"));
    let text = with_causes(error) + &remedy;
    match setting(said, error) {
        Some(setting) => said.mistake(setting, text),
        None => Mistake::of_none(text),
    }
}

/// Whose mistake it is. What was given by a variable alone says so itself.
fn setting(said: &Settings, error: &StartError) -> Option<&'static Setting> {
    let names = |setting: &&'static Setting, path: &Path| said.text(setting).map(Path::new) == Some(path);
    let tokens = [&table::TOKEN_FILE, &table::WORKER_TOKEN_FILE, &table::SETUP_TOKEN_FILE];
    match error {
        StartError::NotLoopback { .. } => Some(&table::LISTEN),
        StartError::Tls(TlsSetupError::Key { .. }) => Some(&table::TLS_KEY),
        StartError::Tls(TlsSetupError::Certificate(_) | TlsSetupError::Pair { .. }) => {
            Some(&table::TLS_CERTIFICATE)
        }
        StartError::Token { path, .. } => tokens.into_iter().find(|setting| names(setting, path)),
        StartError::SecretKey { place, .. } => {
            Some(&table::SECRET_KEY_FILE).filter(|setting| names(setting, Path::new(place)))
        }
        StartError::Store(_) => Some(&table::STORE),
        StartError::WrongSecretKey { .. }
        | StartError::AddressInUse { .. }
        | StartError::Listen { .. }
        | StartError::DataInUse { .. }
        | StartError::Data { .. }
        | StartError::Read(_)
        | StartError::Quotas(_)
        | StartError::Restore(_) => None,
    }
}

fn of_link(sound: &Settings) -> Option<Mistake> {
    let ca = Path::new(sound.text(&table::CA)?);
    RemotePort::check_ca(ca).err().map(|error| sound.mistake(&table::CA, with_causes(&error)))
}
