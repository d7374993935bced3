//! A task's log as a trace: the same events, in the words of those who read them elsewhere.

use ostler_control::Telling;
use ostler_kernel::{
    Event, EventBody, Failure, Run, StepId, StepKind, StepOutcome, Task, TaskState,
    event::StepFinished,
    message::MessageKind,
    plan::{AgentPlan, AuthForm},
    run::AttemptEnd,
};
use serde::Serialize;

/// The most that a task is shown with: the last ones.
pub const MOST_TRACE: usize = 500;

#[derive(Debug, Default, Serialize)]
pub struct TraceItem {
    timestamp: String,
    step_id: String,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u32>,
    branch_id: &'static str,
    r#type: &'static str,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_usage_source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_micro_usd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_auth_profile: Option<&'static str>,
    /// The secret's name, never the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_auth_secret_ref: Option<String>,
}

/// The items of each event, in order: the event itself, and beside it what else it means to those who read traces elsewhere, which has its
/// step id with a word behind it. What an event is called does not depend on how many events before it are told.
pub fn trace(task: &Task, telling: &Telling) -> Vec<TraceItem> {
    let mut attempt = attempt_before(telling);
    let mut items = Vec::with_capacity(telling.events.len());
    for event in &telling.events {
        attempt = attempt_of(&event.body).unwrap_or(attempt);
        let (agent, run, plan) = worker_of(task, telling, event);
        let base = base(agent, event, attempt);
        items.extend(before(&event.body, run).into_iter().map(|beside| beside.of(&base)));
        let behind: Vec<TraceItem> = behind(&event.body).map(|beside| beside.of(&base)).collect();
        items.push(match &event.body {
            EventBody::StepFinished(step) => finished(base, step, plan),
            other => item(base, other),
        });
        items.extend(behind);
    }
    items
}

/// What an event means beside itself.
struct Beside<'a> {
    /// Stands behind the event's step id.
    word: &'static str,
    kind: &'static str,
    /// As the event's own unless it says more.
    message: Option<&'a str>,
    step: Option<u32>,
    cost_micro_usd: Option<u64>,
}

impl Beside<'_> {
    fn new(word: &'static str, kind: &'static str) -> Self {
        Self { word, kind, message: None, step: None, cost_micro_usd: None }
    }

    fn of(self, base: &TraceItem) -> TraceItem {
        TraceItem {
            timestamp: base.timestamp.clone(),
            step_id: format!("{}.{}", base.step_id, self.word),
            attempt: base.attempt,
            step: self.step,
            branch_id: base.branch_id,
            r#type: self.kind,
            agent: base.agent.clone(),
            message: self.message.unwrap_or(&base.message).to_owned(),
            cost_micro_usd: self.cost_micro_usd,
            ..TraceItem::default()
        }
    }
}

/// What comes just before an event: whoever begins has got a message; whoever ends has worked, well or not.
fn before<'a>(body: &EventBody, run: Option<&'a Run>) -> Vec<Beside<'a>> {
    match body {
        EventBody::AttemptStarted { .. } => vec![Beside::new("received", "agent_message_received")],
        EventBody::RunEnded { .. } => vec![Beside::new("complete", "agent_worker_complete")],
        // The last of a line, which hands on to nobody.
        EventBody::TaskEnded { state: TaskState::Succeeded, .. } => {
            let cost_micro_usd = run.and_then(|run| run.usage.cost_micro_usd);
            let end = Beside { cost_micro_usd, ..Beside::new("end", "agent_end") };
            vec![Beside::new("complete", "agent_worker_complete"), end]
        }
        EventBody::TaskEnded { state: TaskState::DeadLetter, .. } => {
            vec![Beside::new("error", "agent_error")]
        }
        EventBody::TaskAccepted { .. }
        | EventBody::StepFinished(_)
        | EventBody::AttemptEnded { .. }
        | EventBody::RunRetrying { .. }
        | EventBody::RunWaiting { .. }
        | EventBody::RunSleeping { .. }
        | EventBody::RunReady { .. }
        | EventBody::InputAccepted { .. }
        | EventBody::MessageSent { .. }
        | EventBody::TaskEnded { .. }
        | EventBody::ResourceChanged(_)
        | EventBody::Unknown(_) => Vec::new(),
    }
}

/// What comes just behind it.
fn behind(body: &EventBody) -> impl Iterator<Item = Beside<'_>> {
    let (first, second) = match body {
        EventBody::AttemptStarted { .. } => (Some(Beside::new("worker", "agent_worker_start")), None),
        EventBody::StepFinished(step) => (said(step), violation(step)),
        EventBody::RunEnded { .. } | EventBody::TaskEnded { state: TaskState::Succeeded, .. } => {
            (Some(Beside::new("processed", "agent_message_processed")), None)
        }
        EventBody::TaskEnded { state: TaskState::Failed, .. } => (
            Some(Beside::new("final", "agent_message_non_retryable")),
            Some(Beside::new("deadletter", "agent_message_deadletter")),
        ),
        EventBody::TaskAccepted { .. }
        | EventBody::AttemptEnded { .. }
        | EventBody::RunRetrying { .. }
        | EventBody::RunWaiting { .. }
        | EventBody::RunSleeping { .. }
        | EventBody::RunReady { .. }
        | EventBody::InputAccepted { .. }
        | EventBody::MessageSent { .. }
        | EventBody::TaskEnded { .. }
        | EventBody::ResourceChanged(_)
        | EventBody::Unknown(_) => (None, None),
    };
    first.into_iter().chain(second)
}

/// What a model said, as far as the log has it. Of a call that failed the log has why.
fn said(step: &StepFinished) -> Option<Beside<'_>> {
    let is_answered = !matches!(step.outcome, StepOutcome::Failed { .. });
    let has_said = matches!(step.kind, StepKind::Model { .. }) && is_answered && !step.preview.is_empty();
    let (message, number) = (Some(step.preview.as_str()), Some(number(step)));
    has_said.then(|| Beside { message, step: number, ..Beside::new("output", "model_output") })
}

/// What of its agent's contract a step breaks.
fn violation(step: &StepFinished) -> Option<Beside<'_>> {
    let message = Some(step.contract_violation.as_deref()?);
    let step = Some(number(step));
    Some(Beside { message, step, ..Beside::new("contract", "agent_contract_violation") })
}

/// Elsewhere steps are counted from 1 on.
fn number(step: &StepFinished) -> u32 {
    step.step + 1
}

/// The attempt that was begun last when what is told begins. What comes before the first belongs to it.
fn attempt_before(telling: &Telling) -> u32 {
    let first = telling.events.iter().find(|event| attempt_of(&event.body).is_some());
    let begun = |runs: &[Run]| runs.iter().rev().map(|run| run.attempt).find(|attempt| *attempt > 0);
    let attempt = match first.map(|event| &event.body) {
        Some(EventBody::AttemptStarted { run, attempt: 1, .. }) => {
            let place = telling.runs.iter().position(|known| known.id == *run).unwrap_or(0);
            begun(&telling.runs[..place])
        }
        Some(EventBody::AttemptStarted { attempt, .. }) => attempt.checked_sub(1),
        Some(body) => attempt_of(body),
        None => begun(&telling.runs),
    };
    attempt.unwrap_or(1).max(1)
}

/// The attempt that an event belongs to, if it says so.
fn attempt_of(body: &EventBody) -> Option<u32> {
    match body {
        EventBody::AttemptStarted { attempt, .. } | EventBody::AttemptEnded { attempt, .. } => Some(*attempt),
        EventBody::StepFinished(step) => Some(step.attempt),
        EventBody::TaskAccepted { .. }
        | EventBody::RunRetrying { .. }
        | EventBody::RunWaiting { .. }
        | EventBody::RunSleeping { .. }
        | EventBody::RunReady { .. }
        | EventBody::InputAccepted { .. }
        | EventBody::MessageSent { .. }
        | EventBody::RunEnded { .. }
        | EventBody::TaskEnded { .. }
        | EventBody::ResourceChanged(_)
        | EventBody::Unknown(_) => None,
    }
}

/// Who was at work; of what tells of the whole, who began or was last.
fn worker_of<'a>(
    task: &'a Task,
    telling: &'a Telling,
    event: &Event,
) -> (&'a str, Option<&'a Run>, Option<&'a AgentPlan>) {
    let run = event.body.run().unwrap_or(task.run);
    let known = telling.planned().find(|(known, _)| known.id == run);
    known.map_or((&task.request.agent, None, None), |(run, plan)| (&run.agent, Some(run), plan))
}

fn base(agent: &str, event: &Event, attempt: u32) -> TraceItem {
    TraceItem {
        timestamp: event.at.to_string(),
        step_id: format!("a{attempt:03}.s{:04}", event.seq),
        attempt,
        branch_id: "b001",
        r#type: type_of(&event.body),
        agent: agent.to_owned(),
        message: super::log_line::what(&event.body),
        ..TraceItem::default()
    }
}

fn item(base: TraceItem, body: &EventBody) -> TraceItem {
    match body {
        EventBody::RunRetrying { failure, .. }
        | EventBody::AttemptEnded { end: AttemptEnd::Error { failure }, .. }
        | EventBody::TaskEnded { failure: Some(failure), .. } => failed(base, failure),
        EventBody::RunEnded { usage, .. } => TraceItem { cost_micro_usd: usage.cost_micro_usd, ..base },
        EventBody::TaskAccepted { .. }
        | EventBody::AttemptStarted { .. }
        | EventBody::StepFinished(_)
        | EventBody::AttemptEnded { .. }
        | EventBody::RunWaiting { .. }
        | EventBody::RunSleeping { .. }
        | EventBody::RunReady { .. }
        | EventBody::InputAccepted { .. }
        | EventBody::MessageSent { .. }
        | EventBody::TaskEnded { .. }
        | EventBody::ResourceChanged(_)
        | EventBody::Unknown(_) => base,
    }
}

/// What happened, in the words of those who read traces elsewhere; in ours, where they have none for it.
fn type_of(body: &EventBody) -> &'static str {
    match body {
        EventBody::TaskAccepted { .. } => "task_start",
        EventBody::MessageSent { message, .. } => match message.kind {
            MessageKind::TaskStart => "task_runtime_kickoff",
            MessageKind::TaskHandoff => "agent_message",
        },
        EventBody::AttemptStarted { .. } => "agent_start",
        EventBody::StepFinished(step) => step_type(step),
        EventBody::AttemptEnded { end: AttemptEnd::Error { .. }, .. } => "agent_error",
        EventBody::AttemptEnded { end: AttemptEnd::Yielded, .. } => "agent_worker_stop",
        EventBody::RunRetrying { .. } => "agent_message_retry_scheduled",
        EventBody::RunEnded { .. } => "agent_end",
        EventBody::TaskEnded { failure: Some(failure), .. } if failure.code == "token_budget" => {
            "token_budget_exceeded"
        }
        EventBody::TaskEnded { state, .. } => match state {
            TaskState::Succeeded => "task_summary",
            TaskState::Failed => "agent_error",
            TaskState::DeadLetter => "agent_message_deadletter",
            TaskState::Queued
            | TaskState::Running
            | TaskState::Waiting { .. }
            | TaskState::Sleeping { .. }
            | TaskState::Cancelled
            | TaskState::Dropped { .. } => body.name(),
        },
        EventBody::AttemptEnded { end: AttemptEnd::Lost, .. }
        | EventBody::RunWaiting { .. }
        | EventBody::RunSleeping { .. }
        | EventBody::RunReady { .. }
        | EventBody::InputAccepted { .. }
        | EventBody::ResourceChanged(_)
        | EventBody::Unknown(_) => body.name(),
    }
}

fn step_type(step: &StepFinished) -> &'static str {
    match (&step.kind, &step.outcome) {
        (StepKind::Model { .. }, StepOutcome::Failed { .. }) => "model_error",
        (StepKind::Model { .. }, StepOutcome::Ok | StepOutcome::Interrupted) => "model_call",
        (StepKind::Tool { .. }, StepOutcome::Failed { failure }) if failure.code == "permission_denied" => {
            "tool_permission_denied"
        }
        (StepKind::Tool { .. }, StepOutcome::Failed { .. }) => "tool_error",
        (StepKind::Tool { .. }, StepOutcome::Ok | StepOutcome::Interrupted) => "tool_call",
        (StepKind::Wait, _) => "wait",
    }
}

fn finished(base: TraceItem, step: &StepFinished, plan: Option<&AgentPlan>) -> TraceItem {
    let mut item = TraceItem {
        step: Some(number(step)),
        latency_ms: Some(step.took_ms),
        message: step.preview.clone(),
        ..base
    };
    match &step.kind {
        StepKind::Model { .. } => {
            item.tokens = Some(step.usage.total());
            item.input_tokens = Some(step.usage.input_tokens);
            item.output_tokens = Some(step.usage.output_tokens);
            item.token_usage_source = Some(usage_source(step.usage.estimated));
            item.cost_micro_usd = step.usage.cost_micro_usd;
            let calls = step.opened.iter().filter(|opened| matches!(opened.kind, StepKind::Tool { .. }));
            item.tool_calls = Some(calls.count());
        }
        StepKind::Tool { call, .. } => {
            item.tool = Some(call.name.clone());
            item.tool_request_id = Some(StepId { run: step.run, index: step.step }.to_string());
            let auth = plan.and_then(|plan| plan.tool(&call.name)?.auth.as_ref());
            item.tool_auth_profile = auth.map(|auth| profile(&auth.shown));
            item.tool_auth_secret_ref = auth.map(|auth| auth.secret_ref.clone());
        }
        StepKind::Wait => {}
    }
    match &step.outcome {
        StepOutcome::Failed { failure } => failed(item, failure),
        StepOutcome::Ok | StepOutcome::Interrupted => item,
    }
}

/// As manifests call it.
fn profile(form: &AuthForm) -> &'static str {
    match form {
        AuthForm::Bearer => "bearer",
        AuthForm::Basic => "basic",
        AuthForm::Header { .. } => "api_key_header",
    }
}

pub fn usage_source(is_estimated: bool) -> &'static str {
    if is_estimated { "estimated" } else { "provider" }
}

fn failed(item: TraceItem, failure: &Failure) -> TraceItem {
    TraceItem {
        error_code: Some(failure.code.clone()),
        error_reason: Some(failure.message.clone()),
        retryable: Some(failure.is_retryable()),
        ..item
    }
}

#[cfg(test)]
mod tests {
    use ostler_kernel::{RunId, Timestamp, Usage, conversation::ToolCallRef};

    use super::*;

    fn step(kind: StepKind, failure: Option<Failure>) -> EventBody {
        EventBody::StepFinished(Box::new(StepFinished {
            run: RunId::from_bytes([0; 16]),
            step: 0,
            attempt: 1,
            kind,
            outcome: failure.map_or(StepOutcome::Ok, |failure| StepOutcome::Failed { failure }),
            started_at: Timestamp::from_millis(0),
            took_ms: 0,
            usage: Usage::default(),
            preview: String::new(),
            contract_violation: None,
            opened: Vec::new(),
        }))
    }

    fn ended(state: TaskState, failure: Option<Failure>) -> EventBody {
        EventBody::TaskEnded { state, output: None, failure, usage: Usage::default() }
    }

    #[test]
    fn what_went_wrong_has_the_name_it_has_elsewhere() {
        let run = RunId::from_bytes([0; 16]);
        let failed = |code: &str| Failure::permanent(code, "no");
        let call = || StepKind::tool(ToolCallRef { id: "c".into(), name: "t".into() }, "{}", true);
        let lost = |end| EventBody::AttemptEnded { run, attempt: 1, end };
        let (failure, not_before) = (failed("model_unreachable"), Timestamp::from_millis(0));
        for (body, expected) in [
            (step(StepKind::model("m"), Some(failed("model_unreachable"))), "model_error"),
            (step(call(), Some(failed("execution_failed"))), "tool_error"),
            (step(call(), Some(failed("permission_denied"))), "tool_permission_denied"),
            (
                EventBody::RunRetrying { run, failure, failures: 1, not_before },
                "agent_message_retry_scheduled",
            ),
            (lost(AttemptEnd::Yielded), "agent_worker_stop"),
            (lost(AttemptEnd::Error { failure: failed("x") }), "agent_error"),
            (lost(AttemptEnd::Lost), "attempt_ended"),
            (ended(TaskState::DeadLetter, Some(failed("x"))), "agent_message_deadletter"),
            (ended(TaskState::Failed, Some(failed("x"))), "agent_error"),
            (ended(TaskState::Failed, Some(failed("token_budget"))), "token_budget_exceeded"),
            (ended(TaskState::Cancelled, Some(failed("cancelled"))), "task_ended"),
        ] {
            assert_eq!(type_of(&body), expected, "{body:?}");
        }
    }
}
