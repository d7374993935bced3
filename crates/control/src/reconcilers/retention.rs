//! Forgets tasks that ended long ago, so that a store does not grow without end. Walks from the oldest task on; those
//! that are not over, or not for long enough, are passed by. What was told of resources that are gone goes too.

use std::{collections::BTreeSet, time::Duration};

use ostler_kernel::{
    EventBody, Expect, TaskId, Timestamp,
    event::ResourceChanged,
    resource::{ResourceKey, forget_log, log_of},
    task::forget::forget,
};
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
            if let Err(error) = self.forget_changes_before(keep).await {
                tracing::warn!(%error, "old changes of resources could not be forgotten");
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

    /// Walks through the oldest part of the log, of which little is left once old tasks are gone.
    async fn forget_changes_before(&self, keep: Duration) -> Result<(), StoreError> {
        let by = self.runtime.now().before(keep);
        let (mut position, mut seen) = (0, BTreeSet::new());
        loop {
            let events = self.store.log(position, AT_ONCE).await?;
            let Some(last) = events.last() else { return Ok(()) };
            position = last.position;
            for event in events {
                if event.at > by {
                    return Ok(());
                }
                if let EventBody::ResourceChanged(changed) = &event.body
                    && seen.insert(event.task)
                    && let Some(seen) = self.past(changed, event.task, by).await?
                {
                    self.store.commit(vec![forget_log(event.task).expect(seen)]).await?;
                }
            }
        }
    }

    /// Whether the log of a resource tells nothing that is so, and told nothing lately: then what that was seen by. If the
    /// resource is made anew meanwhile, its log stays.
    async fn past(
        &self,
        changed: &ResourceChanged,
        log: TaskId,
        by: Timestamp,
    ) -> Result<Option<Expect>, StoreError> {
        let ResourceChanged { kind, namespace, name, .. } = changed.clone();
        let key = ResourceKey { kind, namespace, name };
        let version = self.store.resource(key.clone()).await?.map_or(0, |present| present.version);
        if version > 0 && log_of(&key, version) == log {
            return Ok(None);
        }
        let is_old = self.store.events(log, 0, usize::MAX).await?.iter().all(|event| event.at <= by);
        Ok(is_old.then_some(Expect::Resource { key, version }))
    }
}
