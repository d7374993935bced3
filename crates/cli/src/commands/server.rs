//! `ostler server`: a server alone, for workers that dial it.

use super::serving::{self, Collector, Signals, StartArguments};
use crate::{
    app::App,
    error::CommandError,
    exit::Exit,
    settings::{ServerFlags, Settings},
};

/// Starts a server without a worker; `ostler worker` dials it
///
/// It takes requests, keeps tasks and shows them; agents run where workers are. Several servers may share one
/// PostgreSQL: any request and any worker may go to any of them. Ctrl-C or SIGTERM stops it: requests under way get
/// five seconds to finish, workers go on and dial again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    flags: ServerFlags,

    #[command(flatten)]
    start: StartArguments,

    /// Say nothing but warnings
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  ostler server
  ostler server --listen 0.0.0.0:7070 --tls-certificate server.pem \\
      --tls-key server.key
  ostler server --store postgres://ostler@db.example/ostler \\
      --token-file api.token --worker-token-file worker.token";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let settings = Settings::gather(&arguments.flags.0, &app.written.data_folder())?;
    serving::start_logging(&settings, arguments.quiet, app)?;
    let mut signals = Signals::listen()?;
    let collector = Collector::from_environment(app)?;
    let server = serving::start_server(&settings, &arguments.start, &collector.telemetry, app).await?;
    let exporter = collector.start(server.figures(), app)?;
    tracing::info!(url = server.url(), "ready");
    signals.next().await;
    let stopping = async {
        exporter.shutdown().await;
        server.shutdown().await;
    };
    Ok(signals.stop(stopping).await)
}
