//! A task's log as a trace and as a history: the same events, in the words of those who read them elsewhere.

use ostler_kernel::{
    Event, EventBody, Failure, Run, StepId, StepKind, StepOutcome, Task, event::StepFinished, run::AttemptEnd,
};
use serde::Serialize;

use super::event::action;

/// The most that a task is shown with: the last ones.
pub const MOST_TRACE: usize = 500;
pub const MOST_HISTORY: usize = 200;

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
}

#[derive(Debug, Serialize)]
pub struct HistoryItem {
    timestamp: String,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    message: String,
}

/// One item for each event, in order; and one more where a step breaks its agent's contract.
pub fn trace(task: &Task, runs: &[Run], events: &[Event]) -> Vec<TraceItem> {
    let mut attempt = 0;
    let mut items = Vec::with_capacity(events.len());
    for event in events {
        if let EventBody::AttemptStarted { attempt: started, .. } = &event.body {
            attempt = *started;
        }
        let agent = agent_of(task, runs, event);
        items.push(item(agent, event, attempt));
        items.extend(violation(agent, event, attempt));
    }
    items
}

/// Who was at work; of what tells of the whole, who began or was last.
fn agent_of<'a>(task: &'a Task, runs: &'a [Run], event: &Event) -> &'a str {
    let run = event.body.run().unwrap_or(task.run);
    runs.iter().find(|known| known.id == run).map_or(&task.request.agent, |run| &run.agent)
}

fn item(agent: &str, event: &Event, attempt: u32) -> TraceItem {
    let base = TraceItem {
        timestamp: event.at.to_string(),
        step_id: format!("a{attempt:03}.s{:04}", event.seq),
        attempt,
        branch_id: "b001",
        r#type: event.body.name(),
        agent: agent.to_owned(),
        message: super::log_line::what(&event.body),
        ..TraceItem::default()
    };
    match &event.body {
        EventBody::StepFinished(step) => finished(base, step),
        EventBody::RunRetrying { failure, .. }
        | EventBody::AttemptEnded { end: AttemptEnd::Error { failure }, .. }
        | EventBody::TaskEnded { failure: Some(failure), .. } => failed(base, failure),
        EventBody::TaskAccepted { .. }
        | EventBody::AttemptStarted { .. }
        | EventBody::AttemptEnded { .. }
        | EventBody::RunWaiting { .. }
        | EventBody::RunSleeping { .. }
        | EventBody::RunReady { .. }
        | EventBody::InputAccepted { .. }
        | EventBody::MessageSent { .. }
        | EventBody::RunEnded { .. }
        | EventBody::TaskEnded { .. }
        | EventBody::ResourceChanged(_) => base,
    }
}

fn violation(agent: &str, event: &Event, attempt: u32) -> Option<TraceItem> {
    let EventBody::StepFinished(step) = &event.body else { return None };
    let message = step.contract_violation.clone()?;
    Some(TraceItem {
        timestamp: event.at.to_string(),
        step_id: format!("a{attempt:03}.s{:04}.contract", event.seq),
        attempt,
        step: Some(step.step),
        branch_id: "b001",
        r#type: "agent_contract_violation",
        agent: agent.to_owned(),
        message,
        ..TraceItem::default()
    })
}

fn finished(base: TraceItem, step: &StepFinished) -> TraceItem {
    let mut item = TraceItem {
        step: Some(step.step),
        attempt: step.attempt,
        latency_ms: Some(step.took_ms),
        message: step.preview.clone(),
        ..base
    };
    match &step.kind {
        StepKind::Model { .. } => {
            item.r#type = "model_call";
            item.tokens = Some(step.usage.total());
            item.input_tokens = Some(step.usage.input_tokens);
            item.output_tokens = Some(step.usage.output_tokens);
            item.token_usage_source = Some(usage_source(step.usage.estimated));
            item.cost_micro_usd = step.usage.cost_micro_usd;
            let calls = step.opened.iter().filter(|opened| matches!(opened.kind, StepKind::Tool { .. }));
            item.tool_calls = Some(calls.count());
        }
        StepKind::Tool { call, .. } => {
            item.r#type = "tool_call";
            item.tool = Some(call.name.clone());
            item.tool_request_id = Some(StepId { run: step.run, index: step.step }.to_string());
        }
        StepKind::Wait => item.r#type = "wait",
    }
    match &step.outcome {
        StepOutcome::Failed { failure } => failed(item, failure),
        StepOutcome::Ok | StepOutcome::Interrupted => item,
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

/// Where the task went, without its steps.
pub fn history(events: &[Event]) -> Vec<HistoryItem> {
    let mut was_lost = false;
    let mut items = Vec::new();
    for event in events {
        let Some((kind, worker)) = turn(&event.body, was_lost) else { continue };
        was_lost = matches!(event.body, EventBody::AttemptEnded { end: AttemptEnd::Lost, .. });
        let message = super::log_line::what(&event.body);
        items.push(HistoryItem { timestamp: event.at.to_string(), r#type: kind, worker, message });
    }
    items
}

/// As everywhere, but that a claim is told apart from a take-over, and a try ends in one way only.
fn turn(body: &EventBody, was_lost: bool) -> Option<(&'static str, Option<String>)> {
    match body {
        EventBody::AttemptStarted { worker, .. } => {
            Some((if was_lost { "takeover" } else { "claim" }, Some(worker.clone())))
        }
        EventBody::AttemptEnded { .. } => Some(("assignment_cleared", None)),
        EventBody::RunEnded { .. }
        | EventBody::RunRetrying { .. }
        | EventBody::RunWaiting { .. }
        | EventBody::RunSleeping { .. }
        | EventBody::RunReady { .. }
        | EventBody::TaskEnded { .. } => Some((action(body), None)),
        EventBody::TaskAccepted { .. }
        | EventBody::StepFinished(_)
        | EventBody::InputAccepted { .. }
        | EventBody::MessageSent { .. }
        | EventBody::ResourceChanged(_) => None,
    }
}
