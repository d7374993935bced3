//! A request becomes a task: durable from the moment its commit is synced.

use super::{Task, TaskRequest, TaskState};
use crate::{
    Bundle, Command, EventBody, Expect, Run, RunId, RunState, Session, SessionId, TaskId, Timestamp, Write,
    queue::{self, Lane},
    run::Ready,
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
    let run = first_run(&acceptance, &session, now);
    session.version += 1;
    session.runs += 1;
    session.head = session.head.or(Some(run.id));
    let task = new_task(acceptance, session.id, now);
    let body = EventBody::TaskAccepted { agent: task.request.agent.clone(), run: run.id };
    let bundle = bundle
        .write(Write::NewTask(task.clone()))
        .write(Write::NewRun(run))
        .write(Write::Session(session))
        .event(task.id, now, body);
    (task, bundle)
}

fn first_run(acceptance: &Acceptance, session: &Session, now: Timestamp) -> Run {
    let Acceptance { task, run, request, model, lane, .. } = acceptance;
    let ready = match session.head {
        None => Ready::Now { rank: queue::rank(now, request.priority) },
        Some(_) => Ready::AfterSession,
    };
    Run {
        id: *run,
        task: *task,
        session: session.id,
        order: session.runs,
        agent: request.agent.clone(),
        plan: request.plan,
        model: model.clone(),
        lane: lane.clone(),
        priority: request.priority,
        retry: request.retry.clone(),
        deadline: request.deadline,
        created_at: now,
        state: RunState::Queued { ready },
        epoch: 0,
        attempt: 0,
        failures: 0,
        lost_in_row: 0,
        journal: 0,
        last_write: None,
        next_step: 0,
        next_entry: 0,
        model_calls: 0,
        worked_ms: 0,
        usage: Usage::default(),
    }
}

fn new_task(acceptance: Acceptance, session: SessionId, now: Timestamp) -> Task {
    Task {
        id: acceptance.task,
        namespace: acceptance.namespace,
        name: acceptance.name,
        session,
        run: acceptance.run,
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
