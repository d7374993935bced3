//! The loop's model calls: limits before, retries around, and what an answer means after.

use std::time::Duration;

use ostler_kernel::{
    Block, Entry, Failure, Role, Step, StepKind, StepOutcome,
    conversation::ToolCallRef,
    retry::{Jitter, RetryPolicy},
    run::{end::Leave, journal::Progress},
};
use ostler_llm::{Completion, Finish, ModelRequest, Shown, ToolOffer, complete, estimate};

use super::{Loop, Next, done, limit};
use crate::{context::messages, port::Stopped};

/// A model call that fails in passing is tried again at once, before the run's own retries are touched.
const TRIES: u32 = 4;
const BACKOFF: RetryPolicy =
    RetryPolicy { max_attempts: TRIES, backoff_ms: 250, max_backoff_ms: 8_000, jitter: Jitter::Equal };

/// Longer than this nobody holds a slot to wait: the run sleeps.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

impl Loop<'_> {
    pub(super) async fn ask_model(&mut self) -> Result<Next, Stopped> {
        if self.port.is_stopping() {
            return self.leave(Progress::default(), Leave::GiveBack).await;
        }
        let mut progress = self.take_inputs().await?;
        let request = self.request(&progress);
        if let Some(failure) = self.bound_reached(&request) {
            return self.fail(progress, failure).await;
        }
        let Some(step) = self.open.first().cloned() else { return Ok(Next::Continue) };
        let began = self.port.runtime().monotonic();
        let answer = self.call_model(&step, &request).await?;
        let took = self.port.runtime().monotonic().saturating_sub(began);
        let runtime = self.port.runtime();
        match answer {
            Ok(completion) => {
                let usage =
                    completion.usage.unwrap_or_else(|| estimate::estimate(&request, &completion.blocks));
                let text = text_of(&completion.blocks);
                progress.done.push(done(runtime, step.clone(), StepOutcome::Ok, took, usage, &text));
                self.take_answer(progress, step, completion).await
            }
            Err(failure) => match failure.retry_after().filter(|asked| *asked > LONGEST_WAIT) {
                Some(asked) if failure.is_retryable() => {
                    let until = runtime.now().after(asked);
                    self.leave(Progress::default(), Leave::Sleep { until }).await
                }
                _ => {
                    let outcome = StepOutcome::Failed { failure: failure.clone() };
                    let usage = Default::default();
                    progress.done.push(done(runtime, step, outcome, took, usage, &failure.message));
                    self.fail(progress, failure).await
                }
            },
        }
    }

    /// Inputs that came since: they stand before the answer, and are consumed in its commit.
    async fn take_inputs(&mut self) -> Result<Progress, Stopped> {
        let inputs = self.port.inputs(self.consumed_input).await?;
        let run = self.start.run.id;
        Ok(Progress {
            consumed: inputs.last().map(|input| input.number),
            entries: inputs.into_iter().map(|input| Entry::user(run, input.text)).collect(),
            ..Progress::default()
        })
    }

    fn request(&self, progress: &Progress) -> ModelRequest {
        let plan = &self.start.plan;
        let mut entries = self.transcript.clone();
        entries.extend(progress.entries.iter().cloned());
        let index = self.open.first().map_or(self.next_step, |step| step.id.index);
        ModelRequest {
            endpoint: plan.model.clone(),
            system: plan.prompt.clone(),
            messages: messages(&entries),
            tools: plan.tools.iter().map(offer).collect(),
            output_schema: None,
            request_id: format!("{}.{index}", self.start.run.id),
        }
    }

    fn bound_reached(&self, request: &ModelRequest) -> Option<Failure> {
        let limits = &self.start.plan.limits;
        if self.model_calls >= limits.max_steps {
            let message = format!("stopped after {} model calls without a final answer", self.model_calls);
            return Some(limit("max_steps", message));
        }
        let budget = limits.token_budget?;
        let (used, next) = (self.usage.total(), estimate::estimate(request, &[]).total());
        (used.saturating_add(next) > budget).then(|| {
            limit(
                "token_budget",
                format!("{used} of {budget} tokens are used, and the next call needs about {next}"),
            )
        })
    }

    async fn call_model(
        &self,
        step: &Step,
        request: &ModelRequest,
    ) -> Result<Result<Completion, Failure>, Stopped> {
        let mut tries = 1;
        loop {
            self.port.check_held()?;
            let (mut said, mut thought) = (0, 0);
            let watch = |shown: Shown<'_>| {
                let (offset, text) = match shown {
                    Shown::Text(text) => (&mut said, text),
                    Shown::Thinking(text) => (&mut thought, text),
                };
                self.port.emit(step.id.index, *offset, shown);
                *offset += text.len() as u64;
            };
            let answer = complete(self.port.gateway(), request.clone(), watch).await.and_then(checked);
            let Err(failure) = &answer else { return Ok(answer) };
            let runtime = self.port.runtime();
            let delay = BACKOFF.delay(tries, failure.retry_after(), runtime.random());
            if !failure.is_retryable() || tries >= TRIES || delay > LONGEST_WAIT || self.port.is_stopping() {
                return Ok(answer);
            }
            tracing::debug!(step = %step.id, %failure, tries, "the model call is tried again");
            runtime.sleep(delay).await;
            tries += 1;
        }
    }

    /// An answer either calls tools or ends the run.
    async fn take_answer(
        &mut self,
        mut progress: Progress,
        step: Step,
        completion: Completion,
    ) -> Result<Next, Stopped> {
        let text = text_of(&completion.blocks);
        let calls = self.tool_steps(&completion.blocks);
        let refusal = completion.refusal().map(str::to_owned);
        progress.entries.push(Entry {
            role: Role::Assistant,
            blocks: completion.blocks,
            run: self.start.run.id,
            step: Some(step.id.index),
        });
        if !calls.is_empty() {
            progress.open = calls;
            self.journal(progress).await?;
            return Ok(Next::Continue);
        }
        match completion.finish {
            Finish::Stop | Finish::ToolCalls => self.leave(progress, Leave::Ok { output: text }).await,
            Finish::Pause => {
                progress.open.push(StepKind::Model { model: self.start.plan.model.model.clone() });
                self.journal(progress).await?;
                Ok(Next::Continue)
            }
            Finish::Length => {
                let message = "the model's answer was cut off at its own limit".to_owned();
                self.fail(progress, limit("model_answer_cut", message)).await
            }
            Finish::ContentFilter => {
                let message = "the vendor's content filter stopped the answer";
                self.fail(progress, Failure::permanent("model_content_filter", message)).await
            }
            Finish::Refusal => {
                let said = refusal.as_deref().unwrap_or(&text);
                let message = format!("the model refused: {}", super::preview(said));
                self.fail(progress, Failure::permanent("model_refused", message)).await
            }
        }
    }

    fn tool_steps(&self, blocks: &[Block]) -> Vec<StepKind> {
        let kind = |block: &Block| match block {
            Block::ToolCall { id, name, arguments } => Some(StepKind::Tool {
                call: ToolCallRef { id: id.clone(), name: name.clone() },
                arguments: arguments.clone(),
                // A call that never reaches a tool can be answered as often as one likes.
                idempotent: self.start.plan.tool(name).is_none_or(|tool| tool.idempotent),
            }),
            Block::Text { .. } | Block::ToolResult { .. } | Block::Image(_) | Block::Native { .. } => None,
        };
        blocks.iter().filter_map(kind).collect()
    }
}

/// Nothing at all is no answer.
fn checked(completion: Completion) -> Result<Completion, Failure> {
    let says = |block: &Block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::ToolCall { .. } => true,
        Block::ToolResult { .. } | Block::Image(_) | Block::Native { .. } => false,
    };
    match completion.finish {
        Finish::Stop | Finish::ToolCalls if !completion.blocks.iter().any(says) => {
            Err(Failure::transient("model_empty_answer", "the model answered with nothing"))
        }
        _ => Ok(completion),
    }
}

fn text_of(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::text).collect()
}

fn offer(tool: &ostler_kernel::plan::ToolPlan) -> ToolOffer {
    let generic = || {
        serde_json::json!({
            "type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"],
        })
    };
    ToolOffer {
        name: tool.name.clone(),
        description: tool.description.clone(),
        schema: tool.input_schema.clone().unwrap_or_else(generic),
    }
}
