//! A run is taken from a worker that is gone, and made ready for another.

use super::{
    AttemptEnd, Illegal, RunState, RunTag, RunView,
    blocker::{Blocker, BlockerKind},
};
use crate::{BlockerId, Bundle, Command, EventBody, Timestamp, Write};

/// So many attempts lost in a row, without a finished step, and a run is held back: it may be what kills them.
pub const QUARANTINE_AFTER: u32 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The worker fell silent for the length of a lease.
    Silent,
    /// The worker started again, or never learnt that it had been given the run. Not the run's doing, so it
    /// doesn't count.
    Restarted,
}

pub fn take_over(
    view: &RunView,
    cause: Cause,
    quarantine: BlockerId,
    now: Timestamp,
) -> Result<Bundle, Illegal> {
    if view.run.tag() != RunTag::Running {
        return Err(Illegal { what: view.run.id, state: view.run.tag() });
    }
    let mut run = view.run.clone();
    let end = match cause {
        Cause::Silent => {
            run.lost_in_row += 1;
            AttemptEnd::Lost
        }
        Cause::Restarted => AttemptEnd::Yielded,
    };
    let body = EventBody::AttemptEnded { run: run.id, attempt: run.attempt, end };
    // A journal write in between would be undone by the counters as they were read.
    let bundle =
        Bundle::new(Command::TakeOver).expect(view.run.expected_untouched()).event(run.task, now, body);
    let bundle = if run.lost_in_row >= QUARANTINE_AFTER {
        let summary = format!("quarantined: {} attempts in a row lost their worker", run.lost_in_row);
        let blocker = Blocker::open(quarantine, &run, BlockerKind::Quarantine, summary, now);
        let body =
            EventBody::RunWaiting { run: run.id, blocker: blocker.id, summary: blocker.summary.clone() };
        run = run.moved(RunState::Waiting { on: blocker.id });
        bundle.write(Write::Blocker(blocker)).event(run.task, now, body)
    } else {
        // It waited its turn before: its old place is its place.
        run = run.moved(run.ready_at(run.created_at));
        bundle
    };
    Ok(super::rows(&view.task, run, now).into_iter().fold(bundle, Bundle::write))
}
