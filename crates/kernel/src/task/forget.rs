//! A task that ended long ago is forgotten: its rows go, its name and its key are free again. A conversation that its
//! caller named stays, for others may go on with it.

use serde::{Deserialize, Serialize};

use super::Task;
use crate::{Bundle, Command, Expect, RunId, SessionId, TaskId, Timestamp, Write};

/// What goes, all that belongs to it included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    pub task: TaskId,
    pub runs: Vec<RunId>,
    /// Those that were the task's alone.
    pub sessions: Vec<SessionId>,
    pub namespace: String,
    pub name: String,
    pub key: Option<String>,
}

/// The bundle that forgets it, if it ended by then.
pub fn forget(task: &Task, ended_by: Timestamp) -> Option<Bundle> {
    task.ended_at.filter(|ended| *ended <= ended_by)?;
    let forgotten = Forgotten {
        task: task.id,
        runs: task.runs().collect(),
        sessions: match task.request.session_key {
            None => task.past.iter().map(|past| past.session).chain([task.session]).collect(),
            Some(_) => Vec::new(),
        },
        namespace: task.namespace.clone(),
        name: task.name.clone(),
        key: task.request.idempotency_key.clone(),
    };
    let bundle = Bundle::new(Command::Forget).expect(Expect::Ended { run: task.run });
    Some(bundle.write(Write::Forget(forgotten)))
}
