//! Who held each run when, as the log tells it: attempts follow one another without a gap, one at a time, and only
//! the one that is under way finishes steps.

use std::collections::BTreeMap;

use ostler_kernel::{Event, EventBody, RunId, StepOutcome, TaskId, run::AttemptEnd};

#[derive(Default)]
pub struct Attempts {
    lives: BTreeMap<RunId, Life>,
    runs: BTreeMap<TaskId, RunId>,
    /// Attempts whose worker was silent for the length of a lease.
    pub n_lost: u64,
    /// Attempts that were given back, or given up by a worker that started again.
    pub n_yielded: u64,
}

/// One run, from its first claim to its end.
#[derive(Debug, Clone)]
pub struct Life {
    pub task: TaskId,
    /// Where in the log it was first claimed, and where it ended.
    pub began: Option<u64>,
    pub ended: Option<u64>,
    pub attempt: u32,
    is_held: bool,
}

impl Attempts {
    pub fn lives(&self) -> &BTreeMap<RunId, Life> {
        &self.lives
    }

    /// Follows the log by one event; says what is wrong with it, if anything is.
    pub fn follow(&mut self, event: &Event) -> Option<String> {
        match &event.body {
            EventBody::TaskAccepted { run, .. } => self.queued(event, *run),
            // The first message comes with its task.
            EventBody::MessageSent { message, .. } if message.hop == 1 => None,
            EventBody::MessageSent { run, .. } => self.queued(event, *run),
            EventBody::RunEnded { run, .. } => self.ended(event, *run),
            EventBody::AttemptStarted { run, attempt, .. } => {
                let life = self.lives.get_mut(run)?;
                let problem = (life.is_held || *attempt != life.attempt + 1).then(|| {
                    format!(
                        "attempt {attempt} of {run} began behind attempt {} (held: {})",
                        life.attempt, life.is_held
                    )
                });
                life.began.get_or_insert(event.position);
                (life.attempt, life.is_held) = (*attempt, true);
                problem
            }
            // Closed by who cancelled the run, whether it was held or not; nobody finishes it any more.
            EventBody::StepFinished(step) if step.outcome == StepOutcome::Interrupted => {
                let life = self.lives.get(&step.run)?;
                life.ended.is_some().then(|| format!("{} had ended, and a step of it was closed", step.run))
            }
            EventBody::StepFinished(step) => self.held(step.run, step.attempt, "finished a step"),
            EventBody::AttemptEnded { run, attempt, end } => {
                let problem = self.held(*run, *attempt, "ended");
                self.lives.get_mut(run)?.is_held = false;
                match end {
                    AttemptEnd::Lost => self.n_lost += 1,
                    AttemptEnd::Yielded => self.n_yielded += 1,
                    AttemptEnd::Error { .. } => {}
                }
                problem
            }
            EventBody::TaskEnded { .. } => self.ended(event, *self.runs.get(&event.task)?),
            EventBody::RunRetrying { .. }
            | EventBody::RunWaiting { .. }
            | EventBody::RunSleeping { .. }
            | EventBody::RunReady { .. }
            | EventBody::InputAccepted { .. }
            | EventBody::ResourceChanged(_)
            | EventBody::Unknown(_) => None,
        }
    }

    fn queued(&mut self, event: &Event, run: RunId) -> Option<String> {
        let life = Life { task: event.task, began: None, ended: None, attempt: 0, is_held: false };
        self.runs.insert(event.task, run);
        self.lives.insert(run, life).map(|_| format!("{run} was queued twice"))
    }

    fn ended(&mut self, event: &Event, run: RunId) -> Option<String> {
        let life = self.lives.get_mut(&run)?;
        let ended_before = life.ended.replace(event.position);
        life.is_held = false;
        ended_before.map(|_| format!("{run} of {} ended twice", event.task))
    }

    fn held(&self, run: RunId, attempt: u32, what: &str) -> Option<String> {
        let life = self.lives.get(&run)?;
        (!life.is_held || life.attempt != attempt).then(|| {
            format!(
                "attempt {attempt} of {run} {what}, and attempt {} is present (held: {})",
                life.attempt, life.is_held
            )
        })
    }
}
