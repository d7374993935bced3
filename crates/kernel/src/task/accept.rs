//! A request becomes a task: durable from the moment its commit is synced.

use super::{Stage, Task, TaskRequest, TaskState};
use crate::{
    Bundle, Command, EventBody, Expect, Run, RunId, RunState, Session, SessionId, TaskId, Timestamp, Write,
    message::Message,
    queue::{self, Lane},
    run::{Ready, hand_on::announce},
    step::Usage,
};

/// Everything that was decided about a request before it is written down.
#[derive(Debug, Clone)]
pub struct Acceptance {
    pub task: TaskId,
    pub run: RunId,
    pub namespace: String,
    pub name: String,
    pub request: TaskRequest,
    /// The model of the agent's plan.
    pub model: String,
    pub lane: Lane,
    /// As read, or new (its version is 0 then).
    pub session: Session,
}

pub fn accept(acceptance: Acceptance, now: Timestamp) -> (Task, Bundle) {
    let Acceptance { namespace, name, request, session, .. } = &acceptance;
    let mut bundle = Bundle::new(Command::Accept);
    // First of all: the same request again is answered with its task, whatever else has changed.
    if let Some(key) = &request.idempotency_key {
        bundle = bundle.expect(Expect::TaskKey { namespace: namespace.clone(), key: key.clone() });
    }
    bundle = bundle
        .expect(Expect::TaskName { namespace: namespace.clone(), name: name.clone() })
        .expect(Expect::Session { id: session.id, version: session.version });
    if let (0, Some(key)) = (session.version, &session.key) {
        let (namespace, subject) = (namespace.clone(), session.subject.clone());
        bundle = bundle.expect(Expect::SessionKey { namespace, subject, key: key.clone() });
    }
    let mut session = session.clone();
    let run = first_run(&acceptance, &mut session, now);
    let task = new_task(acceptance, session.id, now);
    let system = task.request.system.as_ref().map(|system| system.name.clone());
    let body = EventBody::TaskAccepted { system, agent: task.request.agent.clone(), run: run.id };
    let bundle = bundle
        .write(Write::NewTask(task.clone()))
        .write(Write::NewRun(run.clone()))
        .write(Write::Session(session))
        .event(task.id, now, body);
    (task, announce(bundle, &run, now))
}

/// A run as it is queued.
pub(crate) struct NewRun<'a> {
    pub id: RunId,
    pub task: TaskId,
    pub request: &'a TaskRequest,
    pub stage: &'a Stage,
    pub message: Option<Message>,
}

impl NewRun<'_> {
    /// The run, at the end of its session.
    pub fn begin(self, session: &mut Session, now: Timestamp) -> Run {
        let Self { id, task, request, stage, message } = self;
        let ready = match session.head {
            None => Ready::Now { rank: queue::rank(now, request.priority) },
            Some(_) => Ready::AfterSession,
        };
        let run = Run {
            id,
            task,
            session: session.id,
            message,
            order: session.runs,
            agent: stage.agent.clone(),
            plan: stage.plan,
            model: stage.model.clone(),
            lane: stage.lane.clone(),
            priority: request.priority,
            retry: request.retry.clone(),
            deadline: request.deadline,
            created_at: now,
            state: RunState::Queued { ready },
            epoch: 0,
            attempt: 0,
            attempt_at: None,
            worker: None,
            failures: 0,
            lost_in_row: 0,
            restarted_in_row: 0,
            slept_in_row: 0,
            journal: 0,
            last_write: None,
            next_step: 0,
            next_entry: 0,
            model_calls: 0,
            tool_calls: 0,
            fallback: None,
            worked_ms: 0,
            usage: Usage::default(),
        };
        session.version += 1;
        session.used_at = Some(now);
        session.runs += 1;
        session.head = session.head.or(Some(run.id));
        run
    }
}

fn first_run(acceptance: &Acceptance, session: &mut Session, now: Timestamp) -> Run {
    let Acceptance { task, run, request, model, lane, .. } = acceptance;
    let (agent, plan) = (request.agent.clone(), request.plan);
    let stage = Stage { agent, plan, model: model.clone(), lane: lane.clone() };
    let message = request.system.as_ref().map(|_| Message::start(&request.agent, &request.message));
    NewRun { id: *run, task: *task, request, stage: &stage, message }.begin(session, now)
}

fn new_task(acceptance: Acceptance, session: SessionId, now: Timestamp) -> Task {
    Task {
        id: acceptance.task,
        namespace: acceptance.namespace,
        name: acceptance.name,
        session,
        run: acceptance.run,
        past: Vec::new(),
        request: acceptance.request,
        state: TaskState::Queued,
        version: 1,
        created_at: now,
        started_at: None,
        ended_at: None,
        output: None,
        failure: None,
        usage: Usage::default(),
    }
}
