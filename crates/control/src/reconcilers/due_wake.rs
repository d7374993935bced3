//! Wakes runs whose time has come and ends those whose deadline passed. Sleeps until the next one is due, or
//! until the store says that there is a new one.

use std::time::Duration;

use ostler_kernel::{Run, Timestamp, run, runtime::timeout};
use ostler_store::{StoreError, StoreExt};

use crate::Control;

/// The longest sleep: a calendar that is set forward, or a lost hint, costs no more than this.
const SWEEP: Duration = Duration::from_secs(30);

const AT_ONCE: usize = 256;

impl Control {
    pub(crate) async fn wake_due(&self) {
        let mut hints = self.store.watch();
        loop {
            let due = hints.borrow_and_update().due;
            let pause = match self.wake_once().await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(%error, "what is due could not be woken");
                    Duration::from_secs(1)
                }
            };
            let changed = hints.wait_for(|hint| hint.due != due);
            if let Ok(Err(_)) = timeout(&*self.runtime, pause, changed).await {
                return;
            }
        }
    }

    /// Wakes what is due, and says how long nothing will be.
    async fn wake_once(&self) -> Result<Duration, StoreError> {
        loop {
            let now = self.runtime.now();
            let due = self.store.due(now, AT_ONCE).await?;
            if due.is_empty() {
                let next = self.store.next_due().await?;
                return Ok(next.map_or(SWEEP, |next| next.since(now).clamp(Duration::from_millis(1), SWEEP)));
            }
            for run in due {
                self.wake_or_expire(&run, now).await?;
            }
        }
    }

    async fn wake_or_expire(&self, run: &Run, now: Timestamp) -> Result<(), StoreError> {
        let Some(view) = self.store.run_view(run.id).await? else { return Ok(()) };
        let expired = view.run.deadline.is_some_and(|deadline| deadline <= now);
        let bundle = if expired { run::cancel::expire(&view, now) } else { run::wake::wake(&view, now) };
        // Not due any more, or someone was quicker: either way it is taken care of.
        let Ok(bundle) = bundle else { return Ok(()) };
        if self.commit(bundle).await?.is_ok() && expired {
            self.stopped(&view);
        }
        Ok(())
    }
}
