//! What namespaces and agents may use: kept at hand, made anew whenever a resource changed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ostler_kernel::queue::{Lane, Requirements, Share, Shares};
use ostler_spec::{Kind, QuotaSpec, Spec, TaskSpec};
use ostler_store::StoreExt;
use tokio::sync::watch;

use crate::{Control, ControlError};

#[derive(Default)]
pub struct Quotas(watch::Sender<Arc<Known>>);

#[derive(Debug, Default)]
pub struct Known {
    /// How often they have changed. A changed one may let someone in.
    pub n_changes: u64,
    /// By namespace and, where it is for one agent, its name.
    limits: BTreeMap<(String, Option<String>), Limits>,
    shares: Shares,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Limits {
    weight: Option<u32>,
    concurrent: Option<u32>,
    per_minute: Option<u32>,
    queued: Option<u32>,
}

const AT_ONCE: usize = 500;
const MINUTE: Duration = Duration::from_secs(60);

/// How soon to look again whether a queue has become shorter.
const SOON: Duration = Duration::from_secs(5);

impl Quotas {
    pub fn shares(&self) -> Shares {
        self.known().shares.clone()
    }

    pub fn watch(&self) -> watch::Receiver<Arc<Known>> {
        self.0.subscribe()
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.0.borrow())
    }

    /// Most changes of resources are nothing to them.
    fn replace(&self, limits: BTreeMap<(String, Option<String>), Limits>) {
        self.0.send_if_modified(|known| {
            let is_changed = known.limits != limits;
            if is_changed {
                *known = Arc::new(Known { n_changes: known.n_changes + 1, shares: shares(&limits), limits });
            }
            is_changed
        });
    }
}

impl Control {
    /// Reads quotas at the start and after every change of a resource.
    pub(crate) async fn follow_quotas(&self) {
        let mut hints = self.store.watch();
        loop {
            let seen = hints.borrow_and_update().resources;
            if let Err(error) = self.read_quotas().await {
                tracing::warn!(%error, "quotas can't be read; the former ones hold");
                self.runtime.sleep(SOON).await;
                continue;
            }
            if hints.wait_for(|hint| hint.resources != seen).await.is_err() {
                return;
            }
        }
    }

    pub(crate) async fn read_quotas(&self) -> Result<(), ControlError> {
        let (mut limits, mut after) = (BTreeMap::new(), None);
        loop {
            let page = self.resources(Kind::Quota, None, after, AT_ONCE).await?;
            let is_last = page.len() < AT_ONCE;
            after = page.last().map(|last| (last.metadata.namespace.clone(), last.metadata.name.clone()));
            for resource in page {
                let Spec::Quota(quota) = resource.spec else { continue };
                let of: &mut Limits =
                    limits.entry((resource.metadata.namespace, quota.agent.clone())).or_default();
                of.tighten(&quota);
            }
            if is_last {
                break;
            }
        }
        self.quotas.replace(limits);
        Ok(())
    }

    /// The lane of an agent's next run.
    pub(crate) fn lane(&self, namespace: &str, agent: &str, spec: &TaskSpec) -> Lane {
        let known = self.quotas.known();
        let of = |agent: Option<&str>| known.of(namespace, agent).concurrent;
        Lane {
            limit: of(Some(agent)),
            capped: of(None).is_some(),
            requires: requirements(spec),
            ..Lane::new(namespace, agent)
        }
    }

    /// Refuses a task more than there may be, with the time after which it is worth another try.
    pub(crate) async fn check_quotas(&self, namespace: &str, agent: &str) -> Result<(), ControlError> {
        let known = self.quotas.known();
        for of in [None, Some(agent)] {
            let limits = known.of(namespace, of);
            let whose = match of {
                None => format!("namespace {namespace:?}"),
                Some(agent) => format!("agent {agent:?}"),
            };
            self.check_queue(namespace, of, limits.queued, &whose).await?;
            self.check_rate(namespace, of, limits.per_minute, &whose).await?;
        }
        Ok(())
    }

    async fn check_queue(
        &self,
        namespace: &str,
        agent: Option<&str>,
        limit: Option<u32>,
        whose: &str,
    ) -> Result<(), ControlError> {
        let Some(limit) = limit else { return Ok(()) };
        let most = limit as usize;
        let class = agent.map(str::to_owned);
        if self.store.ready(namespace.to_owned(), class, most).await? < most {
            return Ok(());
        }
        let message = format!("{limit} runs of {whose} wait for a worker, which is as many as may");
        Err(ControlError::TooMany { message, retry_after: SOON })
    }

    async fn check_rate(
        &self,
        namespace: &str,
        agent: Option<&str>,
        limit: Option<u32>,
        whose: &str,
    ) -> Result<(), ControlError> {
        let Some(limit) = limit else { return Ok(()) };
        let message = format!("{whose} takes {limit} tasks a minute");
        if limit == 0 {
            return Err(ControlError::TooMany { message, retry_after: MINUTE });
        }
        let now = self.runtime.now();
        let since = now.before(MINUTE);
        let class = agent.map(str::to_owned);
        // The one that has to be a minute old before there is room again.
        let Some(at) = self.store.accepted(namespace.to_owned(), class, since, limit as usize).await? else {
            return Ok(());
        };
        let retry_after = at.after(MINUTE).since(now);
        Err(ControlError::TooMany { message, retry_after })
    }
}

impl Known {
    fn of(&self, namespace: &str, agent: Option<&str>) -> Limits {
        self.limits.get(&(namespace.to_owned(), agent.map(str::to_owned))).copied().unwrap_or_default()
    }
}

impl Limits {
    fn tighten(&mut self, quota: &QuotaSpec) {
        let least = |known: &mut Option<u32>, said: Option<u32>| {
            *known = known.iter().chain(&said).min().copied();
        };
        least(&mut self.weight, quota.weight);
        least(&mut self.concurrent, quota.max_concurrent);
        least(&mut self.per_minute, quota.tasks_per_minute);
        least(&mut self.queued, quota.max_queued);
    }
}

fn shares(limits: &BTreeMap<(String, Option<String>), Limits>) -> Shares {
    let of_namespaces = limits.iter().filter(|((_, agent), _)| agent.is_none());
    let share = |limits: &Limits| Share { weight: limits.weight.unwrap_or(1), limit: limits.concurrent };
    of_namespaces.map(|((namespace, _), limits)| (namespace.clone(), share(limits))).collect()
}

fn requirements(spec: &TaskSpec) -> Requirements {
    let asked = &spec.requirements;
    Requirements {
        region: asked.region.clone(),
        capabilities: asked.gpu.then(|| "gpu".to_owned()).into_iter().collect(),
        model: asked.model.clone(),
    }
}
