//! Spans of tasks and attempts, taken from the events of each bundle once it counts, by the server that committed it: so
//! each is told once, and what is told is what the log says. Steps are told by the worker that finished them; those that
//! were cut off have nobody else, and are told here.

use ostler_kernel::{
    BlobId, Bundle, EventBody, Expect, Failure, Run, RunId, RunTag, SpanId, StepId, StepKind, Task,
    TaskState, Timestamp, TraceId, Usage, Write, event::StepFinished, plan::AgentPlan, run::AttemptEnd,
    step::StepOutcome,
};
use ostler_telemetry::{Kind, Span, Telemetry, genai};

/// What the conventions have no code for.
const LOST: &str = "attempt_lost";
const INTERRUPTED: &str = "interrupted";

/// What the bundle will have told of once it counts. Nothing, if nobody wants to know.
pub fn told(telemetry: &Telemetry, bundle: &Bundle, plan: Option<&AgentPlan>) -> Vec<Span> {
    if !telemetry.is_tracing() {
        return Vec::new();
    }
    let Some(task) = bundle.writes.iter().find_map(task_of) else { return Vec::new() };
    let teller = Teller { task, bundle, plan };
    if !telemetry.keeps(teller.trace(), task.request.trace.as_ref()) {
        return Vec::new();
    }
    let events = bundle.writes.iter().filter_map(|write| match write {
        Write::Event { task: of, at, body } if *of == task.id => Some((*at, body)),
        _ => None,
    });
    events.flat_map(|(at, body)| teller.spans(at, body)).collect()
}

/// The plan of the run that the bundle tells of, if it tells of one.
pub fn plan_of(bundle: &Bundle) -> Option<BlobId> {
    let task = bundle.writes.iter().find_map(task_of)?;
    bundle.writes.iter().find_map(|write| match write {
        Write::Run(run) if run.task == task.id => Some(run.plan),
        _ => None,
    })
}

fn task_of(write: &Write) -> Option<&Task> {
    match write {
        Write::NewTask(task) | Write::Task(task) => Some(task),
        _ => None,
    }
}

struct Teller<'a> {
    task: &'a Task,
    bundle: &'a Bundle,
    /// What the run works by, where it is at hand.
    plan: Option<&'a AgentPlan>,
}

/// How an attempt came to its end.
enum End<'a> {
    Ok,
    Yielded(&'static str),
    Failed(&'a Failure),
    Lost,
}

impl Teller<'_> {
    fn trace(&self) -> TraceId {
        let caller = self.task.request.trace.as_ref();
        caller.map_or_else(|| TraceId::of_task(self.task.id), |caller| caller.parent.trace)
    }

    fn spans(&self, at: Timestamp, body: &EventBody) -> Vec<Span> {
        match body {
            EventBody::AttemptEnded { run, end, .. } => {
                let end = match end {
                    AttemptEnd::Yielded => End::Yielded("yielded"),
                    AttemptEnd::Error { failure } => End::Failed(failure),
                    AttemptEnd::Lost => End::Lost,
                };
                self.attempt(*run, at, end).into_iter().collect()
            }
            EventBody::RunRetrying { run, failure, .. } => {
                self.attempt(*run, at, End::Failed(failure)).into_iter().collect()
            }
            EventBody::RunWaiting { run, .. } if !self.has_ended_attempt() => {
                self.attempt(*run, at, End::Yielded("waiting")).into_iter().collect()
            }
            EventBody::RunSleeping { run, .. } => {
                self.attempt(*run, at, End::Yielded("sleeping")).into_iter().collect()
            }
            EventBody::RunEnded { run, .. } => self.attempt(*run, at, End::Ok).into_iter().collect(),
            EventBody::TaskEnded { state, failure, usage, .. } => {
                let end = failure.as_ref().map_or(End::Ok, End::Failed);
                let attempt = self.attempt(self.task.run, at, end);
                attempt.into_iter().chain([self.task(at, state, failure.as_ref(), usage)]).collect()
            }
            EventBody::StepFinished(step) if step.outcome == StepOutcome::Interrupted => {
                self.cut_off(step, at).into_iter().collect()
            }
            EventBody::StepFinished(_)
            | EventBody::RunWaiting { .. }
            | EventBody::TaskAccepted { .. }
            | EventBody::AttemptStarted { .. }
            | EventBody::RunReady { .. }
            | EventBody::InputAccepted { .. }
            | EventBody::MessageSent { .. }
            | EventBody::ResourceChanged(_)
            | EventBody::Unknown(_) => Vec::new(),
        }
    }

    /// A quarantine is an attempt's end and a wait at once.
    fn has_ended_attempt(&self) -> bool {
        let ended =
            |write: &Write| matches!(write, Write::Event { body: EventBody::AttemptEnded { .. }, .. });
        self.bundle.writes.iter().any(ended)
    }

    fn run(&self, id: RunId) -> Option<&Run> {
        self.bundle.writes.iter().find_map(|write| match write {
            Write::Run(run) | Write::NewRun(run) if run.id == id => Some(run),
            _ => None,
        })
    }

    /// A run that is queued or waits has no attempt that could end.
    fn was_running(&self, id: RunId) -> bool {
        let running = |expect: &Expect| matches!(expect, Expect::Run { id: of, state: RunTag::Running, .. } if *of == id);
        self.bundle.expect.iter().any(running)
    }

    fn span(
        &self,
        id: SpanId,
        parent: Option<SpanId>,
        name: String,
        began: Timestamp,
        ended: Timestamp,
    ) -> Span {
        let mut span = Span {
            trace: self.trace(),
            id,
            parent,
            state: self.task.request.trace.as_ref().and_then(|trace| trace.state.clone()),
            name,
            kind: Kind::Internal,
            began: began.into(),
            ended: ended.into(),
            attributes: Vec::with_capacity(12),
            error: None,
        };
        span.with(genai::NAMESPACE, self.task.namespace.as_str());
        span.with(genai::TASK, self.task.id.to_string());
        span.with(genai::TASK_NAME, self.task.name.as_str());
        span
    }

    fn task(&self, at: Timestamp, state: &TaskState, failure: Option<&Failure>, usage: &Usage) -> Span {
        let task = self.task;
        let parent = task.request.trace.as_ref().map(|caller| caller.parent.span);
        let name = match &task.request.system {
            Some(system) => format!("{} {}", genai::INVOKE_WORKFLOW, system.name),
            None => format!("task {}", task.request.agent),
        };
        let mut span = self.span(SpanId::of_task(task.id), parent, name, task.created_at, at);
        match &task.request.system {
            Some(system) => {
                span.with(genai::OPERATION, genai::INVOKE_WORKFLOW);
                span.with(genai::WORKFLOW_NAME, system.name.as_str());
            }
            None => {
                span.kind = Kind::Consumer;
                span.with(genai::AGENT_NAME, task.request.agent.as_str());
            }
        }
        span.with(genai::TASK_STATE, state.name());
        span.with(genai::INPUT_TOKENS, usage.input_tokens);
        span.with(genai::OUTPUT_TOKENS, usage.output_tokens);
        failure.iter().for_each(|failure| span.failed(failure));
        span
    }

    fn attempt(&self, id: RunId, at: Timestamp, end: End<'_>) -> Option<Span> {
        let run = self.run(id).filter(|_| self.was_running(id))?;
        let (span, parent) = (SpanId::of_attempt(id, run.attempt), SpanId::of_task(self.task.id));
        let name = format!("{} {}", genai::INVOKE_AGENT, run.agent);
        let mut span = self.span(span, Some(parent), name, run.attempt_at.unwrap_or(run.created_at), at);
        span.with(genai::OPERATION, genai::INVOKE_AGENT);
        if let Some(plan) = self.plan {
            span.with(genai::PROVIDER, genai::provider(&plan.model.provider));
            if !plan.description.is_empty() {
                span.with(genai::AGENT_DESCRIPTION, plan.description.as_str());
            }
        }
        span.with(genai::AGENT_NAME, run.agent.as_str());
        span.with(genai::AGENT_ID, genai::agent_id(&self.task.namespace, &run.agent));
        span.with(genai::CONVERSATION, run.session.to_string());
        span.with(genai::REQUEST_MODEL, run.model.as_str());
        span.with(genai::RUN, run.id.to_string());
        span.with(genai::ATTEMPT, run.attempt);
        let said = match end {
            End::Ok => "ok",
            End::Yielded(how) => how,
            End::Failed(failure) => {
                span.failed(failure);
                "failed"
            }
            End::Lost => {
                span.error = Some((LOST.to_owned(), "its worker was gone".to_owned()));
                "lost"
            }
        };
        span.with(genai::ATTEMPT_END, said);
        if run.is_terminal() {
            span.with(genai::INPUT_TOKENS, run.usage.input_tokens);
            span.with(genai::OUTPUT_TOKENS, run.usage.output_tokens);
        }
        Some(span)
    }

    /// A step that was under way, or was about to be, when its run ended.
    fn cut_off(&self, step: &StepFinished, at: Timestamp) -> Option<Span> {
        let run = self.run(step.run)?;
        // A run that is not at work has no attempt that is told now, and may never have had one.
        let parent = match self.was_running(run.id) {
            true => SpanId::of_attempt(run.id, run.attempt),
            false => SpanId::of_task(self.task.id),
        };
        let (operation, key) = match &step.kind {
            StepKind::Model { .. } => (genai::CHAT, genai::REQUEST_MODEL),
            StepKind::Tool { .. } => (genai::EXECUTE_TOOL, genai::TOOL_NAME),
            StepKind::Wait => return None,
        };
        let id = SpanId::of_step(StepId { run: step.run, index: step.step });
        let name = format!("{operation} {}", step.kind.name());
        let mut span = self.span(id, Some(parent), name, step.started_at, at);
        span.with(genai::OPERATION, operation);
        span.with(key, step.kind.name());
        if let Some(provider) = self.provider_of(&step.kind) {
            span.kind = Kind::Client;
            span.with(genai::PROVIDER, genai::provider(provider));
        }
        span.with(genai::AGENT_NAME, run.agent.as_str());
        span.with(genai::AGENT_ID, genai::agent_id(&self.task.namespace, &run.agent));
        span.with(genai::CONVERSATION, run.session.to_string());
        span.with(genai::RUN, run.id.to_string());
        span.with(genai::STEP, step.step);
        span.error = Some((INTERRUPTED.to_owned(), "its run ended before it did".to_owned()));
        Some(span)
    }

    /// Whom a model call asks.
    fn provider_of(&self, kind: &StepKind) -> Option<&str> {
        let plan = self.plan?;
        match kind {
            StepKind::Model { fallback: None, .. } => Some(&plan.model.provider),
            StepKind::Model { fallback: Some(fallback), .. } => {
                let place = usize::try_from(fallback.place.checked_sub(1)?).ok()?;
                plan.fallbacks.get(place).map(|model| model.provider.as_str())
            }
            StepKind::Tool { .. } | StepKind::Wait => None,
        }
    }
}
