//! What this server knows of the runs it handed out, so that a journal write needs no read first. Only a
//! cache: the store judges every write, and a refusal drops the entry.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ostler_kernel::{Bundle, Run, RunId, TaskId, Write, bundle::WriteKey, run::RunView};
use ostler_link::Caller;

#[derive(Default)]
pub struct Leases(Mutex<BTreeMap<RunId, RunView>>);

impl Leases {
    pub fn get(&self, run: RunId) -> Option<RunView> {
        self.lock().get(&run).cloned()
    }

    /// Whether this server knows that the run is in these hands.
    pub fn is_held(&self, run: RunId, task: TaskId, caller: &Caller) -> bool {
        self.lock().get(&run).is_some_and(|view| view.run.task == task && is_held_by(&view.run, caller))
    }

    pub fn knows(&self, run: RunId) -> bool {
        self.lock().contains_key(&run)
    }

    /// Forgets what a worker does not hold any more, of all it was given up to its claim `claimed`.
    pub fn keep_held(&self, caller: &Caller, claimed: u64, held: &[(RunId, u64)]) {
        self.lock().retain(|id, view| {
            let run = &view.run;
            let is_older = run.lease().is_some_and(|lease| lease.claim <= claimed);
            !(is_older && is_held_by(run, caller)) || held.contains(&(*id, run.epoch))
        });
    }

    pub fn of_task(&self, task: TaskId) -> Option<RunView> {
        self.lock().values().find(|view| view.task.id == task).cloned()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// What was read may be older than what is known: a claim is sent again while its run goes on. Says whether it is in
    /// hands that it was not known to be in.
    pub fn put(&self, view: RunView) -> bool {
        let mut leases = self.lock();
        let place = |view: &RunView| (view.run.epoch, view.run.journal);
        let known = leases.get(&view.run.id).map(place);
        let is_new = known.is_none_or(|(epoch, _)| epoch < view.run.epoch);
        if known.is_none_or(|known| known < place(&view)) {
            leases.insert(view.run.id, view);
        }
        is_new
    }

    pub fn drop(&self, run: RunId) {
        self.lock().remove(&run);
    }

    /// Follows a journal write that counted. A view that is not the one right before it is forgotten.
    pub fn absorb(&self, key: WriteKey, bundle: &Bundle) {
        let mut leases = self.lock();
        let Some(view) = leases.get_mut(&key.run) else { return };
        if (view.run.epoch, view.run.journal + 1) != (key.epoch, key.number) {
            leases.remove(&key.run);
            return;
        }
        for write in &bundle.writes {
            match write {
                Write::RunProgress(run) => view.run = run.clone(),
                Write::Step(step) if step.is_open() => view.open_steps.push(step.clone()),
                Write::Step(step) => view.open_steps.retain(|open| open.id != step.id),
                Write::Consume { upto, .. } => view.consumed_input = *upto,
                _ => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, RunView>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub fn is_held_by(run: &Run, caller: &Caller) -> bool {
    run.lease().is_some_and(|lease| lease.worker == caller.worker && lease.incarnation == caller.incarnation)
}
