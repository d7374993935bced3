//! `ostler up`: server and worker in one process.

use std::{
    future::pending,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use ostler_server::{Server, ServerConfig, StartError, StoreAddress};
use ostler_spec::GoDuration;
use ostler_worker::{Equipment, WorkerConfig, WorkerHandle};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    app::App,
    error::{CommandError, with_causes},
    exit::Exit,
    logging::{self, LogFormat},
    paint::Tone,
};

/// Starts everything: server and worker, with all data in one folder
///
/// Listens on this machine only. The token that clients need is made at the first start and lies in the data
/// folder, where other commands find it by themselves. Ctrl-C or SIGTERM stops it: steps under way get ten
/// seconds to finish, what is left goes on after the next start. A second signal stops it at once, and
/// nothing is lost either way.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,

    /// Runs at once
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = super::at_least_one)]
    slots: usize,

    /// A worker that is silent for so long has lost its runs
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = lease)]
    lease: GoDuration,

    /// Where tasks are kept: sqlite:PATH, or postgres://USER@HOST/DATABASE, which several servers may share
    /// (without it, store.db in the data folder)
    #[arg(long, value_name = "ADDRESS", env = "OSTLER_STORE", hide_env_values = true)]
    store: Option<StoreAddress>,

    /// Start from this backup
    #[arg(long, value_name = "FILE")]
    restore: Option<PathBuf>,

    /// Put the backup in the place of a store that is there; the old one is moved aside
    #[arg(long, requires = "restore")]
    force: bool,

    /// Say nothing but warnings
    #[arg(short, long)]
    quiet: bool,

    /// How to log, to stderr: text, or one JSON object per line
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

const EXAMPLES: &str = "\
Examples:
  ostler up
  ostler up --listen 127.0.0.1:0 --data /var/lib/ostler --log-format json
  ostler up --data ./one --store postgres://ostler@db.example/ostler
  ostler up --data ./restored --restore ostler-2026-01-31.db
  OSTLER_LOG=debug ostler up";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let default_filter = if arguments.quiet { "warn" } else { "warn,ostler=info" };
    logging::start(arguments.log_format, default_filter, app.output.terminal)?;
    // From now on a signal stops us in good order, also while we start.
    let mut signals = Signals::listen()?;
    let server = start_server(&arguments, app).await?;
    let equipment = Equipment::standard(server.worker_port(), Arc::clone(&app.runtime))
        .map_err(|error| CommandError::error(with_causes(&error)))?;
    let name = server.worker_name().to_owned();
    let worker = ostler_worker::start(WorkerConfig { name, slots: arguments.slots }, equipment);
    match arguments.log_format {
        LogFormat::Text if !arguments.quiet => say_ready(app, &server),
        LogFormat::Text | LogFormat::Json => tracing::info!(url = server.url(), "ready"),
    }
    stay_up(server, worker, &mut signals).await
}

async fn start_server(arguments: &Arguments, app: &App) -> Result<Server, CommandError> {
    let data = app.written.data_folder();
    let config = ServerConfig {
        listen: arguments.listen,
        data: data.clone(),
        store: arguments.store.clone().unwrap_or_default(),
        lease: arguments.lease.get(),
        restore: arguments.restore.clone(),
        force_restore: arguments.force,
    };
    let had_store = data.join("store.db").exists();
    ostler_server::start(config, Arc::clone(&app.runtime)).await.map_err(|error| {
        let said = CommandError::error(with_causes(&error));
        match error {
            StartError::DataInUse { .. } => {
                said.with_remedy("stop that one, or choose another folder with --data")
            }
            StartError::Restore(_) if had_store && !arguments.force => {
                said.with_remedy("--force puts the backup in its place, and keeps the old store beside it")
            }
            StartError::NotLoopback { .. } => said.with_remedy("listen on 127.0.0.1"),
            StartError::Restore(_)
            | StartError::AddressInUse { .. }
            | StartError::Listen { .. }
            | StartError::Data { .. }
            | StartError::Store(_) => said,
        }
    })
}

async fn stay_up(
    server: Server,
    mut worker: WorkerHandle,
    signals: &mut Signals,
) -> Result<Exit, CommandError> {
    let by_itself = tokio::select! {
        biased;
        () = signals.next() => false,
        _ = worker.ended() => true,
    };
    tracing::info!("stopping; a second signal stops at once");
    let stop = async {
        worker.stop().await;
        server.shutdown().await;
    };
    tokio::select! {
        biased;
        () = stop => {}
        () = signals.next() => return Ok(Exit::Interrupted),
    }
    if by_itself {
        let message = "the worker stopped: another one has registered under its name";
        return Err(CommandError::error(message));
    }
    Ok(Exit::Ok)
}

fn say_ready(app: &App, server: &Server) {
    let paint = app.output.error_paint();
    let data = app.written.data_folder();
    let data = data.canonicalize().unwrap_or(data);
    app.output.note(format!("{} {}", paint.tone(Tone::Good, "ostler is up at"), server.url()));
    app.output.note(format!("  data    {}", data.display()));
    let where_to = app.written.data().map_or_else(String::new, |_| format!(" --data {}", quoted(&data)));
    app.output.note(format!("  try it  printf '{HELLO}' | ostler{where_to} apply -f -"));
    app.output.note(format!("          ostler{where_to} run hello \"Say hello to the world.\""));
}

/// The smallest agent there is, on a model that needs no key: to be pasted into a shell, wherever that is.
const HELLO: &str = "kind: ModelEndpoint\\nmetadata: {name: mock}\\nspec: {provider: mock, default_model: mock-1}\\n\
    ---\\nkind: Agent\\nmetadata: {name: hello}\\nspec: {model_ref: mock, prompt: You greet people.}\\n";

/// As one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

/// What tells us to stop: Ctrl-C, or whoever looks after services.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> Result<Self, CommandError> {
        let listen = |kind| {
            signal(kind).map_err(|error| CommandError::error(format!("can't listen for signals: {error}")))
        };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        let came = tokio::select! {
            came = self.interrupt.recv() => came,
            came = self.terminate.recv() => came,
        };
        if came.is_none() {
            pending::<()>().await;
        }
    }
}

fn lease(text: &str) -> Result<GoDuration, String> {
    let lease = text.parse::<GoDuration>().map_err(|error| error.to_string())?;
    // Renewing every few milliseconds would be all that a worker does.
    if lease < GoDuration::from_secs(1) { Err("expected at least 1s".to_owned()) } else { Ok(lease) }
}
