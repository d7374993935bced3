//! Someone stops a run, or its deadline passes: one commit, in whatever state it is. The epoch rises, so
//! its worker can write nothing more.

use super::{Illegal, RunState, RunView, end::end};
use crate::{Bundle, Command, ErrorClass, Failure, StepKind, Timestamp};

pub fn cancel(view: &RunView, reason: &str, now: Timestamp) -> Result<Bundle, Illegal> {
    let failure = Failure::new(ErrorClass::Cancelled, "cancelled", reason);
    stop(Command::Cancel, view, RunState::Cancelled { failure }, now)
}

pub fn expire(view: &RunView, now: Timestamp) -> Result<Bundle, Illegal> {
    let failure = Failure::timeout("deadline_exceeded", "the task's deadline passed before it was done");
    stop(Command::Expire, view, RunState::Timeout { failure }, now)
}

fn stop(command: Command, view: &RunView, state: RunState, now: Timestamp) -> Result<Bundle, Illegal> {
    let run = &view.run;
    if run.is_terminal() {
        return Err(Illegal { what: run.id, state: run.tag() });
    }
    // The open steps were read with the run: a journal write in between would have changed them.
    let bundle = Bundle::new(command).expect(run.expected_untouched());
    let mut run = run.clone();
    // Its worker can't write down any more what the call used.
    run.usage.cost_incomplete |= is_asking_a_model(view);
    Ok(end(bundle, view, run, state, now))
}

/// Whether a worker is at a model call, for all that is known here.
fn is_asking_a_model(view: &RunView) -> bool {
    let mut open = view.open_steps.iter();
    view.run.lease().is_some() && open.any(|step| matches!(step.kind, StepKind::Model { .. }))
}
