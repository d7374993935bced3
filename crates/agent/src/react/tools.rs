//! The loop's tool calls: all the model asked for, at once. Each gets a result, whatever happens: an error is
//! told to the model, never dropped.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use ostler_kernel::{
    Entry, ErrorClass, Failure, Step, StepKind, StepOutcome, Usage, conversation::ToolCallRef,
    run::journal::Progress,
};
use ostler_tools::{
    ToolRequest,
    taxonomy::{OUTCOME_UNKNOWN, ToolCode},
};

use super::{Loop, Next, done};
use crate::port::Stopped;

struct Called {
    step: Step,
    call: ToolCallRef,
    result: Result<String, Failure>,
    took: Duration,
}

impl Loop<'_> {
    pub(super) async fn call_tools(&mut self) -> Result<Next, Stopped> {
        let steps: Vec<Step> = self.open.clone();
        let mut calls: FuturesUnordered<_> = steps.into_iter().map(|step| call(self.port, step)).collect();
        while let Some(first) = calls.next().await {
            let mut finished = vec![first?];
            while let Some(Some(more)) = calls.next().now_or_never() {
                finished.push(more?);
            }
            let mut progress = self.results(finished);
            if calls.is_empty() {
                progress.open.push(StepKind::Model { model: self.start.plan.model.model.clone() });
            }
            self.journal(progress).await?;
        }
        Ok(Next::Continue)
    }

    fn results(&self, finished: Vec<Called>) -> Progress {
        let mut progress = Progress::default();
        for Called { step, call, result, took } in finished {
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

async fn call(port: &dyn crate::RunnerPort, step: Step) -> Result<Called, Stopped> {
    let began = port.runtime().monotonic();
    let StepKind::Tool { call, arguments, idempotent } = step.kind.clone() else {
        let call = ToolCallRef { id: String::new(), name: step.kind.name().to_owned() };
        let result = Err(Failure::permanent(ToolCode::UnsupportedTool.name(), "not a tool call"));
        return Ok(Called { step, call, result, took: Duration::ZERO });
    };
    // Opened by an earlier attempt, so it may have been made: whether it was, only the tool knows.
    let was_begun = step.attempt < port.start().run.attempt;
    let result = if was_begun && !idempotent {
        Err(Failure::new(
            ErrorClass::OutcomeUnknown,
            OUTCOME_UNKNOWN,
            "the worker was lost during this call; it may or may not have happened, and it was not repeated",
        ))
    } else {
        port.check_held()?;
        make(port, &step, &call, &arguments).await
    };
    let took = port.runtime().monotonic().saturating_sub(began);
    Ok(Called { step, call, result, took })
}

async fn make(
    port: &dyn crate::RunnerPort,
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
