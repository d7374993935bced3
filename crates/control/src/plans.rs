//! Makes an agent's plan from its resources: who answers, with which tools, within which limits. The plan is
//! frozen and stored by its hash; many tasks share one.

mod rules;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ostler_kernel::{
    BlobId, Bundle,
    plan::{AgentPlan, AuthForm, AuthPlan, ModelPlan, ToolPlan},
    retry::{Jitter, RetryPolicy},
};
use ostler_spec::{AuthProfile, Kind, Reference, SecretRef, Spec, ToolAuth, ToolSpec};
use ostler_store::{Hint, StoreExt};
use tokio::sync::watch;

use crate::{
    Control, ControlError,
    governance::NamedPolicy,
    models::model_plan,
    reconcilers::plan_forget::is_worn,
    resources::{Beside, check_available},
};

/// Plans made since a resource last changed, and plans known to be stored.
pub struct Plans {
    known: Mutex<Known>,
    /// Tells how often resources have changed.
    hints: watch::Receiver<Hint>,
}

#[derive(Default)]
struct Known {
    /// So often resources had changed when the current plans were made.
    changes: u64,
    current: BTreeMap<(String, String), Planned>,
    stored: BTreeMap<BlobId, Arc<AgentPlan>>,
    /// When plans were last put into the store by this server, by its clock.
    put: BTreeMap<BlobId, Duration>,
}

/// An agent as its resources are now.
#[derive(Debug, Clone)]
pub struct Planned {
    pub id: BlobId,
    pub plan: Arc<AgentPlan>,
    /// What must be asked of the task too.
    pub policies: Arc<[NamedPolicy]>,
    /// When it was last put into the store, by this server's clock.
    put_at: Duration,
}

/// Plans kept at hand; past it all are read again.
const ROOM: usize = 1024;

impl Known {
    fn make_room(&mut self) {
        if self.current.len().max(self.stored.len()).max(self.put.len()) >= ROOM {
            *self = Known { changes: self.changes, ..Known::default() };
        }
    }
}

impl Plans {
    pub fn new(hints: watch::Receiver<Hint>) -> Self {
        Self { known: Mutex::default(), hints }
    }

    fn changes(&self) -> u64 {
        self.hints.borrow().resources
    }

    /// What is known, without what was made of resources that have changed since.
    fn lock(&self) -> MutexGuard<'_, Known> {
        let changes = self.changes();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.changes < changes {
            known.changes = changes;
            known.current.clear();
        }
        known
    }
}

impl Control {
    /// The agent's plan as its resources are now, stored.
    pub(crate) async fn plan(&self, namespace: &str, agent: &str) -> Result<Planned, ControlError> {
        let key = (namespace.to_owned(), agent.to_owned());
        let changes = {
            let known = self.plans.lock();
            if let Some(plan) = known.current.get(&key).filter(|plan| !self.is_worn(plan.put_at)) {
                return Ok(plan.clone());
            }
            known.changes
        };
        let (plan, policies) = self.make_plan(namespace, agent, Beside::default()).await?;
        let bytes = serde_json::to_vec(&plan)
            .map_err(|error| ControlError::BadReference(format!("the plan can't be written: {error}")))?;
        let (id, bundle) = Bundle::blob(bytes, self.runtime.now());
        let put_at = self.put_plan(id, bundle).await?;
        let planned = Planned { id, plan: Arc::new(plan), policies: policies.into(), put_at };
        let mut known = self.plans.lock();
        known.make_room();
        known.put.insert(id, put_at);
        // Made of what was there before a change, it serves this one task and no other.
        if known.changes == changes {
            known.current.insert(key, planned.clone());
        }
        known.stored.insert(id, Arc::clone(&planned.plan));
        Ok(planned)
    }

    /// Stores a plan, unless it is what it was before something else changed: most changes change no plan. Says since when it is
    /// there.
    async fn put_plan(&self, id: BlobId, bundle: Bundle) -> Result<Duration, ControlError> {
        let put_at = self.plans.lock().put.get(&id).copied();
        if let Some(put_at) = put_at.filter(|put_at| !self.is_worn(*put_at)) {
            return Ok(put_at);
        }
        let put_at = self.runtime.monotonic();
        self.store_blob(bundle).await?;
        Ok(put_at)
    }

    /// The same without storing it, for a task that is only tried.
    pub(crate) async fn plan_unstored(
        &self,
        namespace: &str,
        agent: &str,
        beside: Beside<'_>,
    ) -> Result<Planned, ControlError> {
        let (plan, policies) = self.make_plan(namespace, agent, beside).await?;
        let bytes = serde_json::to_vec(&plan).unwrap_or_default();
        let put_at = self.runtime.monotonic();
        Ok(Planned { id: BlobId::of(&bytes), plan: Arc::new(plan), policies: policies.into(), put_at })
    }

    /// It was put so long ago that it may be forgotten before a task names it.
    fn is_worn(&self, put_at: Duration) -> bool {
        let age = self.runtime.monotonic().saturating_sub(put_at);
        self.config.keep_plans.is_some_and(|keep| is_worn(age, keep))
    }

    /// A plan that a run was accepted with.
    pub(crate) async fn stored_plan(&self, id: BlobId) -> Result<Arc<AgentPlan>, ControlError> {
        if let Some(plan) = self.plans.lock().stored.get(&id) {
            return Ok(Arc::clone(plan));
        }
        let bytes = self.store.blob(id).await?;
        let bytes = bytes.ok_or_else(|| ControlError::NotFound { kind: "plan", name: id.to_string() })?;
        let plan = serde_json::from_slice::<AgentPlan>(&bytes).map_err(|error| {
            ControlError::NotAvailable(format!(
                "this version of the server can't read the plan {id}: {error}"
            ))
        })?;
        let plan = Arc::new(plan);
        let mut known = self.plans.lock();
        known.make_room();
        known.stored.insert(id, Arc::clone(&plan));
        Ok(plan)
    }

    async fn store_blob(&self, bundle: Bundle) -> Result<(), ControlError> {
        match self.commit(bundle).await? {
            Ok(_) => Ok(()),
            Err(refusal) => Err(ControlError::Conflict(refusal.to_string())),
        }
    }

    async fn make_plan(
        &self,
        namespace: &str,
        name: &str,
        beside: Beside<'_>,
    ) -> Result<(AgentPlan, Vec<NamedPolicy>), ControlError> {
        let found = self.spec(Kind::Agent, namespace, name, beside).await?;
        let Some(spec @ Spec::Agent(agent)) = &found else {
            return Err(ControlError::NotFound { kind: "Agent", name: name.to_owned() });
        };
        check_available(Kind::Agent, name, spec)?;
        let policies = self.check_governance(namespace, name, agent, beside).await?;
        let model = self.model_plan((namespace, name), &agent.model_ref, beside).await?;
        let mut fallbacks = Vec::new();
        for reference in &agent.fallback_model_refs {
            fallbacks.push(self.model_plan((namespace, name), reference, beside).await?);
        }
        let mut tools = Vec::new();
        for reference in &agent.tools {
            tools.push(self.tool_plan((namespace, name), reference, beside).await?);
        }
        let plan = AgentPlan {
            namespace: namespace.to_owned(),
            agent: name.to_owned(),
            description: agent.description.clone(),
            prompt: agent.prompt.clone(),
            model,
            fallbacks,
            tools,
            limits: rules::limits(agent),
            rules: rules::rules(agent),
        };
        Ok((plan, policies))
    }

    async fn model_plan(
        &self,
        (namespace, agent): (&str, &str),
        reference: &Reference,
        beside: Beside<'_>,
    ) -> Result<ModelPlan, ControlError> {
        let home = reference.namespace_or(namespace);
        match self.endpoint(home, &reference.name, beside).await? {
            Some(endpoint) => {
                let spec = Spec::ModelEndpoint(endpoint.spec.clone());
                check_available(Kind::ModelEndpoint, &endpoint.name, &spec)?;
                model_plan(home, endpoint)
            }
            None if reference.name == BUILT_IN => Ok(built_in_model()),
            None => Err(missing(agent, "ModelEndpoint", reference)),
        }
    }

    async fn tool_plan(
        &self,
        (namespace, agent): (&str, &str),
        reference: &Reference,
        beside: Beside<'_>,
    ) -> Result<ToolPlan, ControlError> {
        let home = reference.namespace_or(namespace);
        let found = self.spec(Kind::Tool, home, &reference.name, beside).await?;
        if let Some(spec) = &found {
            check_available(Kind::Tool, &reference.name, spec)?;
        }
        match found {
            Some(Spec::Tool(tool)) => tool_plan(reference.namespace_or(namespace), reference, tool),
            _ => Err(missing(agent, "Tool", reference)),
        }
    }
}

/// The model that answers before any endpoint is configured.
pub(crate) const BUILT_IN: &str = "mock";

fn missing(agent: &str, kind: &str, reference: &Reference) -> ControlError {
    named_in_vain(("agent", agent), (kind, &reference.name))
}

/// Whoever reads it may not know that there is such a name: it says who names it.
fn named_in_vain((user, by): (&str, &str), (kind, name): (&str, &str)) -> ControlError {
    ControlError::BadReference(format!(
        "{user} {by:?} names the {kind} {name:?}, which doesn't exist; apply it first"
    ))
}

/// What went wrong with one of a system's agents: if it is not there, the system is what names it.
pub(crate) fn of_member(system: &str, error: ControlError) -> ControlError {
    match error {
        ControlError::NotFound { kind, name } => named_in_vain(("system", system), (kind, &name)),
        other => other,
    }
}

fn built_in_model() -> ModelPlan {
    ModelPlan {
        endpoint: BUILT_IN.to_owned(),
        provider: BUILT_IN.to_owned(),
        base_url: String::new(),
        model: BUILT_IN.to_owned(),
        options: BTreeMap::new(),
        secret_ref: None,
        allow_private: false,
        ..ModelPlan::default()
    }
}

/// A secret is used by what lives in its own namespace, `home`, whatever the reference says: who may write in one namespace
/// could else have the secrets of another sent wherever they like.
pub(crate) fn in_its_home(home: &str, user: &str, mut secret: SecretRef) -> Result<String, ControlError> {
    match secret.namespace.replace(home.to_owned()) {
        Some(other) if other != home => {
            secret.namespace = Some(other);
            Err(ControlError::BadReference(format!(
                "{user} lives in the namespace {home:?} and names the secret {:?} of another; keep it in {home:?} too",
                secret.to_string()
            )))
        }
        _ => Ok(secret.to_string()),
    }
}

fn tool_plan(home: &str, reference: &Reference, tool: ToolSpec) -> Result<ToolPlan, ControlError> {
    let retry = &tool.runtime.retry;
    let auth = tool.auth.clone().map(|auth| auth_plan(home, reference, auth)).transpose()?;
    Ok(ToolPlan {
        name: reference.name.clone(),
        way: tool.tool_type.to_string(),
        endpoint: tool.endpoint.clone(),
        description: tool.description.clone(),
        idempotent: tool.is_idempotent(),
        timeout_ms: millis(tool.runtime.timeout.get()),
        retry: RetryPolicy {
            max_attempts: retry.max_attempts,
            backoff_ms: millis(retry.backoff.get()),
            max_backoff_ms: millis(retry.max_backoff.get()),
            jitter: jitter(retry.jitter),
        },
        allow_private: tool.allow_private,
        input_schema: tool.input_schema,
        auth,
    })
}

fn auth_plan(home: &str, reference: &Reference, auth: ToolAuth) -> Result<AuthPlan, ControlError> {
    let user = format!("tool {:?}", reference.name);
    let shown = match auth.profile {
        AuthProfile::Bearer => AuthForm::Bearer,
        AuthProfile::Basic => AuthForm::Basic,
        AuthProfile::ApiKeyHeader => AuthForm::Header { header: auth.header_name.unwrap_or_default() },
        AuthProfile::OAuth2ClientCredentials => {
            let message = format!("{user}: auth profile {} is not available in this version", auth.profile);
            return Err(ControlError::NotAvailable(message));
        }
    };
    Ok(AuthPlan { secret_ref: in_its_home(home, &user, auth.secret_ref)?, shown })
}

pub(crate) fn jitter(jitter: ostler_spec::Jitter) -> Jitter {
    match jitter {
        ostler_spec::Jitter::None => Jitter::None,
        ostler_spec::Jitter::Full => Jitter::Full,
        ostler_spec::Jitter::Equal => Jitter::Equal,
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
