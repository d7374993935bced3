//! A worker that does what the test says.

use std::sync::Arc;

use ostler_kernel::{
    Entry, Failure, Role, Run, Step, StepId, StepKind, StepOutcome, Usage,
    bundle::WriteKey,
    conversation::{Block, ToolCallRef},
    run::{
        end::Leave,
        journal::{Progress, StepDone},
    },
    step::StepState,
    worker::Offer,
};
use ostler_link::{
    Caller, ClaimRequest, Delta, DeltasRequest, JournalRequest, LeaveRequest, RegisterRequest, Registered,
    WorkerPort, WorkerPortExt,
};

use super::Place;

pub const NAME: &str = "scripted";

pub struct Worker {
    port: Arc<dyn WorkerPort>,
    caller: Caller,
    claims: u64,
    /// Nobody counts its tokens.
    pub is_estimating: bool,
    /// What each of its calls costs.
    pub cost_micro_usd: Option<u64>,
}

impl Held {
    pub fn run(&self) -> &Run {
        &self.run
    }
}

/// A run in the worker's hands, with its open step.
pub struct Held {
    run: Run,
    written: u64,
    step: u32,
}

impl Worker {
    pub async fn new(place: &Place) -> Self {
        Self::on(place.server.worker_port()).await
    }

    pub async fn on(port: Arc<dyn WorkerPort>) -> Self {
        // Every test has a server of its own, so there was nobody of this name before.
        let request =
            RegisterRequest { name: NAME.to_owned(), instance: 1, former: 0, offer: Offer::default() };
        let Registered::As { incarnation, .. } = port.register(request).await.unwrap() else {
            panic!("there is another worker")
        };
        Self {
            port,
            caller: Caller { worker: NAME.to_owned(), incarnation },
            claims: 0,
            is_estimating: false,
            cost_micro_usd: None,
        }
    }

    /// As after a crash: what it held was not given back.
    pub async fn restarted(self) -> Self {
        let Caller { worker, incarnation } = self.caller;
        let request = RegisterRequest {
            name: worker.clone(),
            instance: incarnation + 1,
            former: incarnation,
            offer: Offer::default(),
        };
        let Registered::As { incarnation, .. } = self.port.register(request).await.unwrap() else {
            panic!("there is another worker")
        };
        Self { caller: Caller { worker, incarnation }, claims: 0, ..self }
    }

    pub async fn claim(&mut self) -> Held {
        self.claims += 1;
        let request =
            ClaimRequest { caller: self.caller.clone(), number: self.claims, slots: 1, wait_ms: 20_000 };
        let assignment = self.port.claim(request).await.unwrap().remove(0);
        let step = assignment.open_steps[0].id.index;
        Held { written: assignment.run.journal, run: assignment.run, step }
    }

    pub fn caller(&self) -> Caller {
        self.caller.clone()
    }

    pub async fn delta(&self, held: &Held, offset: u64, text: &str) {
        let Run { id, task, .. } = held.run;
        let delta = Delta { task, run: id, step: held.step, offset, text: text.to_owned(), thinking: false };
        self.port.deltas(DeltasRequest { caller: self.caller.clone(), deltas: vec![delta] }).await.unwrap();
    }

    /// Finishes the open step and begins the next.
    pub async fn step(&self, held: &mut Held) {
        let mut progress = self.done(held);
        progress.open = vec![StepKind::model(&held.run.model)];
        held.step += 1;
        self.journal(held, progress).await;
    }

    pub async fn finish(&self, mut held: Held, output: &str) {
        let progress = self.done(&held);
        held.written += 1;
        let (caller, key) = (self.caller.clone(), key(&held));
        let leave = Leave::Ok { output: output.to_owned() };
        self.port.leave(LeaveRequest { caller, key, progress, leave }).await.unwrap();
    }

    /// Ends the run with an answer of so many letters in its session.
    pub async fn finish_saying(&self, mut held: Held, letters: usize) {
        let mut progress = self.done(&held);
        progress.entries[0].blocks = vec![Block::Text { text: "x".repeat(letters) }];
        held.written += 1;
        let (caller, key) = (self.caller.clone(), key(&held));
        let leave = Leave::Ok { output: "done".to_owned() };
        self.port.leave(LeaveRequest { caller, key, progress, leave }).await.unwrap();
    }

    /// Has the model ask for so many tool calls at once, makes them, and begins the next step.
    pub async fn calls(&self, held: &mut Held, count: u32) {
        let mut asked = self.done(held);
        asked.open = (0..count).map(|_| look_up()).collect();
        let first = held.step + 1;
        held.step += count;
        self.journal(held, asked).await;
        let done = (first..=held.step).map(|index| {
            let at = held.run.created_at;
            let mut step = Step::open(StepId { run: held.run.id, index }, look_up(), held.run.attempt, at);
            let (outcome, usage) = (StepOutcome::Ok, Usage::default());
            step.state = StepState::Done { outcome, at, took_ms: 1, usage };
            StepDone::new(step, "found")
        });
        let made = Progress {
            done: done.collect(),
            open: vec![StepKind::model(&held.run.model)],
            ..Progress::default()
        };
        held.step += 1;
        self.journal(held, made).await;
    }

    async fn journal(&self, held: &mut Held, progress: Progress) {
        held.written += 1;
        let (caller, key) = (self.caller.clone(), key(held));
        self.port.journal(JournalRequest { caller, key, progress }).await.unwrap();
    }

    /// Lets somebody else go on with it.
    pub async fn give_back(&self, held: Held) {
        self.leave(held, Leave::GiveBack).await;
    }

    /// Leaves it as it stands, however.
    pub async fn leave(&self, mut held: Held, leave: Leave) {
        held.written += 1;
        let (caller, key) = (self.caller.clone(), key(&held));
        let progress = Progress::default();
        self.port.leave(LeaveRequest { caller, key, progress, leave }).await.unwrap();
    }

    /// Whatever went wrong may pass by itself.
    pub async fn fail(&self, held: Held) {
        let failure = Failure::transient("overloaded", "try later");
        self.leave(held, Leave::Failed { failure }).await;
    }

    fn done(&self, held: &Held) -> Progress {
        let id = StepId { run: held.run.id, index: held.step };
        let at = held.run.created_at;
        let mut step = Step::open(id, StepKind::model(&held.run.model), held.run.attempt, at);
        let estimated = self.is_estimating;
        let cost_micro_usd = self.cost_micro_usd;
        let usage =
            Usage { input_tokens: 3, output_tokens: 4, estimated, cost_micro_usd, ..Usage::default() };
        step.state = StepState::Done { outcome: StepOutcome::Ok, at, took_ms: 5, usage };
        let text = Block::Text { text: "well".to_owned() };
        let entry =
            Entry { role: Role::Assistant, blocks: vec![text], run: held.run.id, step: Some(held.step) };
        let done = StepDone::new(step, "well");
        Progress { done: vec![done], entries: vec![entry], ..Progress::default() }
    }
}

fn look_up() -> StepKind {
    StepKind::tool(ToolCallRef { id: "c".into(), name: "lookup".into() }, "{}", true)
}

fn key(held: &Held) -> WriteKey {
    WriteKey { run: held.run.id, epoch: held.run.epoch, number: held.written }
}
