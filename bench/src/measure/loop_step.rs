//! CPU of one loop step beside the model and the store: the real loop between a gateway and a toolbox that
//! answer at once, and a journal that writes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use futures_util::stream;
use ostler_agent::llm::{Completion, Finish, Gateway, ModelRequest, Part, Parts, Shown};
use ostler_agent::tools::{ToolRequest, Toolbox};
use ostler_agent::{Departure, React, RunStart, Runner, RunnerPort, Stopped};
use ostler_kernel::run::end::Leave;
use ostler_kernel::run::journal::Progress;
use ostler_kernel::task::input::Input;
use ostler_kernel::{Block, Failure, Runtime, Usage};
use ostler_link::Assignment;

use super::Bench;
use crate::machine::WeatherWatch;
use crate::office::Office;
use crate::report::{Bar, Figure, Report};
use crate::samples::micros;

/// Tool calls of one run; with the model calls around them eleven steps.
const ROUNDS: usize = 5;

pub fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let watch = WeatherWatch::begin()?;
    let folder = bench.settings.data.join("loop");
    let (cpu, n_steps) = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let port = QuickPort::open(&folder).await?;
                run_loops(&port, bench.settings.loops).await
            })
        });
        thread.join().ok().context("the loop's thread panicked")?
    })?;
    let per_step = micros(cpu) / n_steps.max(1) as f64;
    let figure = Figure::new("CPU of a loop step beside model and store", per_step, "µs", watch.end()?)
        .beside(micros(bench.floors.round_trip.p50()), "round trip p50")
        .bar(Bar::Under(100.0));
    report.add(figure);
    report.summarize(format!("loop {per_step:.1} µs"));
    Ok(())
}

/// The CPU time of this thread, on which all of it happens, and the steps it was spent on.
async fn run_loops(port: &QuickPort, n_loops: usize) -> anyhow::Result<(Duration, u64)> {
    for _ in 0..n_loops / 10 {
        React::default().run(port).await?;
    }
    port.n_steps.store(0, Ordering::Relaxed);
    let before = thread_cpu()?;
    for _ in 0..n_loops {
        React::default().run(port).await?;
    }
    Ok((thread_cpu()?.saturating_sub(before), port.n_steps.load(Ordering::Relaxed)))
}

/// By the scheduler's own account, in nanoseconds.
fn thread_cpu() -> anyhow::Result<Duration> {
    // The account is brought up to date when the thread gives way; without it, it lags by up to a tick.
    std::thread::yield_now();
    let account =
        std::fs::read_to_string("/proc/thread-self/schedstat").context("no account of the thread")?;
    let nanoseconds = account.split(' ').next().and_then(|number| number.parse().ok());
    nanoseconds.map(Duration::from_nanos).context("the account of the thread has no time")
}

/// Starts every run at the same place and forgets what it journals.
struct QuickPort {
    start: RunStart,
    runtime: Arc<dyn Runtime>,
    n_steps: AtomicU64,
}

impl QuickPort {
    async fn open(folder: &std::path::Path) -> anyhow::Result<Self> {
        let mut office = Office::open(folder, 1).await?;
        let assignment = office.assignments.pop().context("no run")?;
        let Assignment { run, plan, context, open_steps, consumed_input, .. } = assignment;
        let start = RunStart { run, plan, context, open_steps, consumed_input };
        Ok(Self { start, runtime: Arc::clone(&office.runtime), n_steps: AtomicU64::new(0) })
    }

    fn count(&self, progress: &Progress) {
        self.n_steps.fetch_add(progress.done.len() as u64, Ordering::Relaxed);
    }
}

#[async_trait]
impl RunnerPort for QuickPort {
    fn start(&self) -> &RunStart {
        &self.start
    }

    async fn journal(&self, progress: Progress) -> Result<(), Stopped> {
        self.count(&progress);
        Ok(())
    }

    async fn leave(&self, progress: Progress, leave: Leave) -> Result<Departure, Stopped> {
        self.count(&progress);
        match leave {
            Leave::Ok { .. } => Ok(Departure::Left),
            Leave::Failed { .. } | Leave::Wait { .. } | Leave::Sleep { .. } | Leave::GiveBack => {
                Err(Stopped(format!("the run did not succeed: {leave:?}")))
            }
        }
    }

    async fn inputs(&self, _after: u64) -> Result<Vec<Input>, Stopped> {
        Ok(Vec::new())
    }

    fn emit(&self, _step: u32, _offset: u64, _shown: Shown<'_>) {}

    fn is_stopping(&self) -> bool {
        false
    }

    fn is_held(&self) -> bool {
        true
    }

    fn runtime(&self) -> &dyn Runtime {
        &*self.runtime
    }

    fn gateway(&self) -> &dyn Gateway {
        &AtOnce
    }

    fn toolbox(&self) -> &dyn Toolbox {
        &AtOnce
    }
}

struct AtOnce;

impl Gateway for AtOnce {
    fn stream(&self, request: ModelRequest) -> Parts {
        // The question, then a call and its result in every round.
        let (block, finish) = match request.messages.len() / 2 < ROUNDS {
            true => {
                let (id, arguments) =
                    (format!("call_{}", request.messages.len()), r#"{"q":"what?"}"#.to_owned());
                (Block::ToolCall { id, name: "echo".to_owned(), arguments }, Finish::ToolCalls)
            }
            false => (Block::Text { text: "The answer is forty-two.".to_owned() }, Finish::Stop),
        };
        let usage = Usage { input_tokens: 100, output_tokens: 20, estimated: false, ..Usage::default() };
        let completion =
            Completion { blocks: vec![block], finish, usage: Some(usage), identity: Default::default() };
        Box::pin(stream::iter([Ok(Part::Done(completion))]))
    }
}

#[async_trait]
impl Toolbox for AtOnce {
    async fn call(&self, request: ToolRequest) -> Result<String, Failure> {
        Ok(request.arguments.to_string())
    }
}
