//! The loop's tool calls: all the model asked for, at once. Each gets a result, whatever happens: an error is
//! told to the model, never dropped. What was decided not to be called is answered without.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use ostler_kernel::{
    Block, Entry, ErrorClass, Failure, Role, Step, StepKind, StepOutcome, Usage,
    conversation::ToolCallRef,
    plan::AfterTool,
    run::{end::Leave, journal::Progress},
    step::Instead,
};
use ostler_tools::{
    ToolRequest,
    taxonomy::{OUTCOME_UNKNOWN, ToolCode},
};

use super::{
    Loop, Next,
    answer::note,
    done,
    output::{self, Judged},
};
use crate::{
    hook::{Hooks, Moment, ToolAsk},
    port::{RunnerPort, Stopped},
};

/// A call that was not made again, since an equal one was made before and failed.
const REPEATED: &str = "duplicate_tool_call";

struct Called {
    step: Step,
    call: ToolCallRef,
    result: Result<String, Failure>,
    took: Duration,
    /// A hook that was shown the result failed.
    broken: Option<Failure>,
}

impl Loop<'_> {
    pub(super) async fn call_tools(&mut self) -> Result<Next, Stopped> {
        let steps = self.open.iter().filter(|step| matches!(step.kind, StepKind::Tool { .. })).cloned();
        let (repeated, steps): (Vec<Step>, Vec<Step>) = steps.partition(|step| reused(step).is_some());
        let (port, hooks) = (self.port, self.hooks);
        let mut calls: FuturesUnordered<_> = steps.into_iter().map(|step| call(port, hooks, step)).collect();
        let (mut progress, mut broken) = (Progress::default(), None);
        while let Some(first) = calls.next().await {
            let mut finished = vec![first?];
            while let Some(Some(more)) = calls.next().now_or_never() {
                finished.push(more?);
            }
            broken = finished.iter_mut().find_map(|called| called.broken.take()).or(broken);
            progress = self.results(finished);
            if !calls.is_empty() {
                self.journal(std::mem::take(&mut progress)).await?;
            }
        }
        self.repeat(&mut progress, repeated);
        match broken {
            Some(failure) => self.fail(progress, failure).await,
            None => self.after_tools(progress).await,
        }
    }

    /// All calls of an answer have a result: the model is told, or the run ends with the first.
    async fn after_tools(&mut self, mut progress: Progress) -> Result<Next, Stopped> {
        let rules = &self.start.plan.rules;
        if rules.after_tool == AfterTool::Stop {
            let past = self.past(&progress);
            let judged = first_result(&past).map(|given| output::judge(rules, &past, given, true));
            if let Some(Judged::Fits { output, violation }) = judged {
                note(&mut progress, violation);
                return self.leave(progress, Leave::Ok { output }).await;
            }
        }
        progress.open.push(self.next_model());
        self.journal(progress).await?;
        Ok(Next::Continue)
    }

    /// Answers calls that were made before by what they gave then.
    fn repeat(&self, progress: &mut Progress, steps: Vec<Step>) {
        for step in steps {
            let (Some(of), StepKind::Tool { call, .. }) = (reused(&step), &step.kind) else { continue };
            let given = self.past(progress).into_iter().find_map(|entry| given_by(entry, of));
            let (content, is_error) = given.unwrap_or_else(|| {
                (format!("error {REPEATED}: what step {of} gave is no longer in the conversation"), true)
            });
            let outcome = match is_error {
                false => StepOutcome::Ok,
                true => StepOutcome::Failed {
                    failure: Failure::permanent(REPEATED, format!("step {of}, which it repeats, failed")),
                },
            };
            let entry = Entry::tool_result(self.start.run.id, step.id.index, call, content.clone(), is_error);
            let runtime = self.port.runtime();
            let step = done(runtime, step, outcome, Duration::ZERO, Usage::default(), &content);
            progress.done.push(step);
            progress.entries.push(entry);
        }
    }

    fn results(&self, finished: Vec<Called>) -> Progress {
        let mut progress = Progress::default();
        for Called { step, call, result, took, broken: _ } in finished {
            let (content, outcome) = match result {
                Ok(content) => (self.capped(content), StepOutcome::Ok),
                Err(failure) => (told(&failure), StepOutcome::Failed { failure }),
            };
            let is_error = !matches!(outcome, StepOutcome::Ok);
            let runtime = self.port.runtime();
            progress.done.push(done(runtime, step.clone(), outcome, took, Usage::default(), &content));
            let entry = Entry::tool_result(self.start.run.id, step.id.index, &call, content, is_error);
            progress.entries.push(entry);
        }
        progress
    }

    fn capped(&self, mut content: String) -> String {
        let (max, whole) = (self.start.plan.limits.max_tool_output, content.len());
        if whole > max {
            content.truncate(content.floor_char_boundary(max));
            content.push_str(&format!("\n[output truncated: {max} of {whole} bytes]"));
        }
        content
    }
}

/// What the model is told of a failure.
fn told(failure: &Failure) -> String {
    format!("error {}: {}", failure.code, failure.message)
}

/// The step whose result this one gets.
fn reused(step: &Step) -> Option<u32> {
    match &step.kind {
        StepKind::Tool { instead: Some(Instead::Reuse { step }), .. } => Some(*step),
        StepKind::Tool { .. } | StepKind::Model { .. } | StepKind::Wait => None,
    }
}

/// What the step gave, and whether that is an error, if this is what it said.
fn given_by(entry: &Entry, step: u32) -> Option<(String, bool)> {
    if entry.role != Role::Tool || entry.step != Some(step) {
        return None;
    }
    entry.blocks.iter().find_map(|block| match block {
        Block::ToolResult { content, is_error, .. } => Some((content.clone(), *is_error)),
        Block::Text { .. } | Block::ToolCall { .. } | Block::Image(_) | Block::Native { .. } => None,
    })
}

/// What the first tool gave that worked, since the model spoke last.
fn first_result<'e>(past: &[&'e Entry]) -> Option<&'e str> {
    let since = past.iter().rposition(|entry| entry.role == Role::Assistant).unwrap_or(0);
    let blocks = past.iter().skip(since).flat_map(|entry| &entry.blocks);
    blocks.into_iter().find_map(|block| match block {
        Block::ToolResult { content, is_error: false, .. } => Some(content.as_str()),
        Block::ToolResult { .. }
        | Block::Text { .. }
        | Block::ToolCall { .. }
        | Block::Image(_)
        | Block::Native { .. } => None,
    })
}

async fn call(port: &dyn RunnerPort, hooks: &Hooks, step: Step) -> Result<Called, Stopped> {
    let began = port.runtime().monotonic();
    let StepKind::Tool { call, arguments, idempotent, instead } = step.kind.clone() else {
        let call = ToolCallRef { id: String::new(), name: step.kind.name().to_owned() };
        let result = Err(Failure::permanent(ToolCode::UnsupportedTool.name(), "not a tool call"));
        return Ok(Called { step, call, result, took: Duration::ZERO, broken: None });
    };
    if let Some(Instead::Refused { failure }) = instead {
        return Ok(Called { step, call, result: Err(failure), took: Duration::ZERO, broken: None });
    }
    // Opened by an earlier attempt, so it may have been made: whether it was, only the tool knows.
    let was_begun = step.attempt < port.start().run.attempt;
    let (mut result, mut broken) = (Err(unknown()), None);
    if !was_begun || idempotent {
        port.check_held()?;
        result = make(port, &step, &call, &arguments).await;
        let (at, ask) = (
            Moment { start: port.start(), step: step.id.index },
            ToolAsk { name: call.name.clone(), arguments },
        );
        broken = hooks.after_tool(at, &ask, &mut result).await.err();
    }
    let took = port.runtime().monotonic().saturating_sub(began);
    Ok(Called { step, call, result, took, broken })
}

fn unknown() -> Failure {
    Failure::new(
        ErrorClass::OutcomeUnknown,
        OUTCOME_UNKNOWN,
        "the worker was lost during this call; it may or may not have happened, and it was not repeated",
    )
}

async fn make(
    port: &dyn RunnerPort,
    step: &Step,
    call: &ToolCallRef,
    arguments: &str,
) -> Result<String, Failure> {
    let start = port.start();
    let tool = start.plan.tool(&call.name).ok_or_else(|| {
        let known: Vec<_> = start.plan.tools.iter().map(|tool| tool.name.as_str()).collect();
        let message = format!("there is no tool {:?}; the tools are: {}", call.name, known.join(", "));
        Failure::permanent(ToolCode::UnsupportedTool.name(), message)
    })?;
    let arguments = read_arguments(arguments)?;
    let request = ToolRequest {
        tool: tool.clone(),
        request_id: step.id.to_string(),
        namespace: start.plan.namespace.clone(),
        agent: start.plan.agent.clone(),
        task: start.run.task.to_string(),
        arguments,
    };
    port.toolbox().call(request).await
}

fn read_arguments(text: &str) -> Result<serde_json::Value, Failure> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    match serde_json::from_str(text) {
        Ok(value @ serde_json::Value::Object(_)) => Ok(value),
        Ok(_) => {
            Err(Failure::permanent(ToolCode::InvalidInput.name(), "the arguments must be a JSON object"))
        }
        Err(error) => Err(Failure::permanent(
            ToolCode::InvalidInput.name(),
            format!("the arguments are not valid JSON: {error}"),
        )),
    }
}
