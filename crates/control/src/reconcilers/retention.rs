//! Forgets tasks that ended long ago, or that are too many, so that a store does not grow without end, and puts those that
//! ended a while ago out of sight. So do conversations that nobody goes on with, and workers that are gone. By age it walks from the oldest task on; those that are not over, or not for long
//! enough, are passed by. What was told of resources that are gone goes too.

use std::{collections::BTreeSet, time::Duration};

use ostler_kernel::{
    Bundle, EventBody, Expect, TaskId, Timestamp,
    event::ResourceChanged,
    resource::{ResourceKey, forget_log, log_of},
    task::forget::forget,
};
use ostler_store::{StoreError, StoreExt, TaskFilter, TaskRow};

use crate::{Control, ControlConfig, commands::archive::archive};

const AT_ONCE: usize = 100;

/// Ended, as lists name it.
const ENDED: [&str; 5] = ["succeeded", "failed", "dead_letter", "cancelled", "dropped"];

/// Between two walks: part of the time that is kept, and never much work at a time.
fn pause(config: &ControlConfig) -> Option<Duration> {
    let by_count = config.keep_tasks.map(|_| A_WHILE);
    let ages = [config.keep, config.archive_after, config.keep_sessions, config.keep_workers];
    let by_age = ages.into_iter().flatten().map(|age| age / 16);
    let shortest = by_age.chain(by_count).min()?;
    Some(shortest.clamp(Duration::from_secs(1), Duration::from_secs(600)))
}

const A_WHILE: Duration = Duration::from_secs(60);

impl Control {
    pub(crate) async fn forget_old_tasks(&self) {
        let Some(pause) = pause(&self.config) else { return };
        let mut archived_upto = None;
        loop {
            self.runtime.sleep(pause).await;
            if let Err(error) = self.tidy_up(&mut archived_upto).await {
                tracing::warn!(%error, "what is old could not be forgotten");
            }
        }
    }

    async fn tidy_up(&self, archived_upto: &mut Option<TaskId>) -> Result<(), StoreError> {
        let ControlConfig { keep, keep_tasks, archive_after, keep_sessions, keep_workers, .. } = self.config;
        let mut forgotten = 0;
        if let Some(keep) = keep {
            forgotten += self.forget_ended_before(keep).await?;
            self.forget_changes_before(keep).await?;
        }
        if let Some(count) = keep_tasks {
            forgotten += self.forget_all_but(count).await?;
        }
        if forgotten > 0 {
            tracing::info!(forgotten, "old tasks were forgotten");
        }
        if let Some(keep) = keep_sessions {
            self.forget_idle_sessions(self.runtime.now().before(keep)).await?;
        }
        if let Some(keep) = keep_workers {
            self.forget_gone_workers(keep).await?;
        }
        match archive_after {
            Some(age) => self.archive_ended_before(self.runtime.now().before(age), archived_upto).await,
            None => Ok(()),
        }
    }

    /// Of each namespace the newest stay, and all that have not ended.
    async fn forget_all_but(&self, count: usize) -> Result<usize, StoreError> {
        let (now, mut forgotten) = (self.runtime.now(), 0);
        for namespace in self.store.namespaces().await? {
            let mut before = self.store.nth_task(namespace.clone(), count.saturating_sub(1)).await?;
            while before.is_some() {
                let surplus = TaskFilter {
                    namespace: Some(namespace.clone()),
                    states: ENDED.map(str::to_owned).to_vec(),
                    archived: true,
                    before,
                    limit: AT_ONCE,
                    ..TaskFilter::default()
                };
                let rows = self.store.tasks(surplus).await?;
                before = rows.last().map(|row| row.task.id);
                let bundles: Vec<_> = rows.iter().filter_map(|row| forget(&row.task, now)).collect();
                forgotten += self.commit_each(bundles).await?;
            }
        }
        Ok(forgotten)
    }

    /// Walks from where the last walk found nothing left to do.
    async fn archive_ended_before(&self, by: Timestamp, upto: &mut Option<TaskId>) -> Result<(), StoreError> {
        let (mut after, mut is_gapless) = (*upto, true);
        loop {
            let old = self.store.old_tasks(by, after, AT_ONCE).await?;
            let Some(last) = old.last() else { return Ok(()) };
            after = Some(last.task.id);
            let has_ended = |row: &TaskRow| row.task.ended_at.is_some_and(|ended| ended <= by);
            is_gapless &= old.iter().all(|row| row.archived_at.is_some() || has_ended(row));
            let ended = old.iter().filter(|row| row.archived_at.is_none() && has_ended(row));
            let now = self.runtime.now();
            self.commit_each(ended.map(|row| archive(&row.task, now)).collect()).await?;
            if is_gapless {
                *upto = after;
            }
        }
    }

    /// One that is refused was forgotten by another server.
    pub(crate) async fn commit_each(&self, bundles: Vec<Bundle>) -> Result<usize, StoreError> {
        if bundles.is_empty() {
            return Ok(0);
        }
        Ok(self.store.commit(bundles).await?.iter().filter(|result| result.is_ok()).count())
    }

    async fn forget_ended_before(&self, keep: Duration) -> Result<usize, StoreError> {
        let by = self.runtime.now().before(keep);
        let (mut after, mut forgotten) = (None, 0);
        loop {
            let old = self.store.old_tasks(by, after, AT_ONCE).await?;
            let Some(last) = old.last() else { return Ok(forgotten) };
            after = Some(last.task.id);
            let bundles: Vec<_> = old.iter().filter_map(|row| forget(&row.task, by)).collect();
            forgotten += self.commit_each(bundles).await?;
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
