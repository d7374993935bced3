//! Someone sends more to a task that already exists. Inputs are numbered and taken in order;
//! they are consumed in the commit of the step that used them.

use serde::{Deserialize, Serialize};

use crate::{
    Bundle, Command, EventBody, InputId, RunId, RunTag, TaskId, Timestamp, Write,
    event::ReadyReason,
    run::{Illegal, RunView, blocker::BlockerKind, wake},
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub id: InputId,
    pub task: TaskId,
    /// Its place among the task's inputs: 1, 2, 3.
    pub number: u64,
    pub text: String,
    pub at: Timestamp,
    /// The run that took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumed_by: Option<RunId>,
}

/// Adds an input; a run that waits for one, or sleeps, goes on.
pub fn accept_input(view: &RunView, id: InputId, text: &str, now: Timestamp) -> Result<Bundle, Illegal> {
    let run = &view.run;
    let command = Command::AcceptInput;
    let mut bundle = match run.tag() {
        RunTag::Queued | RunTag::Running => Bundle::new(command).expect(run.expected()),
        RunTag::Sleeping => wake::ready(command, view, ReadyReason::Input, now),
        RunTag::Waiting => match &view.blocker {
            Some(blocker) if blocker.kind == BlockerKind::Input => {
                wake::ready(command, view, ReadyReason::Input, now)
                    .write(Write::Blocker(blocker.resolved("input", now)))
            }
            _ => Bundle::new(command).expect(run.expected()),
        },
        RunTag::Ok | RunTag::Error | RunTag::Timeout | RunTag::Cancelled => {
            return Err(Illegal { what: run.id, state: run.tag() });
        }
    };
    let number = view.last_input + 1;
    let input = Input { id, task: run.task, number, text: text.to_owned(), at: now, consumed_by: None };
    let body = EventBody::InputAccepted { run: run.id, input: number };
    // Two at once would take the same number: the store keeps a number for one input, and refuses the other.
    bundle = bundle.write(Write::Input(input));
    Ok(bundle.event(run.task, now, body))
}
