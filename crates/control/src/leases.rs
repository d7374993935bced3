//! What this server knows of the runs it handed out, so that a journal write needs no read first. Only a
//! cache: the store judges every write, and a refusal drops the entry.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ostler_kernel::{Bundle, RunId, Write, run::RunView};

#[derive(Default)]
pub struct Leases(Mutex<BTreeMap<RunId, RunView>>);

impl Leases {
    pub fn get(&self, run: RunId) -> Option<RunView> {
        self.lock().get(&run).cloned()
    }

    pub fn put(&self, view: RunView) {
        self.lock().insert(view.run.id, view);
    }

    pub fn drop(&self, run: RunId) {
        self.lock().remove(&run);
    }

    /// Follows a journal write that counted.
    pub fn absorb(&self, run: RunId, bundle: &Bundle) {
        let mut leases = self.lock();
        let Some(view) = leases.get_mut(&run) else { return };
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
