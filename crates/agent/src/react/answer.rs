//! What a model's answer means: it calls tools, or it is the output, if the rules of the run take it for one.

use std::time::Duration;

use ostler_kernel::{
    Block, Entry, Failure, Role, Step, StepKind, StepOutcome, Usage,
    conversation::ToolCallRef,
    plan::{AfterTool, Duplicates, OnViolation},
    run::{end::Leave, journal::Progress},
    step::Instead,
};
use ostler_llm::{Completion, Finish};
use ostler_tools::taxonomy::ToolCode;

use super::{
    Loop, Next, done,
    duplicates::Made,
    limit,
    model::text_of,
    output::{self, Judged},
    preview, text_calls,
};
use crate::{
    hook::{ToolAsk, Verdict},
    port::Stopped,
};

/// A model call that was answered.
pub(super) struct Answered {
    pub step: Step,
    pub completion: Completion,
    pub usage: Usage,
    pub took: Duration,
}

impl Loop<'_> {
    pub(super) async fn take_answer(
        &mut self,
        mut progress: Progress,
        answered: Answered,
    ) -> Result<Next, Stopped> {
        let Answered { step, mut completion, usage, took } = answered;
        let runtime = self.port.runtime();
        let finish = completion.finish;
        let calls = match self.decide(&step, finish, &progress, &mut completion.blocks).await {
            Ok(calls) => calls,
            Err(failure) => {
                // A hook failed: the answer is not kept, what it cost is.
                let outcome = StepOutcome::Failed { failure: failure.clone() };
                progress.done.push(done(runtime, step, outcome, took, usage, &failure.message));
                return self.fail(progress, failure).await;
            }
        };
        let text = text_of(&completion.blocks);
        let refusal = completion.refusal().map(str::to_owned);
        let index = step.id.index;
        progress.done.push(done(runtime, step, StepOutcome::Ok, took, usage, &text));
        progress.entries.push(Entry {
            role: Role::Assistant,
            blocks: completion.blocks,
            run: self.start.run.id,
            step: Some(index),
        });
        match finish {
            // What was stopped for what it says is stopped as a whole: its calls belong to it.
            Finish::ContentFilter => {
                let message = "the vendor's content filter stopped the answer";
                self.refuse_calls(progress, calls, Failure::permanent("model_content_filter", message)).await
            }
            Finish::Refusal => {
                let said = refusal.as_deref().unwrap_or(&text);
                let message = format!("the model refused: {}", preview(said));
                self.refuse_calls(progress, calls, Failure::permanent("model_refused", message)).await
            }
            Finish::Stop | Finish::ToolCalls | Finish::Pause | Finish::Length if !calls.is_empty() => {
                self.begin_calls(progress, calls).await
            }
            Finish::Stop | Finish::ToolCalls => self.end_with(progress, index, &text).await,
            Finish::Pause => {
                progress.open.push(self.next_model());
                self.journal(progress).await?;
                Ok(Next::Continue)
            }
            Finish::Length => {
                let message = "the model's answer was cut off at its own limit".to_owned();
                self.fail(progress, limit("model_answer_cut", message)).await
            }
        }
    }

    /// The answer ends the run, if it is what the rules ask for. If not, the model is told and asked again.
    async fn end_with(&mut self, mut progress: Progress, step: u32, text: &str) -> Result<Next, Stopped> {
        let plan = &self.start.plan;
        let calls_left = self.model_calls + 1 < plan.limits.max_steps;
        match output::judge(&plan.rules, &self.past(&progress), text, calls_left) {
            Judged::Fits { output, violation } => {
                note(&mut progress, violation);
                self.leave(progress, Leave::Ok { output }).await
            }
            Judged::Again { complaint } => {
                let told = Entry { step: Some(step), ..Entry::user(self.start.run.id, complaint) };
                progress.entries.push(told);
                progress.open.push(self.next_model());
                self.journal(progress).await?;
                Ok(Next::Continue)
            }
            Judged::Fails(failure) => self.fail(progress, failure).await,
        }
    }

    async fn begin_calls(&mut self, mut progress: Progress, calls: Vec<StepKind>) -> Result<Next, Stopped> {
        let rules = &self.start.plan.rules;
        let outside = output::outside(rules, &calls);
        let broken = outside.clone().filter(|_| rules.on_violation == OnViolation::Fail);
        note(&mut progress, outside);
        match broken.as_deref().map(output::violated) {
            None => {
                progress.open = calls;
                self.journal(progress).await?;
                Ok(Next::Continue)
            }
            Some(failure) => self.refuse_calls(progress, calls, failure).await,
        }
    }

    /// The run fails. None of the calls is made; each gets a result all the same.
    async fn refuse_calls(
        &mut self,
        mut progress: Progress,
        calls: Vec<StepKind>,
        failure: Failure,
    ) -> Result<Next, Stopped> {
        progress.open = calls.into_iter().map(|call| refused(call, failure.clone())).collect();
        self.fail(progress, failure).await
    }

    /// Shows the answer to the hooks, and decides what becomes of each call in it. What is decided is journaled with
    /// the answer, so that it holds after a crash.
    async fn decide(
        &self,
        step: &Step,
        finish: Finish,
        progress: &Progress,
        blocks: &mut Vec<Block>,
    ) -> Result<Vec<StepKind>, Failure> {
        self.hooks.after_model(self.at(step.id.index), blocks).await?;
        let told = self.transcript.iter().chain(&progress.entries);
        blocks.extend(text_calls::read(&self.start.plan, told, step.id.index, blocks));
        let mut made = match self.start.plan.rules.duplicates {
            Duplicates::Call => Made::default(),
            Duplicates::Reuse | Duplicates::Deny => Made::of(&self.past(&Progress::default())),
        };
        let mut calls = Vec::new();
        for (index, (call, arguments)) in (self.next_step..).zip(asked_for(blocks)) {
            let mut ask = ToolAsk { name: call.name.clone(), arguments: arguments.clone() };
            let instead = cut_off(finish, &arguments).or_else(|| self.by_rule(&made, &ask, calls.is_empty()));
            let instead = match instead {
                Some(instead) => Some(instead),
                None => match self.hooks.before_tool(self.at(index), &mut ask).await? {
                    Verdict::Proceed => None,
                    Verdict::Refuse { reason } => Some(refusal("hook_refused", reason)),
                },
            };
            if instead.is_none() {
                made.add(&call.name, &arguments, index);
            }
            // A call that never reaches a tool can be answered as often as one likes.
            let tool = self.start.plan.tool(&call.name).filter(|_| instead.is_none());
            let idempotent = tool.is_none_or(|tool| tool.idempotent);
            calls.push(StepKind::Tool { call, arguments: ask.arguments, idempotent, instead });
        }
        Ok(calls)
    }

    fn by_rule(&self, made: &Made, ask: &ToolAsk, is_first: bool) -> Option<Instead> {
        let rules = &self.start.plan.rules;
        if rules.after_tool == AfterTool::Stop && !is_first {
            let reason = "not called: the run ends with the first tool that answers";
            return Some(refusal("tool_not_called", reason.to_owned()));
        }
        match rules.duplicates {
            Duplicates::Call => None,
            Duplicates::Reuse => Some(Instead::Reuse { step: made.find(&ask.name, &ask.arguments)? }),
            Duplicates::Deny => {
                let step = made.find(&ask.name, &ask.arguments)?;
                let reason = format!("this very call was made before, in step {step}; use its result");
                Some(refusal("duplicate_tool_call", reason))
            }
        }
    }
}

/// What of the contract is broken is told with the step that shows it.
pub(super) fn note(progress: &mut Progress, violation: Option<String>) {
    if let Some(done) = progress.done.last_mut() {
        done.contract_violation = violation;
    }
}

fn asked_for(blocks: &[Block]) -> impl Iterator<Item = (ToolCallRef, String)> {
    blocks.iter().filter_map(|block| match block {
        Block::ToolCall { id, name, arguments } => {
            Some((ToolCallRef { id: id.clone(), name: name.clone() }, arguments.clone()))
        }
        Block::Text { .. } | Block::ToolResult { .. } | Block::Image(_) | Block::Native { .. } => None,
    })
}

/// A call that the vendor's bound has cut in two. It may have been cut before its first argument: nothing stands there
/// then, which in a whole answer says that the tool is called without any.
fn cut_off(finish: Finish, arguments: &str) -> Option<Instead> {
    let is_cut = match finish {
        Finish::Length => !is_object(arguments),
        Finish::Stop | Finish::ToolCalls | Finish::ContentFilter | Finish::Refusal | Finish::Pause => false,
    };
    let reason =
        "not called: the answer was cut off at its bound before the arguments were whole; say less at once";
    is_cut.then(|| refusal(ToolCode::InvalidInput.name(), reason.to_owned()))
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok()
}

fn refusal(code: &str, reason: String) -> Instead {
    Instead::Refused { failure: Failure::permanent(code, reason) }
}

fn refused(kind: StepKind, failure: Failure) -> StepKind {
    match kind {
        StepKind::Tool { call, arguments, .. } => {
            StepKind::Tool { call, arguments, idempotent: true, instead: Some(Instead::Refused { failure }) }
        }
        other @ (StepKind::Model { .. } | StepKind::Wait) => other,
    }
}
