//! A worker takes a run. Called by the store, inside the transaction that picked the run.

use crate::{
    EventBody, Run, RunState, Session, Step, StepId, StepKind, Task, Timestamp, Write, message::Message,
    worker::Lease,
};

/// The rows that make `lease` the holder of the run. The first claim begins the run: the caller's message
/// enters the session, and the first model call is intended.
pub fn claim(task: &Task, run: &Run, session: &Session, lease: Lease, now: Timestamp) -> (Run, Vec<Write>) {
    let worker = lease.worker.clone();
    let mut next = run.moved(RunState::Running { lease });
    next.attempt += 1;
    next.attempt_at = Some(now);
    next.worker = Some(worker.clone());
    let mut writes = Vec::with_capacity(6);
    if run.attempt == 0 {
        let entry = run.opening(task);
        let first = StepKind::model(&run.model);
        writes.push(Write::Entry { session: session.id, seq: session.next_entry, entry });
        writes.push(Write::Step(Step::open(StepId { run: run.id, index: 0 }, first, next.attempt, now)));
        next.next_entry = session.next_entry + 1;
        next.next_step = 1;
    }
    let body =
        EventBody::AttemptStarted { run: run.id, attempt: next.attempt, worker, step: next.next_step - 1 };
    writes.push(Write::Event { task: task.id, at: now, body });
    // What is in the conversation from now on need not be carried along by every write of the run.
    let mut row = next.clone();
    row.message = row.message.map(Message::begun);
    writes.extend(super::rows(task, row, now));
    (next, writes)
}
