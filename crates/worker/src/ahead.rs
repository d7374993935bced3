//! All secrets that a run's plan names are looked up beside the first call of an attempt, and nothing of what is said is passed
//! on before: so each of them is hidden, also one that this process has not used yet. A tool may repeat what it was shown in
//! an attempt that another worker began, or what is another tool's.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{
    FutureExt, StreamExt,
    future::{join, join_all},
    stream,
};
use ostler_agent::{
    llm::{Gateway, ModelRequest, Parts, Secrets},
    tools::{ToolRequest, Toolbox, hide_parts},
};
use ostler_kernel::{
    ErrorClass, Failure, Price, Runtime,
    plan::{AgentPlan, AuthPlan, ModelPlan},
};
use tokio::sync::OnceCell;

use crate::secrets::Holder;

/// How long to wait before a server that could not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// What the plan of an attempt names.
#[derive(Default)]
pub(crate) struct Named {
    /// Each secret, and how tools show it.
    references: BTreeMap<String, Vec<AuthPlan>>,
    known: OnceCell<()>,
}

impl Named {
    pub(crate) fn by(plan: &AgentPlan) -> Self {
        let mut references: BTreeMap<String, Vec<AuthPlan>> =
            plan.secret_refs().map(|reference| (reference.to_owned(), Vec::new())).collect();
        for auth in plan.tools.iter().filter_map(|tool| tool.auth.as_ref()) {
            references.entry(auth.secret_ref.clone()).or_default().push(auth.clone());
        }
        Self { references, known: OnceCell::new() }
    }

    /// What a call with this secret of its own looks up by itself need not be known before it.
    fn is_all_known(&self, own: Option<&str>) -> bool {
        self.known.initialized() || self.references.keys().all(|reference| Some(reference.as_str()) == own)
    }
}

/// The gateway or the toolbox, behind which everything said comes to a redactor that knows the plan's secrets.
pub(crate) struct Ahead<T> {
    inner: T,
    look_up: LookUp,
}

#[derive(Clone)]
struct LookUp {
    secrets: Secrets,
    runtime: Arc<dyn Runtime>,
}

impl<T> Ahead<T> {
    pub(crate) fn new(inner: T, secrets: Secrets, runtime: Arc<dyn Runtime>) -> Self {
        Self { inner, look_up: LookUp { secrets, runtime } }
    }
}

#[async_trait]
impl<T: Toolbox> Toolbox for Ahead<T> {
    async fn call(&self, request: ToolRequest) -> Result<String, Failure> {
        let own = request.tool.auth.as_ref().map(|auth| auth.secret_ref.as_str());
        let Some(holder) = Holder::who_lacks(|named| !named.is_all_known(own)) else {
            return self.inner.call(request).await;
        };
        let step = request.request_id.clone();
        join(self.inner.call(request), self.look_up.all(&holder, &step)).await.0
    }
}

impl<G: Gateway> Gateway for Ahead<G> {
    fn stream(&self, request: ModelRequest) -> Parts {
        let own = request.endpoint.secret_ref.as_deref();
        let Some(holder) = Holder::who_lacks(|named| !named.is_all_known(own)) else {
            return self.inner.stream(request);
        };
        let (look_up, step) = (self.look_up.clone(), request.request_id.clone());
        let mut parts = self.inner.stream(request);
        let beginning = async move {
            let (first, ()) = join(parts.next(), look_up.all(&holder, &step)).await;
            match first {
                Some(first) => stream::iter([first]).chain(parts).boxed(),
                None => stream::empty().boxed(),
            }
        };
        beginning.flatten_stream().boxed()
    }

    fn price(&self, endpoint: &ModelPlan) -> Option<Price> {
        self.inner.price(endpoint)
    }
}

impl LookUp {
    async fn all(&self, holder: &Holder, step: &str) {
        let named = &holder.named;
        let look_up = || {
            let references = named.references.iter();
            join_all(references.map(|(reference, shown)| self.one(holder, reference, shown, step))).map(drop)
        };
        named.known.get_or_init(look_up).await;
    }

    /// One that is not there fails where it is used, and only there. While a server can't answer nothing is passed on: it
    /// could not be journaled either.
    async fn one(&self, holder: &Holder, reference: &str, shown: &[AuthPlan], step: &str) {
        loop {
            match self.secrets.resolve(reference, step).await {
                Ok(secret) => {
                    return shown.iter().for_each(|auth| hide_parts(auth, &secret, self.secrets.redactor()));
                }
                Err(failure)
                    if failure.class == ErrorClass::Transient && holder.lease_stands(&*self.runtime) =>
                {
                    self.runtime.sleep(PAUSE).await;
                }
                Err(failure) => {
                    return tracing::debug!(%failure, "a secret of the plan is not known, and not hidden");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
