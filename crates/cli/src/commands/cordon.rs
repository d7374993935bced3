//! `ostler cordon`, `uncordon` and `drain`: what is decided about workers.

use std::time::Duration;

use ostler_client::{Client, ClientError, HeldTask, WorkerDecision, WorkerStatus, WorkerView};
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
/// nothing any more, also while servers are restarted; ends with 8 where that takes longer than --timeout.
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

/// So many tasks are named.
const NAMED: usize = 3;

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
        wait_until_empty(app, &client, name, deadline).await.map_err(|last| match last {
            Last::Held(tasks) => still_held(name, &tasks, &arguments.timeout),
            Last::Unknown(error) if error.may_pass() => silent(name, &error, &arguments.timeout),
            Last::Unknown(error) => error.into(),
        })?;
        app.output.done(format!("worker/{name} drained"))?;
    }
    Ok(Exit::Ok)
}

/// What was last seen of a worker that is not empty, as far as anybody knows.
enum Last {
    /// How many tasks, and which.
    Held(String),
    Unknown(ClientError),
}

/// A server that can't be asked for a while, because it is started anew, ends no waiting.
async fn wait_until_empty(app: &App, client: &Client, name: &str, deadline: Duration) -> Result<(), Last> {
    let mut told = String::new();
    loop {
        let last = match client.worker(name).await {
            Ok(WorkerView { status, .. }) if status.current_tasks == 0 => return Ok(()),
            Ok(worker) => Last::Held(held(&worker.status)),
            Err(error) if error.may_pass() => Last::Unknown(error),
            Err(error) => return Err(Last::Unknown(error)),
        };
        let line = match &last {
            Last::Held(tasks) => format!("still holds {tasks}"),
            Last::Unknown(error) => format!("can't be looked at, trying on: {error}"),
        };
        if told != line {
            app.output.note(format!("worker/{name} {line}"));
            told = line;
        }
        if app.runtime.monotonic() >= deadline {
            return Err(last);
        }
        app.runtime.sleep(PAUSE).await;
    }
}

/// How many, and the first of their names where the server tells them.
fn held(status: &WorkerStatus) -> String {
    let of = |task: &HeldTask| format!("{}/{}", task.namespace, task.name);
    let mut names: Vec<_> = status.tasks.iter().take(NAMED).map(of).collect();
    if names.is_empty() {
        return status.current_tasks.to_string();
    }
    let more = status.current_tasks.saturating_sub(names.len());
    names.extend((more > 0).then(|| format!("{more} more")));
    format!("{}: {}", status.current_tasks, names.join(", "))
}

fn still_held(name: &str, tasks: &str, timeout: &GoDuration) -> CommandError {
    let message = format!("after {timeout} worker {name:?} still holds {tasks}");
    CommandError::new(Exit::TimedOut, message).with_remedy(
        "a long step is under way; wait for it, or stop the worker: it gives its runs back after ten seconds",
    )
}

fn silent(name: &str, error: &ClientError, timeout: &GoDuration) -> CommandError {
    let message = format!("after {timeout} nobody knows whether worker {name:?} is empty: {error}");
    CommandError::new(Exit::TimedOut, message)
        .with_remedy("it empties itself meanwhile; drain it again to see")
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
        app.output.done(format!("worker/{} {word}", worker.metadata.name))?;
    }
    Ok(Exit::Ok)
}
