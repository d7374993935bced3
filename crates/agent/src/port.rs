//! The runner port. Implemented by `worker` over the worker port; in tests over a script.

use async_trait::async_trait;
use ostler_kernel::{
    Entry, Run, Runtime, Step,
    plan::AgentPlan,
    run::{end::Leave, journal::Progress},
    task::input::Input,
};
use ostler_llm::{Gateway, Shown};
use ostler_tools::Toolbox;

/// A kind of agent. Two are planned for: [`crate::React`], and CLI agents driven turn by turn.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Works until the run was left or is no longer ours. May be dropped at any await: what was journaled
    /// stands, the rest is interrupted.
    async fn run(&self, port: &dyn RunnerPort) -> Result<(), Stopped>;
}

/// Where a run stands when an attempt begins.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStart {
    pub run: Run,
    pub plan: AgentPlan,
    pub context: Vec<Entry>,
    pub open_steps: Vec<Step>,
    pub consumed_input: u64,
}

#[async_trait]
pub trait RunnerPort: Send + Sync {
    fn start(&self) -> &RunStart;

    /// Writes down what happened. When it returns, it is durable, and steps it opened may begin.
    async fn journal(&self, progress: Progress) -> Result<(), Stopped>;

    /// Ends the attempt: done, failed, or giving the slot back to wait or to sleep.
    async fn leave(&self, progress: Progress, leave: Leave) -> Result<Departure, Stopped>;

    /// Inputs behind number `after`, if there may be any. They are consumed by the progress that names them.
    async fn inputs(&self, after: u64) -> Result<Vec<Input>, Stopped>;

    /// Shows text or thinking as it comes: the step, where in its text or thinking, and what. Never waits; may be
    /// lost.
    fn emit(&self, step: u32, offset: u64, shown: Shown<'_>);

    /// The worker wants to stop: finish what is under way, then give the run back.
    fn is_stopping(&self) -> bool;

    /// Whether the lease still stands by this worker's own clock. Asked right before an effect begins, so
    /// that a worker that was paused for long doesn't do what another one already did.
    fn is_held(&self) -> bool;

    fn runtime(&self) -> &dyn Runtime;
    fn gateway(&self) -> &dyn Gateway;
    fn toolbox(&self) -> &dyn Toolbox;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    Left,
    /// An input came in the meantime, so the run goes on. Nothing of the progress was written.
    InputArrived,
}

/// The run is not ours any more. Nothing is left to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the run was taken away: {0}")]
pub struct Stopped(pub String);

impl dyn RunnerPort + '_ {
    /// Stops whoever is about to begin an effect without holding the lease.
    pub fn check_held(&self) -> Result<(), Stopped> {
        if self.is_held() { Ok(()) } else { Err(Stopped("the lease ran out".to_owned())) }
    }
}
