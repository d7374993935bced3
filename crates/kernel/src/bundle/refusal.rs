//! Why a bundle did not count, as data: whoever sent it decides by it what to do next.

use serde::{Deserialize, Serialize};

use super::{Command, Expect, Write};
use crate::{RunId, SessionId, StepId, TaskId};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{command:?} refused: {reason}")]
pub struct Refusal {
    pub command: Command,
    pub reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// Something else was found than it expected.
    #[error("expected {expect:?}, found {found}")]
    Unmet { expect: Expect, found: String },
    /// What it expected holds, and yet one of its rows can't stand beside those that are there.
    #[error("{clash}")]
    Clash { clash: Clash },
    /// It takes inputs that nobody sent, or makes some untaken that were taken.
    #[error("takes the inputs of {task} up to {upto}, where {taken} of {last} are taken")]
    Inputs { task: TaskId, upto: u64, taken: u64, last: u64 },
}

/// What is in the way of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "row", rename_all = "snake_case")]
pub enum Clash {
    #[error("{id} is there already, or another task has its name or its key")]
    Task { id: TaskId },
    #[error("{id} is there already")]
    Run { id: RunId },
    #[error("{session} has another live run than {run}")]
    LiveRun { session: SessionId, run: RunId },
    #[error("{id} is there already, or another session has its key")]
    Session { id: SessionId },
    #[error("{id} was opened before, or one before it was not")]
    StepOpened { id: StepId },
    #[error("{id} is not open")]
    StepNotOpen { id: StepId },
    #[error("entry {seq} of {session} is there already, or one before it is not")]
    Entry { session: SessionId, seq: u64 },
    #[error("input {number} of {task} is there already")]
    Input { task: TaskId, number: u64 },
    #[error("someone else wrote to the log of {task} at the same time")]
    Event { task: TaskId },
}

impl Refusal {
    /// The expectation that did not hold, if it was one.
    pub fn unmet(&self) -> Option<&Expect> {
        match &self.reason {
            Reason::Unmet { expect, .. } => Some(expect),
            Reason::Clash { .. } | Reason::Inputs { .. } => None,
        }
    }
}

impl Clash {
    /// What must be in the way if this can't be written; none if nothing can be.
    pub fn of(write: &Write) -> Option<Clash> {
        match write {
            Write::NewTask(task) => Some(Clash::Task { id: task.id }),
            Write::NewRun(run) => Some(Clash::Run { id: run.id }),
            Write::Run(run) => Some(Clash::LiveRun { session: run.session, run: run.id }),
            Write::Session(session) => Some(Clash::Session { id: session.id }),
            Write::Step(step) if step.is_open() => Some(Clash::StepOpened { id: step.id }),
            Write::Step(step) => Some(Clash::StepNotOpen { id: step.id }),
            Write::Entry { session, seq, .. } => Some(Clash::Entry { session: *session, seq: *seq }),
            Write::Input(input) => Some(Clash::Input { task: input.task, number: input.number }),
            Write::Event { task, .. } => Some(Clash::Event { task: *task }),
            Write::Task(_)
            | Write::RunProgress(_)
            | Write::Consume { .. }
            | Write::Blocker(_)
            | Write::Archive { .. }
            | Write::Forget(_)
            | Write::ForgetSession { .. }
            | Write::Worker(_)
            | Write::ForgetWorker { .. }
            | Write::Renewal { .. }
            | Write::Standing { .. }
            | Write::Limit { .. }
            | Write::Resource(_)
            | Write::DeleteResource(_)
            | Write::Blob { .. }
            | Write::ForgetBlob { .. } => None,
        }
    }
}
