//! `ostler workers`: who runs the agents.

use ostler_client::WorkerView;

use crate::{
    app::App,
    clock,
    error::CommandError,
    exit::Exit,
    format::Format,
    paint::Tone,
    table::{Cell, Table},
};

/// Lists the workers: which are there, what they can do, how much they have to do
///
/// A worker is Ready while it gives signs of life, NotReady once it was silent for the length of a lease; its runs are
/// then done elsewhere. Pending means that this server has not watched it for long enough.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// How to show them
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  ostler workers
  ostler workers -o wide
  ostler describe worker gpu-1
  ostler drain gpu-1                  # before its machine is taken away";

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let workers = app.client()?.workers().await?;
    if workers.is_empty() && arguments.output.is_table() {
        app.output.note("no workers; `ostler worker` starts one, and `ostler up` has one of its own");
        return Ok(Exit::Ok);
    }
    let name = |worker: &WorkerView| format!("worker/{}", worker.metadata.name);
    arguments.output.print(app.output, &workers, name, |wide| table(app, &workers, wide))?;
    Ok(Exit::Ok)
}

fn table(app: &App, workers: &[WorkerView], wide: bool) -> Table {
    let more = if wide { &["LABELS", "VERSION", "STARTS"][..] } else { &[] };
    let head = ["NAME", "STATUS", "RUNS", "REGION", "CAPABILITIES", "SEEN"];
    let mut table = Table::new(head.into_iter().chain(more.iter().copied()));
    for worker in workers {
        let WorkerView { metadata, spec, status } = worker;
        let runs = format!("{}/{}", status.current_tasks, spec.max_concurrent_tasks);
        let mut row: Vec<Cell> = vec![
            metadata.name.as_str().into(),
            Cell::toned(condition(worker), tone(worker)),
            runs.into(),
            spec.region.as_str().into(),
            capabilities(worker).into(),
            seen(app, worker).into(),
        ];
        if wide {
            let labels = metadata.labels.iter().map(|(key, value)| format!("{key}={value}"));
            row.push(labels.collect::<Vec<_>>().join(",").into());
            row.push(status.version.as_str().into());
            row.push(status.incarnation.to_string().into());
        }
        table.row(row);
    }
    table
}

/// Its phase, and what was decided about it.
fn condition(worker: &WorkerView) -> String {
    match worker.status.standing.as_str() {
        "open" => worker.status.phase.clone(),
        standing => format!("{},{standing}", worker.status.phase),
    }
}

fn tone(worker: &WorkerView) -> Tone {
    match worker.status.phase.as_str() {
        "Ready" if worker.status.standing == "open" => Tone::Good,
        "NotReady" => Tone::Bad,
        _ => Tone::Quiet,
    }
}

fn capabilities(worker: &WorkerView) -> String {
    let of = &worker.spec.capabilities;
    let gpu = of.gpu.then_some("gpu");
    gpu.into_iter().chain(of.others.iter().map(String::as_str)).collect::<Vec<_>>().join(",")
}

fn seen(app: &App, worker: &WorkerView) -> String {
    let at = worker.status.last_heartbeat.as_deref().and_then(clock::parse);
    at.map_or_else(String::new, |at| format!("{} ago", clock::age(at, app.now_ms())))
}
