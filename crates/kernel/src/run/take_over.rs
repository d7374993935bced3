//! A run is taken from a worker that is gone, and made ready for another. Or it is held back, so that nobody is given it.

use super::{
    AttemptEnd, Illegal, Run, RunState, RunTag, RunView,
    blocker::{Blocker, BlockerKind},
};
use crate::{BlockerId, Bundle, Command, EventBody, Timestamp, Write};

/// So many attempts lost in a row, without a finished step, and a run is held back: it may be what kills them.
pub const QUARANTINE_AFTER: u32 = 20;

/// The same for attempts that ended with a new start of their worker. One that is brought up to date gives its runs back
/// first, and a power cut is nobody's fault, so it takes far more of them.
pub const QUARANTINE_AFTER_RESTARTS: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The worker fell silent for the length of a lease.
    Silent,
    /// The worker started again, and had not given the run back. Hardly the run's doing, so it counts apart.
    Restarted,
    /// The worker was not told that it had been given the run, so it can't have been the run's doing.
    Untold,
}

pub fn take_over(
    view: &RunView,
    cause: Cause,
    quarantine: BlockerId,
    now: Timestamp,
) -> Result<Bundle, Illegal> {
    let mut run = running(view)?;
    let end = match cause {
        Cause::Silent => {
            run.lost_in_row += 1;
            AttemptEnd::Lost
        }
        Cause::Restarted => {
            run.restarted_in_row = run.restarted_in_row.saturating_add(1);
            AttemptEnd::Yielded
        }
        Cause::Untold => AttemptEnd::Yielded,
    };
    let bundle = taken(view, end, now);
    if let Some(why) = too_often(&run) {
        return Ok(quarantined(bundle, view, run, &why, quarantine, now));
    }
    // It waited its turn before: its old place is its place.
    let next = run.moved(run.ready_at(run.created_at));
    Ok(super::rows(&view.task, next, now).into_iter().fold(bundle, Bundle::write))
}

/// No worker can be given the run as it stands, which is nobody's doing: it waits until a person has had a look.
pub fn hold_back(
    view: &RunView,
    why: &str,
    quarantine: BlockerId,
    now: Timestamp,
) -> Result<Bundle, Illegal> {
    let run = running(view)?;
    let bundle = taken(view, AttemptEnd::Yielded, now);
    Ok(quarantined(bundle, view, run, why, quarantine, now))
}

fn running(view: &RunView) -> Result<Run, Illegal> {
    match view.run.tag() {
        RunTag::Running => Ok(view.run.clone()),
        state => Err(Illegal { what: view.run.id, state }),
    }
}

fn taken(view: &RunView, end: AttemptEnd, now: Timestamp) -> Bundle {
    let run = &view.run;
    let body = EventBody::AttemptEnded { run: run.id, attempt: run.attempt, end };
    // A journal write in between would be undone by the counters as they were read.
    Bundle::new(Command::TakeOver).expect(run.expected_untouched()).event(run.task, now, body)
}

fn too_often(run: &Run) -> Option<String> {
    if run.lost_in_row >= QUARANTINE_AFTER {
        return Some(format!("{} attempts in a row lost their worker", run.lost_in_row));
    }
    let restarted = run.restarted_in_row;
    let message = || format!("{restarted} attempts in a row ended as their worker crashed and started again");
    (restarted >= QUARANTINE_AFTER_RESTARTS).then(message)
}

fn quarantined(
    bundle: Bundle,
    view: &RunView,
    run: Run,
    why: &str,
    quarantine: BlockerId,
    now: Timestamp,
) -> Bundle {
    let blocker =
        Blocker::open(quarantine, &run, BlockerKind::Quarantine, format!("quarantined: {why}"), now);
    let body = EventBody::RunWaiting { run: run.id, blocker: blocker.id, summary: blocker.summary.clone() };
    let next = run.moved(RunState::Waiting { on: blocker.id });
    let bundle = bundle.write(Write::Blocker(blocker)).event(run.task, now, body);
    super::rows(&view.task, next, now).into_iter().fold(bundle, Bundle::write)
}
