//! A worker is done with a run for now: it ended, failed, or gives its slot back to wait or to sleep. The
//! last progress rides in the same commit.

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    AttemptEnd, Ready, Run, RunState, RunView,
    blocker::{Blocker, BlockerKind},
    journal::{Progress, advance, fenced},
};
use crate::{
    BlockerId, Bundle, Command, Entry, ErrorClass, EventBody, Expect, Failure, Step, StepId, StepKind, Task,
    Timestamp, Write,
    bundle::WriteKey,
    event::{ReadyReason, StepFinished},
    step::{StepOutcome, StepState, Usage},
};

/// How a worker leaves a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "leave", rename_all = "snake_case")]
pub enum Leave {
    Ok {
        output: String,
    },
    Failed {
        failure: Failure,
    },
    Wait {
        blocker: BlockerId,
        kind: BlockerKind,
        summary: String,
    },
    Sleep {
        /// By the worker's calendar: for a server that knows no better.
        until: Timestamp,
        /// For how long. The server dates it by its own calendar, and `until` is nothing to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        /// What has to pass first, if something failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Failure>,
    },
    /// The worker stops; someone else goes on.
    GiveBack,
}

impl Leave {
    /// As it counts for the task: what the task names as final is neither tried again nor slept on.
    fn judged(self, task: &Task) -> Self {
        match self {
            Leave::Failed { failure } | Leave::Sleep { why: Some(failure), .. }
                if task.gives_up_on(&failure) =>
            {
                Leave::Failed { failure: Failure { class: ErrorClass::Permanent, ..failure } }
            }
            leave => leave,
        }
    }
}

/// The bundle by which the holder of `key` leaves the run. `random` spreads retries.
pub fn leave(
    view: &RunView,
    key: WriteKey,
    progress: &Progress,
    leave: Leave,
    now: Timestamp,
    random: u64,
) -> Bundle {
    let leave = leave.judged(&view.task);
    let command = match leave {
        Leave::Ok { .. } | Leave::Failed { .. } => Command::Finish,
        Leave::Wait { .. } | Leave::Sleep { .. } | Leave::GiveBack => Command::Yield,
    };
    let mut run = view.run.clone();
    let bundle = advance(fenced(command, &view.run, key), &mut run, key, progress, now);
    let seen = progress.consumed.unwrap_or(view.consumed_input);
    let inputs = Expect::Inputs { task: run.task, last: seen };
    match leave {
        Leave::Ok { output } => end(bundle.expect(inputs), view, run, RunState::Ok { output }, now),
        Leave::Failed { failure } => fail(bundle, view, run, failure, now, random),
        Leave::Wait { blocker, kind, summary } => {
            let blocker = Blocker::open(blocker, &run, kind, summary, now);
            let body =
                EventBody::RunWaiting { run: run.id, blocker: blocker.id, summary: blocker.summary.clone() };
            let next = run.moved(RunState::Waiting { on: blocker.id });
            let bundle = bundle.expect(inputs).write(Write::Blocker(blocker));
            set(bundle.event(run.task, now, body), view, next, now)
        }
        Leave::Sleep { until, delay_ms, why } => {
            run.slept_in_row = run.slept_in_row.saturating_add(u32::from(why.is_some()));
            let until = delay_ms.map_or(until, |delay| now.after(Duration::from_millis(delay)));
            let body = EventBody::RunSleeping { run: run.id, until, failure: why.clone() };
            let next = run.moved(RunState::Sleeping { until, delay_ms, why });
            set(bundle.expect(inputs).event(run.task, now, body), view, next, now)
        }
        Leave::GiveBack => {
            let body =
                EventBody::AttemptEnded { run: run.id, attempt: run.attempt, end: AttemptEnd::Yielded };
            let ready = run.ready_at(run.created_at);
            let next = run.moved(ready);
            set(bundle.event(run.task, now, body), view, next, now)
        }
    }
}

/// Retried if its class and the budget allow it, otherwise ended.
fn fail(
    bundle: Bundle,
    view: &RunView,
    mut run: Run,
    failure: Failure,
    now: Timestamp,
    random: u64,
) -> Bundle {
    run.failures += 1;
    let pause = view.task.pause(&run, failure.retry_after(), random).filter(|_| failure.is_retryable());
    if let Some(delay) = pause {
        run.slept_in_row = 0;
        let bundle = intend_again(bundle, &mut run, now);
        let not_before = now.after(delay);
        let body = EventBody::RunRetrying { run: run.id, failure, failures: run.failures, not_before };
        let delay_ms = Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        let next = run.moved(RunState::Queued { ready: Ready::NotBefore { at: not_before, delay_ms } });
        return set(bundle.event(run.task, now, body), view, next, now);
    }
    let state = match failure.class {
        ErrorClass::Timeout => RunState::Timeout { failure },
        ErrorClass::Transient
        | ErrorClass::Permanent
        | ErrorClass::Limit
        | ErrorClass::OutcomeUnknown
        | ErrorClass::Cancelled => RunState::Error { failure },
    };
    end(bundle, view, run, state, now)
}

/// The model call that failed is over; the next attempt begins with a new one.
fn intend_again(bundle: Bundle, run: &mut Run, now: Timestamp) -> Bundle {
    let failed = |write: &Write| matches!(write, Write::Step(step) if !step.is_open() && matches!(step.kind, StepKind::Model { .. }));
    if !bundle.writes.iter().any(failed) {
        return bundle;
    }
    let id = StepId { run: run.id, index: run.next_step };
    run.next_step += 1;
    // With the agent's own model: whatever its fallbacks were needed for may have passed.
    run.fallback = None;
    let kind = StepKind::model(&run.model);
    bundle.write(Write::Step(Step::open(id, kind, run.attempt, now)))
}

fn set(bundle: Bundle, view: &RunView, next: Run, now: Timestamp) -> Bundle {
    super::rows(&view.task, next, now).into_iter().fold(bundle, Bundle::write)
}

/// Ends the run: every step still open is closed and every open tool call answered, so that the session
/// stays valid for whoever speaks next; what it waited for is void; the next run of the session becomes ready.
pub(super) fn end(bundle: Bundle, view: &RunView, mut run: Run, state: RunState, now: Timestamp) -> Bundle {
    let bundle = close(bundle, view, &mut run, now);
    let next = run.moved(state);
    let task = view.task.project(&next, now);
    let body = EventBody::TaskEnded {
        state: task.state.clone(),
        output: task.output.clone(),
        failure: task.failure.clone(),
        usage: task.usage,
    };
    let bundle = bundle.event(run.task, now, body).write(Write::Task(task)).write(Write::Run(next));
    free_session(bundle, view, &run, now)
}

/// Nothing of the run stays open.
pub(super) fn close(mut bundle: Bundle, view: &RunView, run: &mut Run, now: Timestamp) -> Bundle {
    for step in still_open(view, &bundle) {
        bundle = interrupt(bundle, run, step, now);
    }
    match &view.blocker {
        Some(blocker) => bundle.write(Write::Blocker(blocker.void(now))),
        None => bundle,
    }
}

/// What would be open behind this bundle: the steps that were, and those it opens, less those it finishes.
fn still_open(view: &RunView, bundle: &Bundle) -> Vec<Step> {
    let written = || {
        bundle.writes.iter().filter_map(|write| match write {
            Write::Step(step) => Some(step),
            _ => None,
        })
    };
    let finished = |step: &Step| written().any(|done| done.id == step.id && !done.is_open());
    let opened = written().filter(|step| step.is_open());
    view.open_steps.iter().chain(opened).filter(|step| !finished(step)).cloned().collect()
}

fn interrupt(mut bundle: Bundle, run: &mut Run, mut step: Step, now: Timestamp) -> Bundle {
    if let StepKind::Tool { call, idempotent, .. } = &step.kind {
        let content = match idempotent {
            true => "interrupted: the run ended before this call did",
            // Nobody makes it again to find out: whoever reads this has to look.
            false => "interrupted: the run ended before this call did; it may or may not have happened",
        };
        let entry = Entry::tool_result(run.id, step.id.index, call, content.to_owned(), true);
        bundle = bundle.write(Write::Entry { session: run.session, seq: run.next_entry, entry });
        run.next_entry += 1;
        run.tool_calls += 1;
    }
    let (outcome, usage) = (StepOutcome::Interrupted, Usage::default());
    step.state = StepState::Done { outcome: outcome.clone(), at: now, took_ms: 0, usage };
    let body = EventBody::StepFinished(Box::new(StepFinished {
        run: run.id,
        step: step.id.index,
        attempt: run.attempt,
        kind: step.kind.clone(),
        outcome,
        started_at: step.opened_at,
        took_ms: 0,
        usage,
        preview: String::new(),
        contract_violation: None,
        opened: Vec::new(),
    }));
    bundle.write(Write::Step(step)).event(run.task, now, body)
}

/// The session's next run becomes ready, or nobody is at its head any more.
pub(super) fn free_session(bundle: Bundle, view: &RunView, run: &Run, now: Timestamp) -> Bundle {
    let mut session = view.session.clone();
    let bundle = bundle.expect(Expect::Session { id: session.id, version: session.version });
    session.version += 1;
    session.used_at = Some(now);
    if run.attempt > 0 {
        session.next_entry = run.next_entry;
    }
    if session.head != Some(run.id) {
        return bundle.write(Write::Session(session));
    }
    session.head = view.next.as_ref().map(|next| next.id);
    let bundle = bundle.write(Write::Session(session));
    let Some(next) = &view.next else { return bundle };
    let ready = Run { state: next.ready_at(next.created_at), ..next.clone() };
    let body = EventBody::RunReady { run: next.id, reason: ReadyReason::SessionFree };
    // Nothing to expect of it: a run behind the head changes only in commits that write the session too (it is
    // accepted, cancelled, expires), and was read with it.
    bundle.event(next.task, now, body).write(Write::Run(ready))
}
