//! The runner port, over the worker port: one run in the hands of one attempt.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use async_trait::async_trait;
use ostler_agent::{
    Departure, RunStart, RunnerPort, Stopped,
    llm::{Gateway, Shown},
    tools::Toolbox,
};
use ostler_kernel::{
    Failure, Runtime, TaskId,
    bundle::WriteKey,
    run::{end::Leave, journal::Progress},
    task::input::Input,
};
use ostler_link::{
    Assignment, Caller, Delta, InputsRequest, JournalRequest, LeaveRequest, LinkError, WorkerPort,
    WorkerPortExt,
};
use tokio::sync::mpsc;

use crate::{Equipment, Incarnation, held::Held, insist, run_trace::RunTrace};

pub struct RunPort {
    start: RunStart,
    trace: Arc<RunTrace>,
    caller: Caller,
    equipment: Equipment,
    stopping: Arc<AtomicBool>,
    draining: Arc<AtomicBool>,
    deltas: mpsc::Sender<Delta>,
    held: Arc<Held>,
    has_inputs: AtomicBool,
    /// Writes that were answered.
    written: AtomicU64,
    /// A write was sent and not answered yet: nobody knows whether it counted.
    writing: AtomicBool,
}

impl RunPort {
    pub(crate) fn new(assignment: Assignment, incarnation: &Incarnation) -> Self {
        let Assignment { run, plan, context, open_steps, consumed_input, has_inputs, trace } = assignment;
        let start = RunStart { run, plan, context, open_steps, consumed_input };
        Self {
            trace: RunTrace::new(&start, trace, &incarnation.equipment.telemetry),
            written: AtomicU64::new(start.run.journal),
            writing: AtomicBool::new(false),
            start,
            caller: incarnation.caller.clone(),
            equipment: incarnation.equipment.clone(),
            stopping: Arc::clone(&incarnation.stopping),
            draining: Arc::clone(&incarnation.draining),
            deltas: incarnation.deltas.clone(),
            held: Arc::clone(&incarnation.held),
            has_inputs: AtomicBool::new(has_inputs),
        }
    }

    /// Of the lease it works under.
    pub fn epoch(&self) -> u64 {
        self.start.run.epoch
    }

    pub fn task(&self) -> TaskId {
        self.start.run.task
    }

    pub fn trace(&self) -> &Arc<RunTrace> {
        &self.trace
    }

    pub fn input_came(&self) {
        self.has_inputs.store(true, Ordering::SeqCst);
    }

    /// Once nobody works on it any more: makes the run ready for another worker. If a write is in doubt, that
    /// can't be said safely; the server finds out by itself when this worker is gone.
    pub async fn give_back(&self) {
        if self.writing.load(Ordering::SeqCst) {
            return;
        }
        let given_back = self.write(Progress::default(), Some(Leave::GiveBack)).await;
        if let Err(error) = given_back {
            tracing::debug!(run = %self.start.run.id, %error, "could not be given back");
        }
    }

    /// Sends the next write until it is answered. One that no link can carry would be made again by the next attempt, at
    /// the same cost and as large: the run fails instead.
    async fn write(&self, progress: Progress, leave: Option<Leave>) -> Result<(), LinkError> {
        let done = progress.done.clone();
        let number = self.written.load(Ordering::SeqCst) + 1;
        let key = WriteKey { run: self.start.run.id, epoch: self.start.run.epoch, number };
        self.writing.store(true, Ordering::SeqCst);
        let mut answer = self.send(key, progress, leave).await;
        if let Err(error) = &answer
            && error.is_too_large()
        {
            let failure = Failure::limit("step_too_large", error.to_string());
            let failed = self.send(key, Progress::default(), Some(Leave::Failed { failure })).await;
            answer = failed.and(answer);
        }
        self.writing.store(false, Ordering::SeqCst);
        if answer.is_ok() {
            self.written.store(number, Ordering::SeqCst);
            self.trace.finished(&done);
        }
        answer
    }

    async fn send(&self, key: WriteKey, progress: Progress, leave: Option<Leave>) -> Result<(), LinkError> {
        let caller = self.caller.clone();
        match leave {
            None => {
                let request = JournalRequest { caller, key, progress };
                insist(self.runtime(), || self.port().journal(request.clone())).await
            }
            Some(leave) => {
                let request = LeaveRequest { caller, key, progress, leave };
                insist(self.runtime(), || self.port().leave(request.clone())).await
            }
        }
    }

    fn port(&self) -> &dyn WorkerPort {
        &*self.equipment.port
    }
}

#[async_trait]
impl RunnerPort for RunPort {
    fn start(&self) -> &RunStart {
        &self.start
    }

    async fn journal(&self, progress: Progress) -> Result<(), Stopped> {
        self.write(progress, None).await.map_err(|error| Stopped(error.to_string()))
    }

    async fn leave(&self, progress: Progress, leave: Leave) -> Result<Departure, Stopped> {
        match self.write(progress, Some(leave)).await {
            Ok(()) => Ok(Departure::Left),
            Err(LinkError::InputArrived) => {
                self.input_came();
                Ok(Departure::InputArrived)
            }
            Err(error) => Err(Stopped(error.to_string())),
        }
    }

    async fn inputs(&self, after: u64) -> Result<Vec<Input>, Stopped> {
        if !self.has_inputs.swap(false, Ordering::SeqCst) {
            return Ok(Vec::new());
        }
        let run = &self.start.run;
        let request = InputsRequest { caller: self.caller.clone(), run: run.id, task: run.task, after };
        insist(self.runtime(), || self.port().inputs(request.clone()))
            .await
            .map_err(|error| Stopped(error.to_string()))
    }

    fn emit(&self, step: u32, offset: u64, shown: Shown<'_>) {
        let run = &self.start.run;
        let (text, thinking) = match shown {
            Shown::Text(text) => (text.to_owned(), false),
            Shown::Thinking(text) => (text.to_owned(), true),
        };
        let delta = Delta { task: run.task, run: run.id, step, offset, text, thinking };
        // Full means that nobody keeps up: the durable message will replace what is missing.
        let _ = self.deltas.try_send(delta);
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst) || self.draining.load(Ordering::SeqCst)
    }

    fn is_held(&self) -> bool {
        self.held.lease_stands(self.runtime().monotonic())
    }

    fn runtime(&self) -> &dyn Runtime {
        &*self.equipment.runtime
    }

    fn gateway(&self) -> &dyn Gateway {
        &*self.equipment.gateway
    }

    fn toolbox(&self) -> &dyn Toolbox {
        &*self.equipment.toolbox
    }
}
