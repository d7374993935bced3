//! A worker writes down what a step gave, and what comes next.

use serde::{Deserialize, Serialize};

use super::Run;
use crate::{
    Bundle, Command, Entry, EventBody, Expect, RunTag, Step, StepId, StepKind, Timestamp, Write,
    bundle::WriteKey,
    event::{OpenedStep, StepFinished},
    step::{StepOutcome, StepState},
};

/// What happened since the write before: steps that ended, what was said, steps that begin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Progress {
    pub done: Vec<StepDone>,
    /// In the order in which they enter the session.
    pub entries: Vec<Entry>,
    pub open: Vec<StepKind>,
    /// The inputs up to this number are among the entries.
    pub consumed: Option<u64>,
    /// Time worked in this attempt since the write before.
    pub worked_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepDone {
    pub step: Step,
    /// The start of what it gave, for people who watch.
    pub preview: String,
    /// What of the agent's contract it breaks, where that is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_violation: Option<String>,
}

impl StepDone {
    pub fn new(step: Step, preview: impl Into<String>) -> Self {
        Self { step, preview: preview.into(), contract_violation: None }
    }
}

/// The bundle for one journal write: fenced by the epoch, and in its order.
pub fn journal(run: &Run, key: WriteKey, progress: &Progress, now: Timestamp) -> Bundle {
    let mut next = run.clone();
    let bundle = fenced(Command::Journal, run, key);
    let bundle = advance(bundle, &mut next, key, progress, now);
    bundle.write(Write::RunProgress(next))
}

/// A worker's write counts only under its own epoch, and behind the write before it.
pub(super) fn fenced(command: Command, run: &Run, key: WriteKey) -> Bundle {
    let expected = |epoch, journal| {
        let (id, state, journal) = (run.id, RunTag::Running, Some(journal));
        Expect::Run { id, state, epoch, journal }
    };
    let bundle = Bundle::new(command).keyed(key).expect(expected(key.epoch, key.number.saturating_sub(1)));
    if (run.epoch, run.journal + 1) == (key.epoch, key.number) {
        return bundle;
    }
    // Sent again, or out of order. In case it isn't known, it must not count: the counters of the run as it
    // was read would undo what was written since.
    bundle.expect(expected(run.epoch, run.journal))
}

/// Adds the progress to the bundle and moves the run's counters past it.
pub(super) fn advance(
    mut bundle: Bundle,
    run: &mut Run,
    key: WriteKey,
    progress: &Progress,
    now: Timestamp,
) -> Bundle {
    for entry in &progress.entries {
        let write = Write::Entry { session: run.session, seq: run.next_entry, entry: entry.clone() };
        run.next_entry += 1;
        bundle = bundle.write(write);
    }
    let mut opened = Vec::new();
    for kind in &progress.open {
        let id = StepId { run: run.id, index: run.next_step };
        run.next_step += 1;
        if let StepKind::Model { fallback, .. } = kind {
            run.fallback.clone_from(fallback);
        }
        opened.push(OpenedStep { step: id.index, kind: kind.clone() });
        bundle = bundle.write(Write::Step(Step::open(id, kind.clone(), run.attempt, now)));
    }
    for (place, done) in progress.done.iter().enumerate() {
        let last = place + 1 == progress.done.len();
        let opened = if last { std::mem::take(&mut opened) } else { Vec::new() };
        bundle = finish_step(bundle, run, done, opened, now);
    }
    if let Some(upto) = progress.consumed {
        bundle = bundle.write(Write::Consume { task: run.task, upto, run: run.id });
    }
    run.worked_ms = run.worked_ms.saturating_add(progress.worked_ms);
    run.journal = key.number;
    run.last_write = Some((key.epoch, key.number));
    bundle
}

fn finish_step(
    bundle: Bundle,
    run: &mut Run,
    done: &StepDone,
    opened: Vec<OpenedStep>,
    now: Timestamp,
) -> Bundle {
    let step = &done.step;
    let StepState::Done { outcome, took_ms, usage, .. } = &step.state else { return bundle };
    run.usage.add(usage);
    // A call that failed is no turn of the agent's: another model is asked, or the run's retries bound it.
    if matches!((&step.kind, outcome), (StepKind::Model { .. }, StepOutcome::Ok)) {
        run.model_calls += 1;
    }
    if matches!(step.kind, StepKind::Tool { .. }) {
        run.tool_calls += 1;
    }
    if matches!(outcome, StepOutcome::Ok) {
        (run.lost_in_row, run.restarted_in_row, run.slept_in_row) = (0, 0, 0);
    }
    let body = EventBody::StepFinished(Box::new(StepFinished {
        run: run.id,
        step: step.id.index,
        attempt: run.attempt,
        kind: step.kind.clone(),
        outcome: outcome.clone(),
        started_at: step.opened_at,
        took_ms: *took_ms,
        usage: *usage,
        preview: done.preview.clone(),
        contract_violation: done.contract_violation.clone(),
        opened,
    }));
    bundle.write(Write::Step(step.clone())).event(run.task, now, body)
}
