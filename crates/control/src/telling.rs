//! All that is told of one task beside its row: its runs, the plans they were accepted with, the end of its log, and when
//! its worker last gave a sign of life.

use std::sync::Arc;

use ostler_kernel::{Event, Run, Timestamp, plan::AgentPlan};
use ostler_store::{StoreExt, TaskRow};

use crate::{Control, ControlError};

/// Events that a task is shown with: the last ones.
const MOST_EVENTS: u64 = 2000;

#[derive(Debug, Clone, Default)]
pub struct Telling {
    /// In the order of their acceptance.
    pub runs: Vec<Run>,
    /// One for each run, as far as it is there.
    pub plans: Vec<Option<Arc<AgentPlan>>>,
    /// The end of the task's log, in order.
    pub events: Vec<Event>,
    pub heartbeat: Option<Heartbeat>,
}

/// A sign of life of the worker that holds a run, by this server's calendar. Nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    pub last: Timestamp,
    /// Without another, its runs are others' from then on.
    pub lease_until: Timestamp,
}

impl Telling {
    /// The runs, each with its plan.
    pub fn planned(&self) -> impl Iterator<Item = (&Run, Option<&AgentPlan>)> {
        let plans = self.plans.iter().map(Option::as_deref).chain(std::iter::repeat(None));
        self.runs.iter().zip(plans)
    }

    /// The run that a worker holds.
    pub fn held(&self) -> Option<&Run> {
        self.runs.iter().find(|run| run.lease().is_some())
    }
}

impl Control {
    pub async fn telling(&self, row: &TaskRow) -> Result<Telling, ControlError> {
        let after = row.last_seq.saturating_sub(MOST_EVENTS);
        let mut telling = Telling {
            events: self.store.events(row.task.id, after, MOST_EVENTS as usize).await?,
            ..Telling::default()
        };
        for run in row.task.runs() {
            telling.runs.extend(self.store.run(run).await?.map(|run| *run));
        }
        for run in &telling.runs {
            // Without its plan less is told of a run, and it is told all the same.
            telling.plans.push(self.stored_plan(run.plan).await.ok());
        }
        let worker = telling.held().and_then(|run| run.lease()).map(|lease| lease.worker.clone());
        telling.heartbeat = worker.and_then(|worker| self.heartbeat(&worker));
        Ok(telling)
    }

    fn heartbeat(&self, worker: &str) -> Option<Heartbeat> {
        let last = self.workers.last_seen(worker)?;
        Some(Heartbeat { last, lease_until: last.after(self.config.lease) })
    }
}
