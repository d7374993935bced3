//! Accepts a request: once this returns, the work survives.

use std::collections::BTreeMap;

use ostler_kernel::{
    Bundle, ContextId, Expect, RunId, Session, SessionId, Task, TaskId, TraceContext,
    conversation::Context,
    queue::Priority,
    retry::{Jitter, RetryPolicy},
    task::{
        TaskRequest,
        accept::{Acceptance, accept},
    },
    trace::BadTraceParent,
};
use ostler_spec::{ApiVersion, Kind, Metadata, Path, Problem, Resource, Spec, TaskSpec};
use ostler_store::{StoreError, StoreExt, TaskRef};

use super::TRIES;
use crate::{
    Control, ControlError,
    plans::{jitter, millis},
    quotas::requirements,
    resources::{self, Beside},
    systems::{Doer, Plans},
};

/// A task as someone asks for it.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Whose words its manifest is in; it is told in them.
    pub api_version: ApiVersion,
    pub namespace: String,
    /// Made up if there is none.
    pub name: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub spec: TaskSpec,
    /// Where in its caller's trace it belongs.
    pub trace: Option<TraceContext>,
}

/// By these annotations a manifest says where in a trace its task belongs: ours, and those of another system.
const TRACE_PREFIXES: [&str; 2] = ["ostler.dev", "orloj.io"];

/// Where the annotations of a task say that it belongs, if they say so.
pub fn annotated_trace(
    annotations: &BTreeMap<String, String>,
) -> Result<Option<TraceContext>, BadTraceParent> {
    let of = |prefix: &str, name: &str| annotations.get(&format!("{prefix}/{name}"));
    let found = TRACE_PREFIXES.iter().find_map(|prefix| Some((of(prefix, "traceparent")?, prefix)));
    let Some((parent, prefix)) = found else { return Ok(None) };
    TraceContext::read(parent, of(prefix, "tracestate").map(String::as_str)).map(Some)
}

/// Whether an annotation says where in a trace a task belongs.
pub fn is_of_trace(annotation: &str) -> bool {
    annotation.split_once('/').is_some_and(|(prefix, name)| {
        TRACE_PREFIXES.contains(&prefix) && matches!(name, "traceparent" | "tracestate")
    })
}

/// What is asked for again belongs to the trace of whoever asks.
pub(super) fn without_trace(mut annotations: BTreeMap<String, String>) -> BTreeMap<String, String> {
    annotations.retain(|annotation, _| !is_of_trace(annotation));
    annotations
}

#[derive(Debug, Clone)]
pub struct Created {
    pub task: Task,
    /// The same request was accepted before; this is its task.
    pub existed: bool,
}

impl NewTask {
    /// None if the resource is not a Task.
    pub fn from_resource(resource: Resource) -> Option<Self> {
        let api_version = resource.api_version;
        let Spec::Task(spec) = resource.spec else { return None };
        let name = Some(resource.metadata.name).filter(|name| !name.is_empty());
        let Metadata { namespace, labels, annotations, .. } = resource.metadata;
        Some(Self { api_version, namespace, name, labels, annotations, spec, trace: None })
    }
}

impl Control {
    /// The task as it would be accepted, or the one that is there. Nothing is written.
    pub async fn try_task(&self, new: NewTask) -> Result<Created, ControlError> {
        match self.try_task_beside(new.clone(), Beside::default()).await {
            Ok(task) => Ok(Created { task, existed: false }),
            Err(refused @ ControlError::NameTaken { .. }) => self.there_already(&new).await?.ok_or(refused),
            Err(error) => Err(error),
        }
    }

    /// The same if these are there too.
    pub(crate) async fn try_task_beside(
        &self,
        new: NewTask,
        beside: Beside<'_>,
    ) -> Result<Task, ControlError> {
        self.check_task(&new).await?;
        let doer = self.doer(&new, Plans::Tried(beside)).await?;
        self.check_quotas(&new.namespace, &doer.first.agent).await?;
        if let Some(name) = &new.name {
            let reference = TaskRef::Name { namespace: new.namespace.clone(), name: name.clone() };
            if self.store.task(reference).await?.is_some() {
                return Err(ControlError::NameTaken { name: name.clone() });
            }
        }
        let acceptance = self.acceptance(&new, &doer).await?;
        Ok(accept(acceptance, self.runtime.now()).0)
    }

    /// What can be said of a task before those who do it are looked at.
    async fn check_task(&self, new: &NewTask) -> Result<(), ControlError> {
        let problems = Spec::Task(new.spec.clone()).unsupported();
        if !problems.is_empty() {
            return Err(ControlError::Invalid(problems));
        }
        new.name.as_deref().map_or(Ok(()), check_no_uid)?;
        // Templates and tasks are asked for by the same names.
        if let Some(name) = &new.name
            && self.declared(Kind::Task, &new.namespace, name).await?.is_some()
        {
            return Err(template_is_there(name));
        }
        Ok(())
    }

    /// The same request under the same name, or with the same key, is the same task.
    pub async fn create_task(&self, new: NewTask) -> Result<Created, ControlError> {
        match self.create_another(&new).await {
            Err(refused @ (ControlError::NameTaken { .. } | ControlError::TooMany { .. })) => {
                self.there_already(&new).await?.ok_or(refused)
            }
            answer => answer,
        }
    }

    /// The same where a name that is taken is refused, whatever was asked for under it.
    pub(super) async fn create_another(&self, new: &NewTask) -> Result<Created, ControlError> {
        self.check_task(new).await?;
        let doer = self.doer(new, Plans::Stored).await?;
        // Held until the task is there: it is counted by its row from then on.
        let _seat = match self.admit(&new.namespace, &doer.first.agent).await {
            Ok(seat) => seat,
            Err(too_many) => return self.accepted_before(new, &doer).await?.ok_or(too_many),
        };
        for _ in 0..TRIES {
            let acceptance = self.acceptance(new, &doer).await?;
            let id = acceptance.task;
            let (task, bundle) = accept(acceptance, self.runtime.now());
            self.feed.expect(&task.namespace, id, self.runtime.monotonic());
            let refusal = match self.commit(beside_templates(bundle, new)).await {
                Ok(Ok(_)) => return Ok(Created { task, existed: false }),
                Ok(Err(refusal)) => {
                    self.feed.forget(id);
                    refusal
                }
                Err(StoreError::Unknown(message)) => return self.find_out(id, message).await,
                Err(error) => return Err(error.into()),
            };
            match refusal.unmet() {
                Some(Expect::TaskKey { key, .. }) => {
                    return self.same_again(new, &task.request, key.clone()).await;
                }
                Some(Expect::TaskName { name, .. }) => {
                    return Err(ControlError::NameTaken { name: name.clone() });
                }
                Some(Expect::Resource { key, .. }) => return Err(template_is_there(&key.name)),
                // Someone else spoke in the same session; look again.
                _ => {}
            }
        }
        Err(ControlError::Contended)
    }

    async fn acceptance(&self, new: &NewTask, doer: &Doer) -> Result<Acceptance, ControlError> {
        let runtime = &*self.runtime;
        let task = TaskId::new(runtime);
        let name = new.name.clone().unwrap_or_else(|| made_up_name(doer.name(), task));
        let mut request = self.request(new, doer);
        // No model takes an empty message.
        if request.input.is_empty() {
            request.message = format!("task={name} attempt=1");
        }
        let subject = subject(&request, &doer.first.agent);
        let session = self.session(&new.namespace, &subject, new.spec.session.clone()).await?;
        Ok(Acceptance {
            task,
            run: RunId::new(runtime),
            namespace: new.namespace.clone(),
            name,
            request,
            model: doer.first.model.clone(),
            lane: doer.first.lane.clone(),
            session,
        })
    }

    /// The conversation of that name, or a new one.
    pub(crate) async fn session(
        &self,
        namespace: &str,
        subject: &str,
        key: Option<String>,
    ) -> Result<Session, StoreError> {
        if let Some(key) = &key {
            let (namespace, subject) = (namespace.to_owned(), subject.to_owned());
            if let Some(session) = self.store.session_by_key(namespace, subject, key.clone()).await? {
                return Ok(*session);
            }
        }
        let runtime = &*self.runtime;
        let context = Context::whole(ContextId::new(runtime));
        Ok(Session::new(SessionId::new(runtime), namespace, subject, key, context))
    }

    fn request(&self, new: &NewTask, doer: &Doer) -> TaskRequest {
        let spec = &new.spec;
        TaskRequest {
            api_version: (new.api_version != ApiVersion::Ostler).then(|| new.api_version.to_string()),
            agent: doer.first.agent.clone(),
            system: doer.system.clone(),
            plan: doer.first.plan,
            message: spec.message(),
            input: spec.input.clone(),
            labels: new.labels.clone(),
            annotations: new.annotations.clone(),
            priority: priority(spec.priority),
            requires: requirements(spec),
            retry: message_retry(spec),
            whole_retry: whole_retry(spec),
            non_retryable: spec.message_retry.non_retryable.clone(),
            max_turns: spec.max_turns,
            session_key: spec.session.clone(),
            idempotency_key: spec.idempotency_key.clone(),
            deadline: spec.deadline.map(|deadline| self.runtime.now().after(deadline.get())),
            trace: new.trace.clone(),
        }
    }

    /// What was accepted before is no task more.
    async fn accepted_before(&self, new: &NewTask, doer: &Doer) -> Result<Option<Created>, ControlError> {
        let Some(key) = new.spec.idempotency_key.clone() else { return Ok(None) };
        let reference = TaskRef::Key { namespace: new.namespace.clone(), key: key.clone() };
        if self.store.task(reference).await?.is_none() {
            return Ok(None);
        }
        self.same_again(new, &self.request(new, doer), key).await.map(Some)
    }

    /// The task of that name, if it is what is asked for.
    async fn there_already(&self, new: &NewTask) -> Result<Option<Created>, ControlError> {
        let Some(name) = new.name.clone() else { return Ok(None) };
        let reference = TaskRef::Name { namespace: new.namespace.clone(), name };
        let Some(row) = self.store.task(reference).await? else { return Ok(None) };
        // Only compared, so nothing of it is kept.
        let doer = self.doer(new, Plans::Tried(Beside::default())).await?;
        let is_same = row.task.request.asks_the_same(&self.request(new, &doer));
        Ok(is_same.then_some(Created { task: row.task, existed: true }))
    }

    /// The commit's answer was lost: the task is there or it isn't.
    async fn find_out(&self, id: TaskId, message: String) -> Result<Created, ControlError> {
        match self.store.task(TaskRef::Id(id)).await? {
            Some(row) => Ok(Created { task: row.task, existed: false }),
            None => Err(StoreError::Unavailable(message).into()),
        }
    }

    /// The key was used before: for the same request that is its answer, for another it is a mistake.
    async fn same_again(
        &self,
        new: &NewTask,
        request: &TaskRequest,
        key: String,
    ) -> Result<Created, ControlError> {
        let reference = TaskRef::Key { namespace: new.namespace.clone(), key: key.clone() };
        let Some(row) = self.store.task(reference).await? else { return Err(ControlError::Contended) };
        if row.task.request.asks_the_same(request) {
            return Ok(Created { task: row.task, existed: true });
        }
        Err(key_is_used(&key, &row.task.name))
    }
}

pub(super) fn key_is_used(key: &str, task: &str) -> ControlError {
    ControlError::Conflict(format!("the idempotency key {key:?} was used for another request, task {task:?}"))
}

/// A name that someone gave might be a template's. One that is made up is nobody's.
fn beside_templates(bundle: Bundle, new: &NewTask) -> Bundle {
    match &new.name {
        Some(name) => {
            let key = resources::key(Kind::Task, &new.namespace, name);
            bundle.expect(Expect::Resource { key, version: 0 })
        }
        None => bundle,
    }
}

/// A task goes by its name or its uid: a name must not be what may be another's uid.
pub(crate) fn check_no_uid(name: &str) -> Result<(), ControlError> {
    match name.parse::<TaskId>() {
        Ok(_) => Err(ControlError::Invalid(vec![Problem::new(
            Path::of("metadata.name"),
            "expected a name, found what looks like the uid of a task",
        )])),
        Err(_) => Ok(()),
    }
}

fn template_is_there(name: &str) -> ControlError {
    ControlError::Conflict(format!("there is a template {name:?} already"))
}

/// Whom a conversation is with. The agents of a system don't hear each other's.
pub(crate) fn subject(request: &TaskRequest, agent: &str) -> String {
    match &request.system {
        Some(system) => format!("{}/{agent}", system.name),
        None => agent.to_owned(),
    }
}

/// How often the work of an agent is tried.
fn message_retry(spec: &TaskSpec) -> RetryPolicy {
    let retry = &spec.message_retry;
    RetryPolicy {
        max_attempts: retry.max_attempts,
        backoff_ms: millis(retry.backoff.get()),
        max_backoff_ms: millis(retry.max_backoff.get()),
        jitter: jitter(retry.jitter),
    }
}

/// How often the whole is tried, unless the two are one.
fn whole_retry(spec: &TaskSpec) -> Option<RetryPolicy> {
    let (max_attempts, backoff_ms) = (spec.retry.max_attempts, millis(spec.retry.backoff.get()));
    let whole = RetryPolicy { max_attempts, backoff_ms, jitter: Jitter::None, ..RetryPolicy::default() };
    (!spec.message_retry.follows(&spec.retry)).then_some(whole)
}

/// Sorts by time, so that the index of names grows at its end.
pub(super) fn made_up_name(beginning: &str, task: TaskId) -> String {
    let id = task.to_string();
    let letters = &id[TaskId::PREFIX.len() + 1..];
    format!("{beginning}-{}", &letters[..letters.len().min(18)])
}

fn priority(priority: ostler_spec::Priority) -> Priority {
    match priority {
        ostler_spec::Priority::Low => Priority::Low,
        ostler_spec::Priority::Normal => Priority::Normal,
        ostler_spec::Priority::High => Priority::High,
        ostler_spec::Priority::Urgent => Priority::Urgent,
    }
}
