//! The order inside a session: one run at its head, which may go on; every other waits behind it.

use std::collections::{BTreeMap, BTreeSet};

use ostler_kernel::{Run, RunId, RunState, Session, SessionId, run::Ready};

#[derive(Default)]
pub struct Sessions {
    rows: BTreeMap<SessionId, Session>,
    /// Runs that have not ended, by their place.
    unfinished: BTreeMap<SessionId, BTreeSet<(u64, RunId)>>,
}

impl Sessions {
    /// What is wrong with a session's row that was written, if anything is.
    pub fn written(&mut self, session: &Session) -> Option<String> {
        let before = self.rows.insert(session.id, session.clone()).map_or(0, |before| before.version);
        (session.version != before + 1).then(|| {
            format!(
                "promise 4: {} was written by someone who didn't know it as it was (version {} after {before})",
                session.id, session.version
            )
        })
    }

    pub fn run_written(&mut self, run: &Run) {
        let unfinished = self.unfinished.entry(run.session).or_default();
        if run.is_terminal() {
            unfinished.remove(&(run.order, run.id));
        } else {
            unfinished.insert((run.order, run.id));
        }
    }

    /// What is wrong with the session between two commits, if anything is.
    pub fn problem(&self, session: SessionId, runs: &BTreeMap<RunId, Run>) -> Option<String> {
        let unfinished = self.unfinished.get(&session)?;
        let in_order: Vec<&Run> = unfinished.iter().filter_map(|(_, id)| runs.get(id)).collect();
        if in_order.iter().filter(|run| run.is_live()).count() > 1 {
            return Some(format!("promise 4: {session} has two live runs"));
        }
        let head = in_order.first().map(|run| run.id);
        let known = self.rows.get(&session)?.head;
        if known != head {
            return Some(format!("promise 4: {session} has {head:?} at its head, and says {known:?}"));
        }
        in_order.iter().find_map(|run| match (Some(run.id) == head, waits_its_turn(run)) {
            (true, true) => {
                Some(format!("promise 4: {} is next in {session}, and nobody let it go on", run.id))
            }
            (false, false) => Some(format!("promise 4: {} goes on before its turn in {session}", run.id)),
            (true, false) | (false, true) => None,
        })
    }
}

fn waits_its_turn(run: &Run) -> bool {
    matches!(run.state, RunState::Queued { ready: Ready::AfterSession })
}
