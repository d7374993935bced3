//! `ostler up`: server and worker in one process.

use std::{path::Path, sync::Arc};

use ostler_server::Server;
use ostler_worker::{End, Equipment, WorkerConfig, WorkerHandle, telemetry::Exporter};

use super::serving::{self, Collector, Signals, StartArguments};
use crate::{
    app::App,
    error::{CommandError, with_causes},
    exit::Exit,
    paint::Tone,
    settings::{Settings, UpFlags, network, table},
};

/// Starts everything: server and worker, with all data in one folder
///
/// Listens on this machine only, unless told otherwise. The token that clients need is made at the first start and
/// lies in the data folder, where other commands find it by themselves. Ctrl-C or SIGTERM stops it: steps under way
/// get ten seconds to finish, what is left goes on after the next start. A second signal stops it at once, and
/// nothing is lost either way.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    flags: UpFlags,

    #[command(flatten)]
    start: StartArguments,

    /// Say nothing but warnings
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  ostler up
  ostler up --listen 127.0.0.1:0 --data /var/lib/ostler --log-format json
  ostler up --data ./one --store postgres://ostler@db.example/ostler
  ostler up --data ./restored --restore ostler-2026-01-31.db
  OSTLER_LOG=debug ostler up";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let settings = Settings::gather(&arguments.flags.0, &app.written.data_folder())?;
    serving::start_logging(&settings, arguments.quiet, app)?;
    let network = network::config(&settings, &app.redactor)?;
    // From now on a signal stops us in good order, also while we start.
    let mut signals = Signals::listen()?;
    let collector = Collector::from_environment(app)?;
    let server = serving::start_server(&settings, &arguments.start, &collector.telemetry, app).await?;
    let redactor = app.redactor.clone();
    let equipment = Equipment::standard(server.worker_port(), Arc::clone(&app.runtime), network, redactor)
        .map_err(|error| CommandError::error(with_causes(&error)))?
        .with_prices(serving::prices(&settings)?)
        .telling(collector.telemetry.clone());
    let exporter = collector.start(server.figures(), app)?;
    let name = settings.text(&table::WORKER_NAME).unwrap_or_else(|| server.worker_name()).to_owned();
    let worker = InProcess::start(WorkerConfig { name, offer: serving::offer(&settings) }, equipment);
    match settings.text(&table::LOG_FORMAT) {
        Some("text") if !arguments.quiet => say_ready(app, &server),
        _ => tracing::info!(url = server.url(), "ready"),
    }
    stay_up(server, worker, exporter, &mut signals).await
}

async fn stay_up(
    server: Server,
    mut worker: InProcess,
    exporter: Exporter,
    signals: &mut Signals,
) -> Result<Exit, CommandError> {
    let by_itself = tokio::select! {
        biased;
        () = signals.next() => false,
        () = worker.broken() => true,
    };
    server.leave();
    let stopping = async {
        worker.handle.stop().await;
        exporter.shutdown().await;
        server.shutdown().await;
    };
    match signals.stop(stopping).await {
        Exit::Ok if by_itself => Err(CommandError::error("the worker broke off")),
        exit => Ok(exit),
    }
}

/// The worker beside the server. Whoever registers under its name takes its runs, and no more: it goes on under another
/// one, and the server never notices.
struct InProcess {
    config: WorkerConfig,
    equipment: Equipment,
    handle: WorkerHandle,
}

impl InProcess {
    fn start(config: WorkerConfig, equipment: Equipment) -> Self {
        let handle = ostler_worker::start(config.clone(), equipment.clone());
        Self { config, equipment, handle }
    }

    /// Waits for what can't be mended.
    async fn broken(&mut self) {
        while self.handle.ended().await == Some(End::Superseded) {
            let name = self.another_name();
            tracing::warn!(
                taken = self.config.name,
                name,
                "another worker has registered under the name of this one, which goes on under another; give each \
                 worker a name of its own"
            );
            let config = WorkerConfig { name, offer: self.config.offer.clone() };
            self.handle = ostler_worker::start(config, self.equipment.clone());
        }
    }

    /// One that nobody has.
    fn another_name(&self) -> String {
        format!("{}-{:06x}", self.config.name, self.equipment.runtime.random() & 0xff_ffff)
    }
}

fn say_ready(app: &App, server: &Server) {
    let paint = app.output.error_paint();
    let data = app.written.data_folder();
    let data = data.canonicalize().unwrap_or(data);
    app.output.note(format!("{} {}", paint.tone(Tone::Good, "ostler is up at"), server.url()));
    app.output.note(format!("  data    {}", data.display()));
    let where_to = app.written.data().map_or_else(String::new, |_| format!(" --data {}", quoted(&data)));
    app.output.note("  try it  ostler init first-agent");
    app.output.note(format!("          ostler{where_to} apply -f first-agent"));
    app.output.note(format!("          ostler{where_to} run assistant \"Say hello to the world.\""));
}

/// As one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}
