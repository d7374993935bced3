//! `ostler worker`: a worker alone, which dials a server.

mod name;

use std::{env, fs, net::SocketAddr, path::PathBuf, sync::Arc};

use ostler_worker::{Dial, DialError, Equipment, RemotePort, ServerAddress, WorkerConfig};

use super::serving::{self, Collector, Signals};
use crate::{
    app::App,
    error::{CommandError, with_causes},
    exit::Exit,
    settings::{Settings, WORKER_TOKEN, WorkerFlags, network, table},
};

/// Starts a worker that dials a server and runs agents for it
///
/// It holds no credentials of a database: all it knows is a server's address and a token for workers, which the
/// server keeps in the file `worker-token` of its data folder. When the server restarts or can't be reached, the
/// worker goes on with what it runs for as long as its lease lasts, and dials again. Ctrl-C or SIGTERM stops it:
/// steps under way get ten seconds to finish, what is left goes on elsewhere.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The token for workers; others on this machine may see it here, OSTLER_WORKER_TOKEN or a file hides it
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,

    #[command(flatten)]
    flags: WorkerFlags,

    /// Say nothing but warnings
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  ostler worker                               # beside a server in this folder
  ostler worker --server https://ostler.example --worker-token-file worker.token
  ostler worker --servers http://10.0.0.1:7070,http://10.0.0.2:7070 \\
      --region eu --capabilities gpu --slots 8";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let data = app.written.data_folder();
    let settings = Settings::gather(&arguments.flags.0, &data)?;
    serving::start_logging(&settings, arguments.quiet, app)?;
    let network = network::config(&settings, &app.redactor)?;
    let mut signals = Signals::listen()?;
    let (servers, token) = (servers(&settings, app)?, token(arguments.token, &settings, app)?);
    app.redactor.hide_for_good(&token);
    // Kept as long as the worker runs: nobody else may have its name meanwhile.
    let name = name::of_worker(settings.text(&table::WORKER_NAME), &data, &*app.runtime)?;
    let dial = Dial {
        servers,
        token,
        worker: name.text().to_owned(),
        ca: settings.text(&table::CA).map(PathBuf::from),
    };
    let port = RemotePort::new(dial, Arc::clone(&app.runtime))
        .map_err(|error| CommandError::error(with_causes(&error)))?;
    if let Err(error) = port.connect().await {
        kept_out(error)?;
    }
    let collector = Collector::from_environment(app)?;
    let redactor = app.redactor.clone();
    let equipment = Equipment::standard(Arc::new(port), Arc::clone(&app.runtime), network, redactor)
        .map_err(|error| CommandError::error(with_causes(&error)))?
        .with_prices(serving::prices(&settings)?)
        .telling(collector.telemetry.clone());
    let config = WorkerConfig { name: name.text().to_owned(), offer: serving::offer(&settings) };
    let exporter = collector.start(collector.telemetry.source(), app)?;
    let figures = show_figures(&settings, &collector, app).await?;
    if let Some(address) = figures {
        tracing::info!(url = format!("http://{address}/metrics"), "showing figures");
    }
    let (name, slots) = (config.name.clone(), config.offer.slots);
    let mut worker = ostler_worker::start(config, equipment);
    let registered = worker.registered();
    let ended = async {
        tokio::join!(say_ready(registered, &name, slots), worker.ended());
    };
    tokio::select! {
        biased;
        () = signals.next() => {}
        () = ended => return Err(serving::superseded()),
    }
    let stopping = async {
        worker.stop().await;
        exporter.shutdown().await;
    };
    Ok(signals.stop(stopping).await)
}

/// Not before a server knows of it: until then it dials, and nobody gives it anything to do.
async fn say_ready(registered: impl Future<Output = bool>, worker: &str, slots: u32) {
    if registered.await {
        tracing::info!(worker, slots, "ready");
    }
}

/// Waiting helps where nobody answers, and nowhere else.
fn kept_out(error: DialError) -> Result<(), CommandError> {
    let message = error.to_string();
    match error {
        DialError::Unreachable { server, reason } => {
            tracing::warn!(server, reason, "no server can be reached yet; dialling on");
            Ok(())
        }
        DialError::Distrusted { .. } => Err(CommandError::error(message).with_remedy(
            "--ca names a file with who vouches for it; the server's name has to be in its certificate",
        )),
        DialError::OtherVersion { .. } => Err(CommandError::error(message).with_remedy(
            "`ostler version` tells what is installed; servers are brought up to date first, then workers",
        )),
        DialError::Refused { .. } => Err(CommandError::new(Exit::Unauthorized, message)
            .with_remedy("the server's token for workers is in the file `worker-token` of its data folder")),
    }
}

/// The address where somebody wants to see them.
async fn show_figures(
    settings: &Settings,
    collector: &Collector,
    app: &App,
) -> Result<Option<SocketAddr>, CommandError> {
    let Some(listen) = settings.get::<SocketAddr>(&table::METRICS_LISTEN) else { return Ok(None) };
    let source = collector.telemetry.source();
    let shown = ostler_server::serve_figures(listen, source, Arc::clone(&app.runtime)).await;
    shown.map(Some).map_err(|error| {
        CommandError::error(format!("can't listen at {listen}: {error}"))
            .with_remedy("choose another address with --metrics-listen; port 0 takes any free one")
    })
}

/// Those that were named, by flags first; or else the one that runs in this folder.
fn servers(settings: &Settings, app: &App) -> Result<Vec<ServerAddress>, CommandError> {
    let many = || settings.text(&table::SERVERS).map(str::to_owned);
    let many_by_flag = || many().filter(|_| settings.is_by_flag(&table::SERVERS));
    let named = app.written.flagged_server().or_else(many_by_flag).or_else(|| app.written.named_server());
    let named = match named.or_else(many) {
        Some(servers) => servers,
        None => app.written.server_here()?,
    };
    let parse = |part: &str| {
        part.parse()
            .map_err(|error| CommandError::new(Exit::Usage, format!("{part:?} is no server: {error}")))
    };
    table::parts(&named).map(parse).collect()
}

fn token(given: Option<String>, settings: &Settings, app: &App) -> Result<String, CommandError> {
    let given = given.or_else(|| settings.held_by(WORKER_TOKEN, &table::WORKER_TOKEN_FILE));
    if let Some(token) = given.filter(|token| !token.trim().is_empty()) {
        return Ok(token.trim().to_owned());
    }
    let file = settings.text(&table::WORKER_TOKEN_FILE).map(PathBuf::from);
    let path = file.unwrap_or_else(|| app.written.data_folder().join("worker-token"));
    let token = fs::read_to_string(&path).map_err(|error| {
        let message = format!("no token: can't read {}: {error}", path.display());
        CommandError::new(Exit::Unauthorized, message)
            .with_remedy("set OSTLER_WORKER_TOKEN, or name a file with --worker-token-file")
    })?;
    Ok(token.trim().to_owned())
}

/// What this machine calls itself.
fn host_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| env::var("HOSTNAME").ok());
    let host = host.unwrap_or_default();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = host.trim().chars().map(plain).take(40).collect();
    if name.is_empty() { "worker".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_another_version_is_told_of_versions_and_of_no_token() {
        let (server, reason) =
            ("http://s:7070".to_owned(), "this server speaks versions 7 to 9 of the link".to_owned());
        let told = |error| match kept_out(error) {
            Err(CommandError::Said(complaint)) => complaint,
            other => panic!("{other:?}"),
        };
        let other = told(DialError::OtherVersion { server: server.clone(), reason: reason.clone() });
        let remedy = other.remedy.unwrap();
        assert_eq!(other.exit, Exit::Error);
        assert!(
            other.message.contains("versions 7 to 9") && other.message.contains("s:7070"),
            "{}",
            other.message
        );
        assert!(remedy.contains("ostler version") && !remedy.contains("token"), "{remedy}");
        let refused = told(DialError::Refused { server, reason });
        assert_eq!(refused.exit, Exit::Unauthorized);
        assert!(refused.remedy.unwrap().contains("worker-token"));
    }
}
