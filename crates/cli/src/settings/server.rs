//! The settings of a server: what they come to.

use std::{net::SocketAddr, path::PathBuf};

use ostler_server::{Limits, SecretText, ServerConfig, SetupToken, StartError, StoreAddress, TlsFiles};
use ostler_spec::GoDuration;

use super::{SECRET_KEY, SETUP_TOKEN, Settings, table};

/// All of a server's configuration that is a setting.
pub fn config(settings: &Settings) -> ServerConfig {
    let usual = ServerConfig::default();
    let file = |setting| settings.text(setting).map(PathBuf::from);
    let lasts = |setting| settings.get::<GoDuration>(setting).map(GoDuration::get);
    ServerConfig {
        listen: settings.get::<SocketAddr>(&table::LISTEN).unwrap_or(usual.listen),
        tls: file(&table::TLS_CERTIFICATE)
            .zip(file(&table::TLS_KEY))
            .map(|(certificate, key)| TlsFiles { certificate, key }),
        insecure: settings.is_set(&table::INSECURE),
        allow_origins: settings
            .text(&table::ALLOW_ORIGIN)
            .map(|origins| table::parts(origins).map(str::to_owned).collect())
            .unwrap_or_default(),
        token_file: file(&table::TOKEN_FILE),
        worker_token_file: file(&table::WORKER_TOKEN_FILE),
        setup_token: settings.held_by(SETUP_TOKEN, &table::SETUP_TOKEN_FILE).map(SetupToken::new),
        setup_token_file: file(&table::SETUP_TOKEN_FILE),
        secret_key: settings.held_by(SECRET_KEY, &table::SECRET_KEY_FILE).map(SecretText::new),
        secret_key_file: file(&table::SECRET_KEY_FILE),
        session_ttl: lasts(&table::SESSION_TTL).unwrap_or(usual.session_ttl),
        limits: limits(settings),
        store: settings.get::<StoreAddress>(&table::STORE).unwrap_or_default(),
        lease: lasts(&table::LEASE).unwrap_or(usual.lease),
        keep: settings.text(&table::KEEP).and_then(table::kept),
        keep_tasks: settings.text(&table::KEEP_TASKS).and_then(table::tasks_kept),
        archive_after: settings.text(&table::ARCHIVE_AFTER).and_then(table::kept),
        keep_sessions: settings.text(&table::KEEP_SESSIONS).and_then(table::kept),
        keep_workers: settings.text(&table::KEEP_WORKERS).and_then(table::kept),
        ..usual
    }
}

/// What to do about a start that failed by its settings.
pub fn remedy(error: &StartError) -> Option<&'static str> {
    match error {
        StartError::NotLoopback { .. } => Some(
            "give --tls-certificate and --tls-key, or --insecure if something in front of it speaks TLS, or listen on \
             127.0.0.1",
        ),
        StartError::SecretKey { .. } => Some("`openssl rand -base64 32` makes a key"),
        StartError::Token { .. } => Some("`openssl rand -hex 32` makes one"),
        StartError::Tls(_)
        | StartError::WrongSecretKey { .. }
        | StartError::AddressInUse { .. }
        | StartError::Listen { .. }
        | StartError::DataInUse { .. }
        | StartError::Data { .. }
        | StartError::Store(_)
        | StartError::Read(_)
        | StartError::Quotas(_)
        | StartError::Restore(_) => None,
    }
}

fn limits(settings: &Settings) -> Limits {
    let usual = Limits::default();
    let number = |setting, usual: u32| settings.get(setting).unwrap_or(usual);
    let count = |setting, usual: usize| settings.get(setting).unwrap_or(usual);
    Limits {
        requests_per_second: number(&table::REQUESTS_PER_SECOND, usual.requests_per_second),
        requests_per_caller: number(&table::REQUESTS_PER_CALLER, usual.requests_per_caller),
        streams: count(&table::STREAMS, usual.streams),
        streams_per_caller: count(&table::STREAMS_PER_CALLER, usual.streams_per_caller),
        watches: count(&table::WATCHES, usual.watches),
        watches_per_caller: count(&table::WATCHES_PER_CALLER, usual.watches_per_caller),
        connections: count(&table::CONNECTIONS, usual.connections),
        ..usual
    }
}
