//! What an attempt tells a collector: a span for each step it has finished, once that is journaled. Whoever makes a call
//! notes what only it can know; the rest follows from the step itself, so a step that was finished tells its span in any case.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ostler_agent::RunStart;
use ostler_kernel::{
    SpanId, Step, StepId, StepKind, StepOutcome, TraceContext, TraceId, TraceParent, Usage,
    run::journal::StepDone, step::StepState,
};
use ostler_telemetry::{Kind, Moment, Span, Telemetry, Value, genai};

tokio::task_local! {
    static TRACE: Arc<RunTrace>;
}

pub(crate) struct RunTrace {
    telemetry: Telemetry,
    trace: TraceId,
    caller: Option<TraceContext>,
    is_kept: bool,
    /// What every span of the attempt says.
    about: Vec<(&'static str, Value)>,
    run: ostler_kernel::RunId,
    attempt: SpanId,
    notes: Mutex<BTreeMap<u32, Note>>,
}

/// What is known of a call besides its step.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    pub began: Moment,
    pub took: Duration,
    pub attributes: Vec<(&'static str, Value)>,
    /// Calls made for the step in this attempt.
    pub tries: u32,
}

impl RunTrace {
    pub fn new(start: &RunStart, caller: Option<TraceContext>, telemetry: &Telemetry) -> Arc<Self> {
        let run = &start.run;
        let trace = caller.as_ref().map_or_else(|| TraceId::of_task(run.task), |caller| caller.parent.trace);
        let is_kept = telemetry.keeps(trace, caller.as_ref());
        let about = match is_kept {
            true => vec![
                (genai::AGENT_NAME, run.agent.as_str().into()),
                (genai::AGENT_ID, genai::agent_id(&start.plan.namespace, &run.agent).into()),
                (genai::CONVERSATION, run.session.to_string().into()),
                (genai::NAMESPACE, start.plan.namespace.as_str().into()),
                (genai::TASK, run.task.to_string().into()),
                (genai::RUN, run.id.to_string().into()),
                (genai::ATTEMPT, run.attempt.into()),
            ],
            false => Vec::new(),
        };
        Arc::new(Self {
            telemetry: telemetry.clone(),
            trace,
            caller,
            is_kept,
            about,
            run: run.id,
            attempt: SpanId::of_attempt(run.id, run.attempt),
            notes: Mutex::default(),
        })
    }

    /// Works on the run, whose calls are found by [`RunTrace::current`].
    pub async fn scope<T>(self: Arc<Self>, work: impl Future<Output = T>) -> T {
        TRACE.scope(self, work).await
    }

    /// Of the run at hand, if this is its step.
    pub fn current(request_id: &str) -> Option<(Arc<Self>, StepId)> {
        let step: StepId = request_id.parse().ok()?;
        let trace = TRACE.try_with(Arc::clone).ok()?;
        (trace.run == step.run).then_some((trace, step))
    }

    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub fn trace_id(&self) -> TraceId {
        self.trace
    }

    /// What calls of the step carry. Who tells nobody of it passes on what came, so that no parent is missing.
    pub fn carried(&self, step: StepId) -> Option<TraceContext> {
        if !self.telemetry.is_tracing() {
            return self.caller.clone();
        }
        let parent = TraceParent { trace: self.trace, span: SpanId::of_step(step), sampled: self.is_kept };
        Some(TraceContext { parent, state: self.caller.as_ref().and_then(|caller| caller.state.clone()) })
    }

    pub fn note(&self, step: StepId, mut note: Note) {
        let mut notes = self.lock();
        if let Some(former) = notes.get(&step.index) {
            note.tries += former.tries;
            note.took += Duration::from_nanos(note.began.nanos().saturating_sub(former.began.nanos()));
            note.began = former.began;
        }
        notes.insert(step.index, note);
    }

    /// The steps are journaled.
    pub fn finished(&self, done: &[StepDone]) {
        if !self.is_kept {
            return;
        }
        for done in done {
            let note = self.lock().remove(&done.step.id.index);
            if let Some(span) = self.span(&done.step, note) {
                self.telemetry.tell(span);
            }
        }
    }

    fn span(&self, step: &Step, note: Option<Note>) -> Option<Span> {
        let StepState::Done { outcome, at, took_ms, usage } = &step.state else { return None };
        let (operation, subject, kind) = match &step.kind {
            StepKind::Model { .. } => (genai::CHAT, genai::REQUEST_MODEL, Kind::Client),
            StepKind::Tool { .. } => (genai::EXECUTE_TOOL, genai::TOOL_NAME, Kind::Internal),
            StepKind::Wait => return None,
        };
        let took = Duration::from_millis(*took_ms);
        let (began, took, noted, tries) = match note {
            Some(note) => (note.began, note.took, note.attributes, note.tries),
            None => (Moment::from(at.before(took)), took, Vec::new(), 0),
        };
        let mut span = Span {
            trace: self.trace,
            id: SpanId::of_step(step.id),
            parent: Some(self.attempt),
            state: self.caller.as_ref().and_then(|caller| caller.state.clone()),
            name: format!("{operation} {}", step.kind.name()),
            kind,
            began,
            ended: began.after(took),
            attributes: self.about.clone(),
            error: None,
        };
        span.with(genai::OPERATION, operation);
        span.with(subject, step.kind.name());
        span.with(genai::STEP, step.id.index);
        if tries > 1 {
            span.with(genai::TRIES, tries);
        }
        match &step.kind {
            StepKind::Model { .. } => say_usage(&mut span, usage),
            StepKind::Tool { call, .. } => span.with(genai::TOOL_CALL_ID, call.id.as_str()),
            StepKind::Wait => {}
        }
        span.attributes.extend(noted);
        match outcome {
            StepOutcome::Failed { failure } => span.failed(failure),
            StepOutcome::Ok | StepOutcome::Interrupted => {}
        }
        Some(span)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn say_usage(span: &mut Span, usage: &Usage) {
    span.with(genai::INPUT_TOKENS, usage.input_tokens);
    span.with(genai::OUTPUT_TOKENS, usage.output_tokens);
    let parts = [
        (genai::CACHE_READ_TOKENS, usage.cache_read_tokens),
        (genai::CACHE_WRITE_TOKENS, usage.cache_write_tokens),
        (genai::REASONING_TOKENS, usage.reasoning_tokens),
    ];
    for (key, tokens) in parts.into_iter().filter(|(_, tokens)| *tokens > 0) {
        span.with(key, tokens);
    }
}
