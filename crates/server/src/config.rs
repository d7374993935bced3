//! What a server needs to know to start. Where it comes from is the caller's matter.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use ostler_control::{
    secrets::{Redactor, SecretText},
    telemetry::Telemetry,
};

use crate::{Limits, SetupToken, StoreAddress};

#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to listen. Beyond this machine's loopback it takes TLS, or `insecure`. Port 0 takes any that is free.
    pub listen: SocketAddr,
    pub tls: Option<TlsFiles>,
    /// Serve others without TLS: something in front of the server has to see to that.
    pub insecure: bool,
    /// Pages of other sites that may call with a token: each as `https://app.example`.
    pub allow_origins: Vec<String>,
    /// Files that hold the tokens, shared by servers that stand for one another; without them, those of the data
    /// folder.
    pub token_file: Option<PathBuf>,
    pub worker_token_file: Option<PathBuf>,
    /// Lets its bearer make the first user: as it is, or a file that holds it.
    pub setup_token: Option<SetupToken>,
    pub setup_token_file: Option<PathBuf>,
    /// What secrets are sealed with: the keys as they are, or a file that holds them; without either, one of the data
    /// folder's own.
    pub secret_key: Option<SecretText>,
    pub secret_key_file: Option<PathBuf>,
    /// Told of everything that must not be shown.
    pub redactor: Redactor,
    /// How long a user stays signed in behind the last request.
    pub session_ttl: Duration,
    pub limits: Limits,
    /// The folder of the token and `server.json`, and of the store unless that is elsewhere. Made if it isn't there.
    pub data: PathBuf,
    pub store: StoreAddress,
    /// How long a worker may be silent before its runs are given to others.
    pub lease: Duration,
    /// How long a task is kept after its end; or else for ever.
    pub keep: Option<Duration>,
    /// How many tasks of a namespace are kept; or else any number.
    pub keep_tasks: Option<usize>,
    /// How long after its end a task is put out of sight; or else never.
    pub archive_after: Option<Duration>,
    /// How long a conversation with a key is kept after its last use; or else for ever.
    pub keep_sessions: Option<Duration>,
    /// How long a worker is kept that gives no sign of life; or else for ever.
    pub keep_workers: Option<Duration>,
    /// How long a plan is kept that no task names; or else for ever.
    pub keep_plans: Option<Duration>,
    /// Names of the model providers that workers have. If there are none, any name is taken.
    pub providers: Vec<String>,
    /// Told of tasks and attempts.
    pub telemetry: Telemetry,
    /// A backup to put in the store's place before it is opened.
    pub restore: Option<PathBuf>,
    /// Replace a store that is there already; it is kept beside.
    pub force_restore: bool,
}

/// A certificate, with those that vouch for it behind it, and its key: both in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7070)),
            tls: None,
            insecure: false,
            allow_origins: Vec::new(),
            token_file: None,
            worker_token_file: None,
            setup_token: None,
            setup_token_file: None,
            secret_key: None,
            secret_key_file: None,
            redactor: Redactor::default(),
            session_ttl: Duration::from_secs(24 * 60 * 60),
            limits: Limits::default(),
            data: PathBuf::from(".ostler"),
            store: StoreAddress::default(),
            lease: Duration::from_secs(30),
            keep: None,
            keep_tasks: None,
            archive_after: None,
            keep_sessions: None,
            keep_workers: None,
            keep_plans: Some(Duration::from_secs(7 * 24 * 3600)),
            providers: Vec::new(),
            telemetry: Telemetry::default(),
            restore: None,
            force_restore: false,
        }
    }
}
