//! The ReAct loop: ask the model, call the tools it names, tell it what they gave, until it answers.
//!
//! Every model and tool call is a journaled step. The loop goes on wherever its journal ends: at open tool
//! calls, or at the next model call.

mod model;
mod tools;

use std::time::Duration;

use async_trait::async_trait;
use ostler_kernel::{
    Entry, ErrorClass, Failure, Runtime, Step, StepId, StepKind, StepOutcome, Usage,
    run::{
        end::Leave,
        journal::{Progress, StepDone},
    },
    runtime::timeout,
    step::StepState,
};

use crate::port::{Departure, RunStart, Runner, RunnerPort, Stopped};

pub struct React;

#[async_trait]
impl Runner for React {
    async fn run(&self, port: &dyn RunnerPort) -> Result<(), Stopped> {
        let start = port.start();
        let Some(limit) = start.plan.limits.timeout_ms else {
            return Loop::resume(port).run().await;
        };
        let left = Duration::from_millis(limit.saturating_sub(start.run.worked_ms));
        match timeout(port.runtime(), left, Loop::resume(port).run()).await {
            Ok(result) => result,
            Err(_) => {
                let failure =
                    Failure::timeout("run_timeout", format!("the run worked longer than {limit} ms"));
                let progress = Progress { worked_ms: millis(left), ..Progress::default() };
                port.leave(progress, Leave::Failed { failure }).await.map(|_| ())
            }
        }
    }
}

/// One attempt at a run, between two journal writes.
struct Loop<'a> {
    port: &'a dyn RunnerPort,
    start: &'a RunStart,
    /// What the model sees, kept in step with the session.
    transcript: Vec<Entry>,
    open: Vec<Step>,
    next_step: u32,
    model_calls: u32,
    usage: Usage,
    consumed_input: u64,
    /// When time was last accounted for.
    clock: Duration,
}

/// Where the loop goes next.
enum Next {
    Continue,
    Left,
}

impl<'a> Loop<'a> {
    fn resume(port: &'a dyn RunnerPort) -> Self {
        let start = port.start();
        Self {
            port,
            start,
            transcript: start.context.clone(),
            open: start.open_steps.clone(),
            next_step: start.run.next_step,
            model_calls: start.run.model_calls,
            usage: start.run.usage,
            consumed_input: start.consumed_input,
            clock: port.runtime().monotonic(),
        }
    }

    async fn run(mut self) -> Result<(), Stopped> {
        loop {
            let next = match self.open.first().map(|step| &step.kind) {
                Some(StepKind::Tool { .. }) => self.call_tools().await?,
                Some(StepKind::Model { .. } | StepKind::Wait) => self.ask_model().await?,
                // A journal always ends with a step that is open; this one comes from elsewhere.
                None => {
                    let model = StepKind::Model { model: self.start.plan.model.model.clone() };
                    self.journal(Progress { open: vec![model], ..Progress::default() }).await?;
                    Next::Continue
                }
            };
            if matches!(next, Next::Left) {
                return Ok(());
            }
        }
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
                    progress.open.push(StepKind::Model { model: self.start.plan.model.model.clone() });
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
        for done in &progress.done {
            self.open.retain(|step| step.id != done.step.id);
            if let StepState::Done { usage, .. } = &done.step.state {
                self.usage.add(usage);
            }
            if matches!(done.step.kind, StepKind::Model { .. }) {
                self.model_calls += 1;
            }
        }
        for kind in progress.open {
            let id = StepId { run: self.start.run.id, index: self.next_step };
            self.next_step += 1;
            self.open.push(Step::open(id, kind, self.start.run.attempt, now));
        }
        if let Some(upto) = progress.consumed {
            self.consumed_input = upto;
        }
        self.transcript.extend(progress.entries);
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
    StepDone { step, preview: preview(text) }
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
