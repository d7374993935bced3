//! An agent of a system is done, and another goes on: the run ends and the next one begins in one commit, so that
//! nothing is lost between them and nothing is done twice.

use super::{
    Run, RunState, RunView,
    end::{close, free_session},
    journal::{Progress, advance, fenced},
};
use crate::{
    Bundle, Command, EventBody, Expect, RunId, Session, Timestamp, Write,
    bundle::WriteKey,
    message::Message,
    queue::Lane,
    task::{Stage, accept::NewRun},
};

/// What is known of the next run before it is written down.
#[derive(Debug, Clone)]
pub struct Next {
    pub run: RunId,
    /// As read, or new (its version is 0 then).
    pub session: Session,
    /// Where it waits, within the limits that hold now: those of when its task was accepted may be long gone.
    pub lane: Lane,
}

impl RunView {
    /// Who goes on with the task when this run is done, and the message it was about.
    pub fn next_stage(&self) -> Option<(&Stage, &Message)> {
        let message = self.run.message.as_ref()?;
        let system = self.task.request.system.as_ref()?;
        // Hops count from 1, so the number of this one is the place of the next.
        let place = usize::try_from(message.hop).ok()?;
        Some((system.line.get(place)?, message))
    }
}

/// The bundle by which the holder of `key` ends its run with `output`, which the next agent gets. None where
/// nobody comes next.
pub fn hand_on(
    view: &RunView,
    key: WriteKey,
    progress: &Progress,
    output: &str,
    next: Next,
    now: Timestamp,
) -> Option<Bundle> {
    let (stage, message) = view.next_stage()?;
    let mut run = view.run.clone();
    let bundle = advance(fenced(Command::Finish, &view.run, key), &mut run, key, progress, now);
    let seen = progress.consumed.unwrap_or(view.consumed_input);
    let bundle = bundle.expect(Expect::Inputs { task: run.task, last: seen });
    let bundle = close(bundle, view, &mut run, now);
    let ended = run.moved(RunState::Ok { output: output.to_owned() });
    let message = message.hand_on(&view.task, &stage.agent, output);
    let (following, session, bundle) = begin(bundle, view, stage, message, next, now);
    let task = view.task.handed_on(&ended, &following, now);
    let body = EventBody::RunEnded { run: ended.id, usage: ended.usage };
    let bundle = bundle.event(run.task, now, body);
    let bundle = announce(bundle, &following, now).write(Write::Task(task)).write(Write::Run(ended));
    let bundle = bundle.write(Write::NewRun(following)).write(Write::Session(session));
    Some(free_session(bundle, view, &run, now))
}

/// The run that works on the message, at the end of its session.
fn begin(
    mut bundle: Bundle,
    view: &RunView,
    stage: &Stage,
    message: Message,
    next: Next,
    now: Timestamp,
) -> (Run, Session, Bundle) {
    let Next { run, mut session, lane } = next;
    bundle = bundle.expect(Expect::Session { id: session.id, version: session.version });
    if let (0, Some(key)) = (session.version, &session.key) {
        let (namespace, subject) = (session.namespace.clone(), session.subject.clone());
        bundle = bundle.expect(Expect::SessionKey { namespace, subject, key: key.clone() });
    }
    let stage = &Stage { lane, ..stage.clone() };
    let new =
        NewRun { id: run, task: view.task.id, request: &view.task.request, stage, message: Some(message) };
    let run = new.begin(&mut session, now);
    (run, session, bundle)
}

/// Tells of a message that the run will work on.
pub(crate) fn announce(bundle: Bundle, run: &Run, now: Timestamp) -> Bundle {
    match &run.message {
        Some(message) => {
            let body = EventBody::MessageSent { run: run.id, message: message.clone() };
            bundle.event(run.task, now, body)
        }
        None => bundle,
    }
}
