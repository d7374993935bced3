//! What the commands that stay have in common: a server from its settings, logging, and the signals that end them.

use std::{
    env,
    future::pending,
    path::{Path, PathBuf},
    sync::Arc,
};

use ostler_server::{Server, ServerConfig, StartError, StoreAddress};
use ostler_worker::{
    Offer, Prices,
    telemetry::{Config, Exporter, Source, Telemetry},
};
use rustix::process::{Pid, Resource, Rlimit, setrlimit, test_kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    app::App,
    config::{ServerFile, read_server},
    error::{CommandError, with_causes},
    exit::Exit,
    logging,
    settings::{
        Settings, server,
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
        data: app.written.data_folder(),
        redactor: app.redactor.clone(),
        providers: model_providers(app)?,
        telemetry: telemetry.clone(),
        restore: arguments.restore.clone(),
        force_restore: arguments.force,
        ..server::config(settings)
    };
    let had_store = config.data.join("store.db").exists();
    let (data, store) = (config.data.clone(), config.store.clone());
    ostler_server::start(config, Arc::clone(&app.runtime)).await.map_err(|error| {
        if let Some(url) = up_already(&error, &data) {
            return CommandError::error(format!("this folder's server is up already at {url}")).with_remedy(
                "use it as it is, or stop it first; --data names another folder, --listen another address",
            );
        }
        let said = CommandError::error(with_causes(&error));
        match error {
            StartError::DataInUse { .. } => {
                said.with_remedy("stop that one, or choose another folder with --data")
            }
            StartError::Restore(_) if is_missing(arguments.restore.as_deref()) => {
                said.with_remedy("--restore names a file that `ostler backup FILE` wrote; there is none of that name")
            }
            StartError::Restore(_) if had_store && !arguments.force => {
                said.with_remedy("--force puts the backup in its place, and keeps the old store beside it")
            }
            StartError::AddressInUse { .. } => {
                said.with_remedy("--listen 127.0.0.1:7071 is another one, --listen 127.0.0.1:0 takes any free port")
            }
            StartError::Store(_) | StartError::Read(_) => said.with_remedy(store_remedy(&store)),
            StartError::Data { .. } if data.exists() && !data.is_dir() => {
                said.with_remedy("that is a file: --data names a folder, which is made if it is not there")
            }
            StartError::WrongSecretKey { .. } => said.with_remedy(
                "give --secret-key-file the key of the server that kept them, or copy it to this data folder: it is in the \
                 file `secret-key` of its own, or wherever its --secret-key-file is",
            ),
            StartError::NotLoopback { .. }
            | StartError::SecretKey { .. }
            | StartError::Token { .. }
            | StartError::Restore(_)
            | StartError::Quotas(_)
            | StartError::Listen { .. }
            | StartError::Data { .. }
            | StartError::Tls(_) => match server::remedy(&error) {
                Some(remedy) => said.with_remedy(remedy),
                None => said,
            },
        }
    })
}

/// Where the server of this folder is, if it is what stands in the way of another one.
fn up_already(error: &StartError, data: &Path) -> Option<String> {
    let ServerFile { url, pid } = read_server(data).ok()?;
    // One that was killed leaves its file behind.
    let lives = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let lives = lives.is_some_and(|pid| test_kill_process(pid).is_ok());
    let is_it = match error {
        StartError::AddressInUse { listen } => url.ends_with(&format!(":{}", listen.port())),
        StartError::DataInUse { holder, .. } => pid.is_some_and(|pid| *holder == pid.to_string()),
        _ => false,
    };
    (lives && is_it).then_some(url)
}

fn is_missing(file: Option<&Path>) -> bool {
    file.is_some_and(|file| !file.exists())
}

/// What to do about a store that doesn't open.
fn store_remedy(store: &StoreAddress) -> &'static str {
    match store {
        StoreAddress::Postgres(_) => {
            "is the database running, and can it be reached from here with that address, user and password? `ostler \
             config show` tells where the address comes from"
        }
        StoreAddress::DataFolder | StoreAddress::Sqlite(_) => {
            "the file is damaged, is no store, or can't be written: put a backup in its place with --restore FILE \
             --force, which keeps it beside, or move it away to begin anew"
        }
    }
}

/// Those that the workers of this version have.
fn model_providers(app: &App) -> Result<Vec<String>, CommandError> {
    let names = ostler_worker::model_providers(Arc::clone(&app.runtime));
    names.map_err(|error| CommandError::error(with_causes(&error)))
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
        ..Offer::default()
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
    CommandError::new(Exit::Superseded, "the worker stopped: another one has registered under its name")
        .with_remedy(
            "give each worker a name of its own: leave out --worker-name (OSTLER_WORKER_NAME), and on a copy of another \
             machine remove the file `worker-name` of its data folder; or stop the other one, and start this one again",
        )
}
