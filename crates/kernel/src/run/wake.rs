//! A run's time has come: a retry's delay is over, or a sleep. Or what it waited for was answered.

use super::{Illegal, RunView};
use crate::{Bundle, Command, EventBody, Timestamp, Write, event::ReadyReason};

/// Makes a delayed or sleeping run ready, if it is due.
pub fn wake(view: &RunView, now: Timestamp) -> Result<Bundle, Illegal> {
    wake_if(view, now, |at| at <= now)
}

/// The same whenever it was to be: its delay is over by a clock that doesn't jump.
pub fn wake_waited(view: &RunView, now: Timestamp) -> Result<Bundle, Illegal> {
    wake_if(view, now, |_| true)
}

fn wake_if(view: &RunView, now: Timestamp, is_due: impl Fn(Timestamp) -> bool) -> Result<Bundle, Illegal> {
    match view.run.wake_at() {
        Some(at) if is_due(at) => Ok(ready(Command::Wake, view, ReadyReason::Due, now)),
        _ => Err(Illegal { what: view.run.id, state: view.run.tag() }),
    }
}

/// Answers the blocker a run waits for.
pub fn resolve(view: &RunView, resolution: &str, now: Timestamp) -> Result<Bundle, Illegal> {
    match &view.blocker {
        Some(blocker) => {
            let resolved = blocker.resolved(resolution, now);
            let mut view = view.clone();
            (view.run.lost_in_row, view.run.restarted_in_row) = (0, 0);
            Ok(ready(Command::Resolve, &view, ReadyReason::Answered, now).write(Write::Blocker(resolved)))
        }
        None => Err(Illegal { what: view.run.id, state: view.run.tag() }),
    }
}

pub(crate) fn ready(command: Command, view: &RunView, reason: ReadyReason, now: Timestamp) -> Bundle {
    let run = &view.run;
    let next = run.moved(run.ready_at(now));
    let body = EventBody::RunReady { run: run.id, reason };
    let bundle = Bundle::new(command).expect(run.expected()).event(run.task, now, body);
    super::rows(&view.task, next, now).into_iter().fold(bundle, Bundle::write)
}
