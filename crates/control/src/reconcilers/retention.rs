//! Forgets tasks that ended long ago, so that a store does not grow without end. Walks from the oldest task on; those
//! that are not over, or not for long enough, are passed by.

use std::time::Duration;

use ostler_kernel::task::forget::forget;
use ostler_store::{StoreError, StoreExt};

use crate::Control;

const AT_ONCE: usize = 100;

/// Between two walks: part of the time that is kept, and never much work at a time.
fn pause(keep: Duration) -> Duration {
    (keep / 16).clamp(Duration::from_secs(1), Duration::from_secs(600))
}

impl Control {
    pub(crate) async fn forget_old_tasks(&self) {
        let Some(keep) = self.config.keep else { return };
        loop {
            self.runtime.sleep(pause(keep)).await;
            match self.forget_ended_before(keep).await {
                Ok(0) => {}
                Ok(forgotten) => tracing::info!(forgotten, ?keep, "old tasks were forgotten"),
                Err(error) => tracing::warn!(%error, "old tasks could not be forgotten"),
            }
        }
    }

    async fn forget_ended_before(&self, keep: Duration) -> Result<usize, StoreError> {
        let by = self.runtime.now().before(keep);
        let (mut after, mut forgotten) = (None, 0);
        loop {
            let old = self.store.old_tasks(by, after, AT_ONCE).await?;
            let Some(last) = old.last() else { return Ok(forgotten) };
            after = Some(last.task.id);
            let bundles: Vec<_> = old.iter().filter_map(|row| forget(&row.task, by)).collect();
            if bundles.is_empty() {
                continue;
            }
            // One that is refused was forgotten by another server.
            forgotten += self.store.commit(bundles).await?.iter().filter(|result| result.is_ok()).count();
        }
    }
}
