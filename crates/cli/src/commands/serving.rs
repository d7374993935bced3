//! What the commands that stay have in common: a server from its settings, logging, and the signals that end them.

use std::{env, future::pending, net::SocketAddr, path::PathBuf, sync::Arc};

use ostler_server::{
    Limits, SecretText, Server, ServerConfig, SetupToken, StartError, StoreAddress, TlsFiles,
};
use ostler_spec::GoDuration;
use ostler_worker::{
    Offer, Prices,
    telemetry::{Config, Exporter, Source, Telemetry},
};
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    app::App,
    error::{CommandError, with_causes},
    exit::Exit,
    logging,
    settings::{
        Settings,
        table::{self, label},
    },
};

/// How to begin, besides the settings.
#[derive(Debug, clap::Args)]
pub struct StartArguments {
    /// Start from this backup
    #[arg(long, value_name = "FILE")]
    pub restore: Option<PathBuf>,

    /// Put the backup in the place of a store that is there; the old one is moved aside
    #[arg(long, requires = "restore")]
    pub force: bool,
}

/// Logs as the settings say. From here on a crash leaves no image of the memory behind, in which secrets would stand.
pub fn start_logging(settings: &Settings, is_quiet: bool, app: &App) -> Result<(), CommandError> {
    if let Err(error) = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }) {
        app.output.note(format!("warning: a crash may leave a core dump, with secrets in it: {error}"));
    }
    let usual = if is_quiet { "warn" } else { "warn,ostler=info" };
    let filter = settings.text(&table::LOG).unwrap_or(usual);
    logging::start(settings.text(&table::LOG_FORMAT) == Some("json"), filter, app)
}

/// What the standard variables say about telling a collector.
pub struct Collector {
    config: Config,
    pub telemetry: Telemetry,
}

impl Collector {
    pub fn from_environment(app: &App) -> Result<Self, CommandError> {
        let mut config = Config::read(&|name| env::var(name).ok()).map_err(|error| {
            CommandError::new(Exit::Usage, error.to_string()).with_remedy(
                "docs/reference/environment.md lists the variables that are read, and what they may say",
            )
        })?;
        config.identify(app.runtime.random());
        config.hidden().for_each(|hidden| app.redactor.hide_for_good(hidden));
        Ok(Self { telemetry: Telemetry::new(&config), config })
    }

    /// Begins to tell; figures come from `source`.
    pub fn start(&self, source: Source, app: &App) -> Result<Exporter, CommandError> {
        let started = self.telemetry.start(&self.config, Arc::clone(&app.runtime), source);
        started.map_err(|error| CommandError::error(with_causes(&error)))
    }
}

pub async fn start_server(
    settings: &Settings,
    arguments: &StartArguments,
    telemetry: &Telemetry,
    app: &App,
) -> Result<Server, CommandError> {
    let config = ServerConfig {
        listen: settings.get::<SocketAddr>(&table::LISTEN).unwrap_or(ServerConfig::default().listen),
        tls: tls(settings)?,
        insecure: settings.is_set(&table::INSECURE),
        allow_origins: settings
            .text(&table::ALLOW_ORIGIN)
            .map(|origins| table::parts(origins).map(str::to_owned).collect())
            .unwrap_or_default(),
        token_file: settings.text(&table::TOKEN_FILE).map(PathBuf::from),
        worker_token_file: settings.text(&table::WORKER_TOKEN_FILE).map(PathBuf::from),
        setup_token: setup_token(),
        setup_token_file: settings.text(&table::SETUP_TOKEN_FILE).map(PathBuf::from),
        secret_key: secret_key(),
        secret_key_file: settings.text(&table::SECRET_KEY_FILE).map(PathBuf::from),
        redactor: app.redactor.clone(),
        session_ttl: settings
            .get::<GoDuration>(&table::SESSION_TTL)
            .map_or(ServerConfig::default().session_ttl, |lasts| lasts.get()),
        limits: limits(settings),
        data: app.written.data_folder(),
        store: settings.get::<StoreAddress>(&table::STORE).unwrap_or_default(),
        lease: settings
            .get::<GoDuration>(&table::LEASE)
            .map_or(ServerConfig::default().lease, |lease| lease.get()),
        keep: settings.text(&table::KEEP).and_then(table::kept),
        keep_tasks: settings.text(&table::KEEP_TASKS).and_then(table::tasks_kept),
        archive_after: settings.text(&table::ARCHIVE_AFTER).and_then(table::kept),
        keep_sessions: settings.text(&table::KEEP_SESSIONS).and_then(table::kept),
        keep_workers: settings.text(&table::KEEP_WORKERS).and_then(table::kept),
        keep_plans: ServerConfig::default().keep_plans,
        providers: model_providers(app)?,
        telemetry: telemetry.clone(),
        restore: arguments.restore.clone(),
        force_restore: arguments.force,
    };
    let had_store = config.data.join("store.db").exists();
    ostler_server::start(config, Arc::clone(&app.runtime)).await.map_err(|error| {
        let said = CommandError::error(with_causes(&error));
        match error {
            StartError::DataInUse { .. } => {
                said.with_remedy("stop that one, or choose another folder with --data")
            }
            StartError::Restore(_) if had_store && !arguments.force => {
                said.with_remedy("--force puts the backup in its place, and keeps the old store beside it")
            }
            StartError::NotLoopback { .. } => said.with_remedy(
                "give --tls-certificate and --tls-key, or --insecure if something in front of it speaks TLS, \
                 or listen on 127.0.0.1",
            ),
            StartError::AddressInUse { .. } => said.with_remedy(
                "another server may be running: `ostler version` tells of the one here. --listen 127.0.0.1:0 takes any \
                 free port",
            ),
            StartError::WrongSecretKey { .. } => said.with_remedy(
                "give --secret-key-file the key of the server that kept them: in the file `secret-key` of its data \
                 folder, or wherever its own --secret-key-file is",
            ),
            StartError::SecretKey { .. } => said.with_remedy("`openssl rand -base64 32` makes a key"),
            StartError::Restore(_)
            | StartError::Listen { .. }
            | StartError::Data { .. }
            | StartError::Tls(_)
            | StartError::Token { .. }
            | StartError::Store(_)
            | StartError::Read(_) => said,
        }
    })
}

/// Those that the workers of this version have.
fn model_providers(app: &App) -> Result<Vec<String>, CommandError> {
    let names = ostler_worker::model_providers(Arc::clone(&app.runtime));
    names.map_err(|error| CommandError::error(with_causes(&error)))
}

/// What is secret is not given by a flag, which others on the machine can read.
fn setup_token() -> Option<SetupToken> {
    env::var("OSTLER_SETUP_TOKEN").ok().filter(|token| !token.is_empty()).map(SetupToken::new)
}

fn secret_key() -> Option<SecretText> {
    env::var("OSTLER_SECRET_KEY").ok().filter(|key| !key.trim().is_empty()).map(SecretText::new)
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
        connections: count(&table::CONNECTIONS, usual.connections),
        ..usual
    }
}

fn tls(settings: &Settings) -> Result<Option<TlsFiles>, CommandError> {
    let file = |setting| settings.text(setting).map(PathBuf::from);
    match (file(&table::TLS_CERTIFICATE), file(&table::TLS_KEY)) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        _ => Err(CommandError::new(Exit::Usage, "TLS takes a certificate and its key")
            .with_remedy("give both, --tls-certificate and --tls-key")),
    }
}

/// What models cost.
pub fn prices(settings: &Settings) -> Result<Prices, CommandError> {
    table::read_prices(settings.text(&table::PRICES)).map_err(CommandError::error)
}

/// What the worker says of itself.
pub fn offer(settings: &Settings) -> Offer {
    let labels = settings.list(&table::LABELS).filter_map(label);
    Offer {
        slots: settings.get(&table::SLOTS).unwrap_or(1),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        region: settings.text(&table::REGION).unwrap_or_default().to_owned(),
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        models: settings.list(&table::MODELS).map(ToOwned::to_owned).collect(),
        capabilities: settings.list(&table::CAPABILITIES).map(ToOwned::to_owned).collect(),
    }
}

/// What tells us to stop: Ctrl-C, or whoever looks after services.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub fn listen() -> Result<Self, CommandError> {
        let listen = |kind| {
            signal(kind).map_err(|error| CommandError::error(format!("can't listen for signals: {error}")))
        };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    pub async fn next(&mut self) {
        let came = tokio::select! {
            came = self.interrupt.recv() => came,
            came = self.terminate.recv() => came,
        };
        if came.is_none() {
            pending::<()>().await;
        }
    }

    /// Stops in good order, or at once if told a second time.
    pub async fn stop(&mut self, stopping: impl Future<Output = ()>) -> Exit {
        tracing::info!("stopping; a second signal stops at once");
        tokio::select! {
            biased;
            () = stopping => Exit::Ok,
            () = self.next() => Exit::Interrupted,
        }
    }
}

/// Why a worker may end by itself.
pub fn superseded() -> CommandError {
    CommandError::error("the worker stopped: another one has registered under its name")
        .with_remedy("give each worker a name of its own with --worker-name")
}
