//! A gateway that asks no endpoint for more than its limits allow, and leaves one alone that has failed too often. Calls
//! wait for their turn in order. Who would wait for long is told so, and comes back later: meanwhile its slot is
//! somebody else's. Kept by each process for itself, and in memory: a limit is no promise about money.

mod breaker;
mod desk;
mod turns;
mod window;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use ostler_kernel::{
    Failure, Runtime,
    plan::{ModelLimits, ModelPlan},
};

use ostler_net::Held;

use crate::{Gateway, ModelRequest, Part, Parts, estimate::estimate};
use breaker::{Change, Verdict};
use desk::{Desk, Permit, Refused};

pub struct Limited<G> {
    inner: Arc<G>,
    runtime: Arc<dyn Runtime>,
    desks: Mutex<BTreeMap<Key, Arc<Desk>>>,
}

/// An endpoint: its namespace, its name, and where it leads. Set right, one that led nowhere begins anew.
type Key = [String; 4];

/// Endpoints at hand. Past it, those that nothing is known of are forgotten; if there are few of these, then those too
/// that no call came to for longest, whatever trouble they had.
const ROOM: usize = 1024;
const ROOM_LEFT: usize = ROOM / 4;

/// A run that is told to come back later than this sleeps, and uses none of its retries: the loop's `LONGEST_WAIT`.
const SLEEPS_FROM: Duration = Duration::from_millis(10_001);

/// Those who come back don't come all at once.
const SPREAD_MS: u64 = 2_000;

/// An endpoint that fails is a failure and not a wait: the run's retries are for that. So nobody is told to sleep.
const LONGEST_REST: Duration = Duration::from_secs(10);

impl<G: Gateway> Limited<G> {
    pub fn new(inner: G, runtime: Arc<dyn Runtime>) -> Self {
        Self { inner: Arc::new(inner), runtime, desks: Mutex::default() }
    }

    fn desk(&self, endpoint: &ModelPlan) -> Arc<Desk> {
        let ModelPlan { namespace, endpoint, provider, base_url, .. } = endpoint;
        let key = [namespace, endpoint, provider, base_url].map(String::clone);
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        if desks.len() >= ROOM && !desks.contains_key(&key) {
            let now = self.runtime.monotonic();
            desks.retain(|_, desk| Arc::strong_count(desk) > 1 || !desk.is_idle(now));
            forget_oldest(&mut desks);
        }
        Arc::clone(desks.entry(key).or_default())
    }
}

/// Makes room, of those that no call is at.
fn forget_oldest(desks: &mut BTreeMap<Key, Arc<Desk>>) {
    let n_surplus = (desks.len() + ROOM_LEFT).saturating_sub(ROOM);
    let unused = desks.iter().filter(|(_, desk)| Arc::strong_count(desk) == 1);
    let mut oldest: Vec<(Duration, Key)> = unused.map(|(key, desk)| (desk.used_at(), key.clone())).collect();
    oldest.sort_unstable();
    for (_, key) in oldest.into_iter().take(n_surplus) {
        desks.remove(&key);
    }
}

impl<G: Gateway + 'static> Gateway for Limited<G> {
    fn stream(&self, request: ModelRequest) -> Parts {
        let call = Call {
            desk: self.desk(&request.endpoint),
            inner: Arc::clone(&self.inner),
            runtime: Arc::clone(&self.runtime),
            request,
        };
        Box::pin(stream::unfold(Phase::Begin(Box::new(call)), Phase::advance))
    }
}

struct Call<G> {
    desk: Arc<Desk>,
    inner: Arc<G>,
    runtime: Arc<dyn Runtime>,
    request: ModelRequest,
}

/// Where a call stands.
enum Phase<G> {
    Begin(Box<Call<G>>),
    UnderWay { parts: Parts, permit: Permit, endpoint: String },
    Ended,
}

impl<G: Gateway> Phase<G> {
    async fn advance(self) -> Option<(Result<Part, Failure>, Self)> {
        let (mut parts, permit, endpoint) = match self {
            Phase::Ended => return None,
            Phase::UnderWay { parts, permit, endpoint } => (parts, permit, endpoint),
            Phase::Begin(call) => match call.begin().await {
                Ok(begun) => begun,
                Err(failure) => return Some((Err(failure), Phase::Ended)),
            },
        };
        let (verdict, tokens) = match parts.next().await {
            Some(Ok(part @ (Part::Text(_) | Part::Thinking(_)))) => {
                return Some((Ok(part), Phase::UnderWay { parts, permit, endpoint }));
            }
            Some(Ok(Part::Done(completion))) => {
                let tokens = completion.usage.map(|usage| usage.total());
                tell(&endpoint, permit.end(Verdict::Alive, tokens));
                return Some((Ok(Part::Done(completion)), Phase::Ended));
            }
            Some(Err(failure)) => {
                let tokens = failure.spent.as_ref().map(|spent| spent.total());
                tell(&endpoint, permit.end(Verdict::of(&failure), tokens));
                return Some((Err(failure), Phase::Ended));
            }
            None => (Verdict::Fault, None),
        };
        tell(&endpoint, permit.end(verdict, tokens));
        None
    }
}

impl<G: Gateway> Call<G> {
    async fn begin(self: Box<Self>) -> Result<(Parts, Permit, String), Failure> {
        let limits = &self.request.endpoint.limits;
        // Counting takes its time, and is done only where it counts.
        let tokens = limits.tokens_per_minute.map_or(0, |_| estimate(&self.request, &[]).total());
        let (since, desk) = (self.runtime.monotonic(), Arc::clone(&self.desk));
        let entered = desk.enter(Arc::clone(&self.runtime), limits, tokens).await;
        Held::Turn.for_(self.runtime.monotonic().saturating_sub(since));
        let permit = entered.map_err(|refused| {
            let spread = Duration::from_millis(self.runtime.random() % SPREAD_MS);
            refused_failure(refused, &self.request.endpoint.endpoint, limits, spread)
        })?;
        let endpoint = self.request.endpoint.endpoint.clone();
        Ok((self.inner.stream(self.request), permit, endpoint))
    }
}

fn refused_failure(refused: Refused, endpoint: &str, limits: &ModelLimits, spread: Duration) -> Failure {
    match refused {
        Refused::Busy { waited, for_ } => {
            let when = match for_ {
                Some(for_) => format!("has room again in {} s", for_.as_millis().div_ceil(1000)),
                None => format!("gave no turn within {} s", waited.as_millis().div_ceil(1000)),
            };
            let message = format!("endpoint `{endpoint}` is at its limits ({}) and {when}", words(limits));
            let after = for_.unwrap_or_default().max(SLEEPS_FROM) + spread;
            Failure::transient("model_endpoint_busy", message).with_retry_after(Some(after))
        }
        Refused::CircuitOpen { for_ } => {
            let message = format!(
                "endpoint `{endpoint}` has failed too often in a row, and is left alone for {} s more",
                for_.as_millis().div_ceil(1000)
            );
            let after = for_.min(LONGEST_REST);
            Failure::transient("model_circuit_open", message).with_retry_after(Some(after))
        }
    }
}

fn words(limits: &ModelLimits) -> String {
    let named = |name: &str, most: Option<u64>| most.map(|most| format!("{name}: {most}"));
    let all = [
        named("concurrency", limits.concurrency.map(u64::from)),
        named("requests_per_minute", limits.requests_per_minute.map(u64::from)),
        named("tokens_per_minute", limits.tokens_per_minute),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn tell(endpoint: &str, change: Option<Change>) {
    match change {
        Some(Change::Opened { for_ }) => {
            let seconds = for_.as_secs_f64();
            tracing::warn!(endpoint, seconds, "the endpoint failed too often in a row and is left alone");
        }
        Some(Change::Closed) => tracing::info!(endpoint, "the endpoint answers again"),
        None => {}
    }
}

#[cfg(test)]
mod ground;
#[cfg(test)]
mod tests;
