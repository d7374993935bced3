//! What namespaces and agents may use: kept at hand, made anew whenever a resource changed.

mod admission;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ostler_kernel::queue::{self, Lane, Requirements, Share, Shares};
use ostler_spec::{Kind, QuotaSpec, Spec, TaskSpec};
use ostler_store::StoreExt;
use tokio::sync::watch;

use self::admission::{Admissions, Scope, Seat};
use crate::{Control, ControlError};

#[derive(Default)]
pub struct Quotas {
    known: watch::Sender<Arc<Known>>,
    admissions: Admissions,
    /// How many runs of which agent may be at work, as this server has written it to the store. Claims hold to what
    /// stands there.
    written: Mutex<BTreeMap<AgentName, u32>>,
}

/// With its namespace.
type AgentName = (String, String);

#[derive(Debug, Default)]
pub struct Known {
    /// How often they have changed. A changed one may let someone in.
    pub n_changes: u64,
    /// By namespace and, where it is for one agent, its name.
    limits: BTreeMap<Scope, Limits>,
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

/// The calendars of servers may be so far apart.
const APART: Duration = Duration::from_secs(10);

/// How soon to look again whether a queue has become shorter.
const SOON: Duration = Duration::from_secs(5);

impl Quotas {
    pub fn shares(&self) -> Shares {
        self.known().shares.clone()
    }

    pub fn watch(&self) -> watch::Receiver<Arc<Known>> {
        self.known.subscribe()
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.borrow())
    }

    fn written(&self) -> BTreeMap<AgentName, u32> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Most changes of resources are nothing to them.
    fn replace(&self, limits: BTreeMap<Scope, Limits>) {
        self.known.send_if_modified(|known| {
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
        self.write_limits().await
    }

    /// Has the limits of agents hold for what waits already, too. Each server writes what it has heard of, so that one that
    /// heard late, and accepted something meanwhile, puts right what it wrote then.
    async fn write_limits(&self) -> Result<(), ControlError> {
        let (before, now) = (self.quotas.written(), self.quotas.known().agents());
        let gone = before.keys().filter(|agent| !now.contains_key(*agent)).map(|agent| (agent, None));
        let there = now.iter().filter(|(agent, limit)| before.get(*agent) != Some(*limit));
        for ((namespace, agent), limit) in gone.chain(there.map(|(agent, limit)| (agent, Some(*limit)))) {
            // It expects nothing, so nothing refuses it.
            drop(self.commit(queue::limit(namespace, agent, limit)).await?);
        }
        *self.quotas.written.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(())
    }

    /// The lane of an agent's next run.
    pub(crate) fn lane(&self, namespace: &str, agent: &str, spec: &TaskSpec) -> Lane {
        self.lane_now(&Lane { requires: requirements(spec), ..Lane::new(namespace, agent) })
    }

    /// The same lane, within the limits that hold now.
    pub(crate) fn lane_now(&self, lane: &Lane) -> Lane {
        let known = self.quotas.known();
        let of = |agent: Option<&str>| known.of(&lane.namespace, agent).concurrent;
        Lane { limit: of(Some(&lane.class)), capped: of(None).is_some(), ..lane.clone() }
    }

    /// Refuses a task more than there may be, with the time after which it is worth another try. Who holds the seat may
    /// accept one; none where nothing is limited.
    pub(crate) async fn admit(&self, namespace: &str, agent: &str) -> Result<Option<Seat<'_>>, ControlError> {
        let mut turn = None;
        loop {
            let limited = self.quotas.known().limited(namespace, agent);
            if limited.is_empty() {
                return Ok(None);
            }
            let look = self.quotas.admissions.look(limited.iter().map(|(scope, _)| scope.clone()));
            let rooms = self.rooms(&limited).await?;
            if let Some(seat) = look.admit(&rooms) {
                return Ok(Some(seat));
            }
            match turn {
                None => turn = Some(look.turn().await),
                Some(_) => look.over().await,
            }
        }
    }

    /// The same at this moment, for a task that is not accepted.
    pub(crate) async fn check_quotas(&self, namespace: &str, agent: &str) -> Result<(), ControlError> {
        self.rooms(&self.quotas.known().limited(namespace, agent)).await.map(drop)
    }

    /// How many tasks more there may be in each of the scopes.
    async fn rooms(&self, limited: &[(Scope, Limits)]) -> Result<Vec<usize>, ControlError> {
        let mut rooms = Vec::new();
        for (scope, limits) in limited {
            let in_queue = self.room_in_queue(scope, limits.queued).await?;
            rooms.push(in_queue.min(self.room_in_minute(scope, limits.per_minute).await?));
        }
        Ok(rooms)
    }

    async fn room_in_queue(&self, scope: &Scope, limit: Option<u32>) -> Result<usize, ControlError> {
        let Some(limit) = limit else { return Ok(usize::MAX) };
        let most = limit as usize;
        let (namespace, class) = scope.clone();
        let ready = self.store.ready(namespace, class, most).await?;
        if ready < most {
            return Ok(most - ready);
        }
        let message =
            format!("{limit} runs of {} wait for a worker, which is as many as may", name_of(scope));
        Err(ControlError::TooMany { message, retry_after: SOON })
    }

    async fn room_in_minute(&self, scope: &Scope, limit: Option<u32>) -> Result<usize, ControlError> {
        let Some(limit) = limit else { return Ok(usize::MAX) };
        let now = self.runtime.now();
        let (namespace, class) = scope.clone();
        // What is dated later than that was dated by a calendar that was wrong, and says nothing about this minute.
        let window = (now.before(MINUTE), now.after(APART));
        let accepted = self.store.accepted(namespace, class, window, limit as usize).await?;
        if accepted.count < limit as usize {
            return Ok(limit as usize - accepted.count);
        }
        // The one that has to be a minute old before there is room again.
        let waited = accepted.oldest.map_or(Duration::ZERO, |at| now.since(at));
        let message = format!("{} takes {limit} tasks a minute", name_of(scope));
        Err(ControlError::TooMany { message, retry_after: MINUTE.saturating_sub(waited) })
    }
}

/// Whose limits they are.
fn name_of((namespace, agent): &Scope) -> String {
    match agent {
        None => format!("namespace {namespace:?}"),
        Some(agent) => format!("agent {agent:?}"),
    }
}

impl Known {
    /// The limits on what is accepted for an agent: its namespace's and its own, if there are any.
    fn limited(&self, namespace: &str, agent: &str) -> Vec<(Scope, Limits)> {
        let of = |agent: Option<&str>| {
            ((namespace.to_owned(), agent.map(str::to_owned)), self.of(namespace, agent))
        };
        let mut limited = vec![of(None), of(Some(agent))];
        limited.retain(|(_, limits)| limits.per_minute.is_some() || limits.queued.is_some());
        limited
    }

    /// How many runs of which agent may be at work, where that is limited.
    fn agents(&self) -> BTreeMap<AgentName, u32> {
        let agent = |((namespace, agent), limits): (&Scope, &Limits)| {
            Some(((namespace.clone(), agent.clone()?), limits.concurrent?))
        };
        self.limits.iter().filter_map(agent).collect()
    }

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

fn shares(limits: &BTreeMap<Scope, Limits>) -> Shares {
    let of_namespaces = limits.iter().filter(|((_, agent), _)| agent.is_none());
    let share = |limits: &Limits| Share { weight: limits.weight.unwrap_or(1), limit: limits.concurrent };
    of_namespaces.map(|((namespace, _), limits)| (namespace.clone(), share(limits))).collect()
}

pub(crate) fn requirements(spec: &TaskSpec) -> Requirements {
    let asked = &spec.requirements;
    Requirements {
        region: asked.region.clone(),
        capabilities: asked.gpu.then(|| "gpu".to_owned()).into_iter().collect(),
        model: asked.model.clone(),
    }
}
