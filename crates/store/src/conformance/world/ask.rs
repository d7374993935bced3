//! A caller's request on its way to becoming a task.

use std::collections::BTreeMap;

use ostler_kernel::{
    BlobId, Bundle, ContextId, RunId, Session, SessionId, Task, TaskId, Timestamp,
    conversation::Context,
    queue::{Lane, Priority, Requirements},
    retry::RetryPolicy,
    task::{
        Stage, SystemPlan, TaskRequest,
        accept::{Acceptance, accept},
    },
};

use super::World;

#[derive(Clone)]
pub struct Ask<'w> {
    world: &'w World,
    acceptance: Acceptance,
}

impl<'w> Ask<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        let (now, number) = (world.now(), world.fresh());
        let context = Context::whole(ContextId::from_parts(now, 0, number));
        let session = SessionId::from_parts(now, 0, number);
        let acceptance = Acceptance {
            task: TaskId::from_parts(now, 0, number),
            run: RunId::from_parts(now, 0, number),
            namespace: "default".to_owned(),
            name: format!("task-{number}"),
            request: request(),
            model: "mock".to_owned(),
            lane: Lane::new("default", "any"),
            session: Session::new(session, "default", "helper", None, context),
        };
        Self { world, acceptance }
    }

    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.acceptance.namespace = namespace.to_owned();
        self.acceptance.lane.namespace = namespace.to_owned();
        self.acceptance.session.namespace = namespace.to_owned();
        self
    }

    /// Only a worker in this region may take it.
    #[must_use]
    pub fn requiring(mut self, region: &str) -> Self {
        self.acceptance.lane.requires.region = Some(region.to_owned());
        self
    }

    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.acceptance.name = name.to_owned();
        self
    }

    #[must_use]
    pub fn saying(mut self, message: &str) -> Self {
        self.acceptance.request.message = message.to_owned();
        self
    }

    #[must_use]
    pub fn labelled(mut self, key: &str, value: &str) -> Self {
        self.acceptance.request.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    #[must_use]
    pub fn under_key(mut self, key: &str) -> Self {
        self.acceptance.request.idempotency_key = Some(key.to_owned());
        self
    }

    #[must_use]
    pub fn of_priority(mut self, priority: Priority) -> Self {
        self.acceptance.request.priority = priority;
        self
    }

    #[must_use]
    pub fn by(mut self, deadline: Timestamp) -> Self {
        self.acceptance.request.deadline = Some(deadline);
        self
    }

    #[must_use]
    pub fn retried(mut self, retry: RetryPolicy) -> Self {
        self.acceptance.request.retry = retry;
        self
    }

    #[must_use]
    pub fn retried_as_a_whole(mut self, retry: RetryPolicy) -> Self {
        self.acceptance.request.whole_retry = Some(retry);
        self
    }

    #[must_use]
    pub fn in_class(mut self, class: &str, limit: Option<u32>) -> Self {
        self.acceptance.lane.class = class.to_owned();
        self.acceptance.lane.limit = limit;
        self
    }

    /// For these agents, one behind the other.
    #[must_use]
    pub fn for_system(mut self, agents: &[&str]) -> Self {
        let stage = |agent: &&str| Stage {
            agent: (*agent).to_owned(),
            plan: BlobId::of(agent.as_bytes()),
            model: "mock".to_owned(),
            lane: self.acceptance.lane.clone(),
        };
        let line = agents.iter().map(stage).collect();
        self.acceptance.request.system = Some(SystemPlan { name: "pipeline".to_owned(), line });
        self
    }

    /// In a session that it begins, under a key of the caller's.
    #[must_use]
    pub fn in_new_session(mut self, key: &str) -> Self {
        self.acceptance.session.key = Some(key.to_owned());
        self
    }

    /// In a session as it was read.
    #[must_use]
    pub fn in_session(mut self, session: Session) -> Self {
        self.acceptance.session = session;
        self
    }

    /// The task and its bundle, not committed.
    pub fn bundle(self) -> (Task, Bundle) {
        accept(self.acceptance, self.world.now())
    }

    pub async fn accept(self) -> Task {
        let world = self.world;
        let (task, bundle) = self.bundle();
        world.must(bundle).await;
        task
    }
}

fn request() -> TaskRequest {
    TaskRequest {
        api_version: None,
        agent: "helper".to_owned(),
        system: None,
        plan: BlobId::of(b"a plan"),
        message: "hello".to_owned(),
        input: BTreeMap::new(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        priority: Priority::Normal,
        requires: Requirements::default(),
        retry: RetryPolicy::default(),
        whole_retry: None,
        non_retryable: Vec::new(),
        max_turns: 0,
        session_key: None,
        idempotency_key: None,
        deadline: None,
        trace: None,
    }
}
