//! Forgets plans that no task names any more.
//!
//! A server that is about to accept a task may hold a plan that nobody names yet. So it puts each plan that it uses again and
//! again, and only what was not put for much longer is looked at here: see [`is_worn`].

use std::{collections::BTreeSet, time::Duration};

use ostler_kernel::{BlobId, Bundle};
use ostler_store::{StoreError, StoreExt};

use crate::Control;

/// Tasks looked through at a time.
const AT_ONCE: usize = 1000;

/// Soon after a start, so that those who are often restarted come to it too.
const FIRST: Duration = Duration::from_secs(600);

/// Whether a plan that was put so long ago is to be put again before it is used.
pub fn is_worn(age: Duration, keep: Duration) -> bool {
    age >= pause(keep)
}

/// Between two looks, and between two puts of a plan that is used.
fn pause(keep: Duration) -> Duration {
    keep / 16
}

impl Control {
    pub(crate) async fn forget_plans(&self) {
        let Some(keep) = self.config.keep_plans else { return };
        let mut wait = pause(keep).min(FIRST);
        loop {
            self.runtime.sleep(wait).await;
            wait = pause(keep);
            match self.forget_unused_plans(keep).await {
                Ok(0) => {}
                Ok(forgotten) => tracing::info!(forgotten, "plans that no task names were forgotten"),
                Err(error) => tracing::warn!(%error, "plans that no task names could not be forgotten"),
            }
        }
    }

    async fn forget_unused_plans(&self, keep: Duration) -> Result<usize, StoreError> {
        let now = self.runtime.now();
        let put_by = now.before(keep);
        let mut unused: BTreeSet<BlobId> = self.store.old_blobs(put_by).await?.into_iter().collect();
        // Another server's clock may be ahead.
        let (all, mut after) = (now.after(keep), None);
        while !unused.is_empty() {
            let tasks = self.store.old_tasks(all, after, AT_ONCE).await?;
            let Some(last) = tasks.last() else { break };
            after = Some(last.task.id);
            for plan in tasks.iter().flat_map(|row| row.task.request.plans()) {
                unused.remove(&plan);
            }
        }
        let mut forgotten = 0;
        for unused in unused.into_iter().collect::<Vec<_>>().chunks(AT_ONCE) {
            let bundles = unused.iter().map(|plan| Bundle::forget_blob(*plan, put_by)).collect();
            forgotten += self.commit_each(bundles).await?;
        }
        Ok(forgotten)
    }
}
