//! The rows as a judge sees them who does not look at everything.

use ostler_kernel::{
    Bundle, Expect, RunId, SessionId, TaskId,
    bundle::{InputsAt, Rows, RunAt},
    resource::ResourceKey,
};

use super::{Bug, Planted};

pub struct Blind<'a, R> {
    pub rows: &'a mut R,
    pub bundle: &'a Bundle,
    pub planted: Planted,
}

impl<R: Rows> Blind<'_, R> {
    /// The epoch that the bundle expects the run to have.
    fn expected_epoch(&self, run: RunId) -> Option<u64> {
        self.bundle.expect.iter().find_map(|expect| match expect {
            Expect::Run { id, epoch, .. } if *id == run => Some(*epoch),
            _ => None,
        })
    }
}

impl<R: Rows> Rows for Blind<'_, R> {
    type Error = R::Error;

    fn run(&mut self, id: RunId) -> Result<Option<RunAt>, R::Error> {
        let Some(mut run) = self.rows.run(id)? else { return Ok(None) };
        if self.planted.is(Bug::WriteNumberForgotten) {
            run.last_write = None;
        }
        if self.planted.is(Bug::EpochIgnored) {
            run.epoch = self.expected_epoch(id).unwrap_or(run.epoch);
        }
        Ok(Some(run))
    }

    fn session_version(&mut self, id: SessionId) -> Result<u64, R::Error> {
        self.rows.session_version(id)
    }

    fn inputs(&mut self, task: TaskId) -> Result<InputsAt, R::Error> {
        self.rows.inputs(task)
    }

    fn task_name_taken(&mut self, namespace: &str, name: &str) -> Result<bool, R::Error> {
        self.rows.task_name_taken(namespace, name)
    }

    fn task_key_taken(&mut self, namespace: &str, key: &str) -> Result<bool, R::Error> {
        self.rows.task_key_taken(namespace, key)
    }

    fn session_key_taken(&mut self, namespace: &str, subject: &str, key: &str) -> Result<bool, R::Error> {
        self.rows.session_key_taken(namespace, subject, key)
    }

    fn incarnation(&mut self, worker: &str) -> Result<u64, R::Error> {
        self.rows.incarnation(worker)
    }

    fn counter(&mut self, worker: &str) -> Result<u64, R::Error> {
        self.rows.counter(worker)
    }

    fn resource_version(&mut self, key: &ResourceKey) -> Result<u64, R::Error> {
        self.rows.resource_version(key)
    }
}
