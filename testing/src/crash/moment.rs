//! When a kill strikes, and what was in flight then. Half of the kills come at a random moment; the others
//! wait for something to be under way, so that the rare kinds are met often enough.

use std::time::{Duration, Instant};

use crate::load::{Feeder, Ground, Seen};
use crate::sim::rng::Rng;

/// A kill comes between so many milliseconds after the server was ready.
const EARLIEST_MS: u64 = 100;
const LATEST_MS: u64 = 2_000;

/// Chosen moments begin to be waited for no later than this, so that there is time for them to come.
const WATCH_BY_MS: u64 = 1_700;

/// When to kill.
pub(super) struct Moment {
    after: Duration,
    then: Then,
}

/// What to wait for once the time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    AtOnce,
    CreateSent,
    CreateAnswered,
    CallAnswered,
    ToolCalled,
}

/// All that can be watched from outside the server.
pub(super) struct Traffic<'t> {
    pub ground: &'t Ground,
    pub feeder: &'t Feeder,
}

/// The traffic at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    creates_unanswered: u64,
    creates_answered: u64,
    model_inflight: u64,
    model_answered: u64,
    tool_inflight: u64,
    tool_answered: u64,
}

/// Kills by what was in flight; one kill may count several times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Classes {
    /// A create was sent and not answered.
    pub accept: u32,
    /// A run had been given to the worker, and its next call had not left.
    pub claim: u32,
    /// The model was thinking.
    pub model: u32,
    /// A tool was at work.
    pub tool: u32,
    /// A model or a tool had answered, and the log did not hold it yet.
    pub commit: u32,
}

impl Moment {
    pub fn draw(rng: &mut Rng) -> Self {
        let then = match rng.below(14) {
            0 => Then::CreateSent,
            // The claim follows in a fraction of a millisecond, so most of these come too late for it.
            1..5 => Then::CreateAnswered,
            5 => Then::CallAnswered,
            6 => Then::ToolCalled,
            _ => Then::AtOnce,
        };
        let latest = if then == Then::AtOnce { LATEST_MS } else { WATCH_BY_MS };
        Self { after: Duration::from_millis(rng.between(EARLIEST_MS, latest)), then }
    }

    /// Returns when it is time to kill, 2 s after `ready_at` at the latest.
    pub async fn wait(&self, ready_at: Instant, traffic: &Traffic<'_>) {
        tokio::time::sleep_until((ready_at + self.after).into()).await;
        let deadline = ready_at + Duration::from_millis(LATEST_MS);
        let first = traffic.count();
        while Instant::now() < deadline && !self.has_come(&first, &traffic.count()) {
            // A timer would be too coarse: what is waited for may last less than a millisecond.
            tokio::task::yield_now().await;
        }
    }

    fn has_come(&self, first: &Count, now: &Count) -> bool {
        match self.then {
            Then::AtOnce => true,
            Then::CreateSent => now.creates_unanswered > 0,
            Then::CreateAnswered => now.creates_answered > first.creates_answered,
            Then::CallAnswered => now.answered() > first.answered(),
            Then::ToolCalled => now.tool_inflight > 0,
        }
    }
}

impl Traffic<'_> {
    pub fn count(&self) -> Count {
        let (model, tool) = (self.ground.model.desk().all(), self.ground.tools.desk().all());
        Count {
            creates_unanswered: self.feeder.unanswered(),
            creates_answered: self.feeder.answered(),
            model_inflight: model.inflight,
            model_answered: model.answered,
            tool_inflight: tool.inflight,
            tool_answered: tool.answered,
        }
    }
}

impl Count {
    fn answered(&self) -> u64 {
        self.model_answered + self.tool_answered
    }
}

impl Classes {
    /// Counts one kill. The traffic was counted right before it and right after it; what was answered in
    /// between may have been too late, so it counts for neither side.
    pub(super) fn add(&mut self, before: &Count, after: &Count, seen: &Seen, create_cut_off: bool) {
        let model_answers = after.model_answered - before.model_answered;
        let tool_answers = after.tool_answered - before.tool_answered;
        self.accept += u32::from(create_cut_off);
        self.claim += u32::from(seen.n_not_begun > 0);
        self.model += u32::from(before.model_inflight > model_answers);
        self.tool += u32::from(before.tool_inflight > tool_answers);
        self.commit += u32::from(seen.n_answered_not_finished > model_answers + tool_answers);
    }

    /// Each with its name.
    pub fn named(&self) -> [(&'static str, u32); 5] {
        let Classes { accept, claim, model, tool, commit } = *self;
        [("accept", accept), ("claim", claim), ("model", model), ("tool", tool), ("commit", commit)]
    }
}
