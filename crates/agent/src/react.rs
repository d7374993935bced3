//! The ReAct loop: ask the model, call the tools it names, tell it what they gave, until it answers.
//!
//! Every model and tool call is a journaled step. The loop goes on wherever its journal ends: at open tool
//! calls, or at the next model call.

mod answer;
mod duplicates;
mod fallback;
mod model;
mod output;
mod tally;
mod text_calls;
mod tools;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use ostler_kernel::{
    Entry, ErrorClass, Failure, Runtime, Step, StepId, StepKind, StepOutcome, Usage,
    run::{
        end::Leave,
        journal::{Progress, StepDone},
    },
    runtime::timeout,
    step::{Fallback, StepState},
};

use self::tally::Tally;
use crate::hook::{Hook, Hooks, Moment};
use crate::port::{Departure, RunStart, Runner, RunnerPort, Stopped};

/// The loop, with what is plugged into it.
#[derive(Clone, Default)]
pub struct React {
    hooks: Hooks,
}

impl React {
    /// The first of them stands outermost.
    pub fn with_hooks(hooks: Vec<Arc<dyn Hook>>) -> Self {
        Self { hooks: Hooks(hooks) }
    }
}

#[async_trait]
impl Runner for React {
    async fn run(&self, port: &dyn RunnerPort) -> Result<(), Stopped> {
        let start = port.start();
        let mut attempt = Loop::resume(port, &self.hooks);
        let Some(limit) = start.plan.limits.timeout_ms else { return attempt.run().await };
        let left = Duration::from_millis(limit.saturating_sub(start.run.worked_ms));
        let in_time = timeout(port.runtime(), left, attempt.run()).await;
        match in_time {
            Ok(result) => result,
            Err(_) => attempt.cut_off(limit).await,
        }
    }
}

/// One attempt at a run, between two journal writes.
struct Loop<'a> {
    port: &'a dyn RunnerPort,
    hooks: &'a Hooks,
    start: &'a RunStart,
    /// What the model sees, kept in step with the session.
    transcript: Vec<Entry>,
    open: Vec<Step>,
    next_step: u32,
    model_calls: u32,
    usage: Usage,
    /// Sleeps in a row before this attempt, as long as it has finished nothing.
    slept: u32,
    consumed_input: u64,
    /// The model that is asked now, if not the agent's own: it stays so to the end of the run.
    fallback: Option<Fallback>,
    /// What the model call under way has used.
    tally: Tally,
    /// When time was last accounted for.
    clock: Duration,
}

/// Where the loop goes next.
enum Next {
    Continue,
    Left,
}

impl<'a> Loop<'a> {
    fn resume(port: &'a dyn RunnerPort, hooks: &'a Hooks) -> Self {
        let start = port.start();
        Self {
            port,
            hooks,
            start,
            transcript: start.context.clone(),
            open: start.open_steps.clone(),
            next_step: start.run.next_step,
            model_calls: start.run.model_calls,
            usage: start.run.usage,
            slept: start.run.slept_in_row,
            consumed_input: start.consumed_input,
            fallback: start.run.fallback.clone(),
            tally: Tally::default(),
            clock: port.runtime().monotonic(),
        }
    }

    async fn run(&mut self) -> Result<(), Stopped> {
        loop {
            let next = match self.open.first().map(|step| &step.kind) {
                Some(StepKind::Tool { .. }) => self.call_tools().await?,
                Some(StepKind::Model { .. } | StepKind::Wait) => self.ask_model().await?,
                // A journal always ends with a step that is open; this one comes from elsewhere.
                None => {
                    let open = vec![self.next_model()];
                    self.journal(Progress { open, ..Progress::default() }).await?;
                    Next::Continue
                }
            };
            if matches!(next, Next::Left) {
                return Ok(());
            }
        }
    }

    /// Its time is over, in the middle of whatever it did. A model call under way is charged with what is known of it.
    async fn cut_off(&mut self, limit: u64) -> Result<(), Stopped> {
        let failure = Failure::timeout("run_timeout", format!("the run worked longer than {limit} ms"));
        let used = self.tally.used(|request, shown| self.counted(request, shown));
        let call = self.open.first().filter(|step| matches!(step.kind, StepKind::Model { .. })).cloned();
        let mut progress = Progress::default();
        if let (Some(step), Some(usage)) = (call, used) {
            let runtime = self.port.runtime();
            let took = runtime.monotonic().saturating_sub(self.tally.began);
            let outcome = StepOutcome::Failed { failure: failure.clone() };
            progress.done.push(done(runtime, step, outcome, took, usage, &failure.message));
        }
        self.fail(progress, failure).await.map(|_| ())
    }

    /// Journals the progress, and moves this attempt's own view past it.
    async fn journal(&mut self, mut progress: Progress) -> Result<(), Stopped> {
        progress.worked_ms = self.worked();
        self.port.journal(progress.clone()).await?;
        self.advance(progress);
        Ok(())
    }

    async fn leave(&mut self, mut progress: Progress, leave: Leave) -> Result<Next, Stopped> {
        progress.worked_ms = self.worked();
        match self.port.leave(progress.clone(), leave).await? {
            Departure::Left => Ok(Next::Left),
            Departure::InputArrived => {
                // The answer stands as part of the conversation; the model gets to see the input next.
                if !progress.done.is_empty() {
                    if progress.open.is_empty() {
                        progress.open.push(self.next_model());
                    }
                    self.journal(progress).await?;
                }
                Ok(Next::Continue)
            }
        }
    }

    async fn fail(&mut self, progress: Progress, failure: Failure) -> Result<Next, Stopped> {
        self.leave(progress, Leave::Failed { failure }).await
    }

    fn advance(&mut self, progress: Progress) {
        let now = self.port.runtime().now();
        self.tally = Tally::default();
        for done in &progress.done {
            self.open.retain(|step| step.id != done.step.id);
            let StepState::Done { outcome, usage, .. } = &done.step.state else { continue };
            self.usage.add(usage);
            if matches!(outcome, StepOutcome::Ok) {
                self.slept = 0;
            }
            if matches!((&done.step.kind, outcome), (StepKind::Model { .. }, StepOutcome::Ok)) {
                self.model_calls += 1;
            }
        }
        for kind in progress.open {
            let id = StepId { run: self.start.run.id, index: self.next_step };
            self.next_step += 1;
            if let StepKind::Model { fallback, .. } = &kind {
                self.fallback.clone_from(fallback);
            }
            self.open.push(Step::open(id, kind, self.start.run.attempt, now));
        }
        if let Some(upto) = progress.consumed {
            self.consumed_input = upto;
        }
        self.transcript.extend(progress.entries);
    }

    /// The next model call, of whichever model is asked now.
    fn next_model(&self) -> StepKind {
        fallback::step(&self.start.plan, self.fallback.clone())
    }

    /// What was said and done in this run, the progress included.
    fn past<'e>(&'e self, progress: &'e Progress) -> Vec<&'e Entry> {
        let run = self.start.run.id;
        self.transcript.iter().chain(&progress.entries).filter(|entry| entry.run == run).collect()
    }

    fn at(&self, step: u32) -> Moment<'_> {
        Moment { start: self.start, step }
    }

    /// Time since it was last accounted for.
    fn worked(&mut self) -> u64 {
        let now = self.port.runtime().monotonic();
        millis(now.saturating_sub(std::mem::replace(&mut self.clock, now)))
    }
}

/// A step as it ended, for the journal.
fn done(
    runtime: &dyn Runtime,
    mut step: Step,
    outcome: StepOutcome,
    took: Duration,
    usage: Usage,
    text: &str,
) -> StepDone {
    step.state = StepState::Done { outcome, at: runtime.now(), took_ms: millis(took), usage };
    StepDone::new(step, preview(text))
}

const PREVIEW: usize = 200;

fn preview(text: &str) -> String {
    match text.char_indices().nth(PREVIEW) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn limit(code: &str, message: String) -> Failure {
    Failure::new(ErrorClass::Limit, code, message)
}
