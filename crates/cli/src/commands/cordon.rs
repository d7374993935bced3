//! `ostler cordon`, `uncordon` and `drain`: what is decided about workers.

use std::time::Duration;

use ostler_client::{Client, WorkerDecision};
use ostler_spec::{GoDuration, Kind};

use super::missing::or_explain;
use crate::{app::App, error::CommandError, exit::Exit};

/// Gives workers no new runs; those they have go on
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ostler cordon gpu-1 gpu-2")]
pub struct CordonArguments {
    #[arg(required = true, value_name = "WORKER")]
    workers: Vec<String>,
}

/// Gives cordoned or drained workers new runs again
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ostler uncordon gpu-1")]
pub struct UncordonArguments {
    #[arg(required = true, value_name = "WORKER")]
    workers: Vec<String>,
}

/// Empties workers: no new runs, and those they have are given back as their steps end
///
/// Runs go on elsewhere behind the step they were at; nothing is lost or done twice. Waits until the workers hold
/// nothing any more.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  ostler drain gpu-1\n  ostler drain gpu-1 --timeout 10m\n  ostler drain gpu-1 --no-wait"
)]
pub struct DrainArguments {
    #[arg(required = true, value_name = "WORKER")]
    workers: Vec<String>,

    /// Don't wait until they are empty
    #[arg(long)]
    no_wait: bool,

    /// Wait no longer than this
    #[arg(long, value_name = "DURATION", default_value = "5m", conflicts_with = "no_wait")]
    timeout: GoDuration,
}

/// Between two looks at a worker that is being emptied.
const PAUSE: Duration = Duration::from_millis(500);

pub async fn cordon(arguments: CordonArguments, app: &App) -> Result<Exit, CommandError> {
    decide(app, &app.client()?, &arguments.workers, WorkerDecision::Cordon, "cordoned").await
}

pub async fn uncordon(arguments: UncordonArguments, app: &App) -> Result<Exit, CommandError> {
    decide(app, &app.client()?, &arguments.workers, WorkerDecision::Uncordon, "open").await
}

pub async fn drain(arguments: DrainArguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    decide(app, &client, &arguments.workers, WorkerDecision::Drain, "draining").await?;
    if arguments.no_wait {
        return Ok(Exit::Ok);
    }
    let deadline = app.runtime.monotonic() + arguments.timeout.get();
    for name in &arguments.workers {
        let mut told = None;
        loop {
            let runs = client.worker(name).await?.status.current_tasks;
            if runs == 0 {
                break;
            }
            if told != Some(runs) {
                app.output.note(format!("worker/{name} still holds {runs}"));
                told = Some(runs);
            }
            if app.runtime.monotonic() >= deadline {
                let message = format!("worker {name:?} still holds {runs} after {}", arguments.timeout);
                return Err(CommandError::error(message).with_remedy(
                    "a long step is under way; wait for it, or stop the worker: it gives its runs back after ten seconds",
                ));
            }
            app.runtime.sleep(PAUSE).await;
        }
        app.output.data(format!("worker/{name} drained"))?;
    }
    Ok(Exit::Ok)
}

async fn decide(
    app: &App,
    client: &Client,
    workers: &[String],
    decision: WorkerDecision,
    word: &str,
) -> Result<Exit, CommandError> {
    for name in workers {
        let worker = client.decide(name, decision).await;
        let worker = or_explain(client, Kind::Worker, name, worker).await?;
        app.output.data(format!("worker/{} {word}", worker.metadata.name))?;
    }
    Ok(Exit::Ok)
}
