//! The loop's model calls: limits before, retries around, another model where one can't answer.

use std::time::Duration;

use ostler_kernel::{
    Block, Entry, Failure, Step, StepOutcome, Usage,
    plan::OnViolation,
    retry::{Jitter, RetryPolicy},
    run::{end::Leave, journal::Progress},
};
use ostler_llm::{Completion, Finish, ModelRequest, Shown, ToolOffer, complete, estimate};

use super::{Loop, Next, answer::Answered, done, fallback, limit, output};
use crate::{context::messages, port::Stopped};

/// Between tries of one call, before the run's own retries are touched.
const BACKOFF: RetryPolicy =
    RetryPolicy { max_attempts: u32::MAX, backoff_ms: 250, max_backoff_ms: 8_000, jitter: Jitter::Equal };

/// Longer than this nobody holds a slot to wait: the run sleeps.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

impl Loop<'_> {
    pub(super) async fn ask_model(&mut self) -> Result<Next, Stopped> {
        if self.port.is_stopping() {
            return self.leave(Progress::default(), Leave::GiveBack).await;
        }
        let Some(step) = self.open.first().cloned() else { return Ok(Next::Continue) };
        let progress = self.take_inputs().await?;
        let mut request = self.request(&step, &progress);
        if let Err(failure) = self.hooks.before_model(self.at(step.id.index), &mut request).await {
            return self.fail(progress, failure).await;
        }
        if let Some(failure) = self.bound_reached(&request) {
            return self.fail(progress, failure).await;
        }
        let began = self.port.runtime().monotonic();
        let answer = self.call_model(&step, &request).await?;
        let took = self.port.runtime().monotonic().saturating_sub(began);
        match answer {
            Ok(completion) => {
                let usage = completion.usage.unwrap_or_else(|| estimate::count(&request, &completion.blocks));
                self.take_answer(progress, Answered { step, completion, usage, took }).await
            }
            Err(failure) => self.take_failure(progress, step, failure, took).await,
        }
    }

    /// Another model is asked, or the run waits, or it fails.
    async fn take_failure(
        &mut self,
        mut progress: Progress,
        step: Step,
        failure: Failure,
        took: Duration,
    ) -> Result<Next, Stopped> {
        let next = fallback::next(&self.start.plan, &step.kind, &failure);
        let asked = failure.retry_after().filter(|asked| *asked > LONGEST_WAIT);
        if let (None, Some(asked), true) = (&next, asked, failure.is_retryable()) {
            let until = self.port.runtime().now().after(asked);
            return self.leave(Progress::default(), Leave::Sleep { until }).await;
        }
        let outcome = StepOutcome::Failed { failure: failure.clone() };
        let (runtime, usage) = (self.port.runtime(), Usage::default());
        progress.done.push(done(runtime, step.clone(), outcome, took, usage, &failure.message));
        match next {
            Some(next) => {
                tracing::debug!(step = %step.id, %failure, model = next.name(), "another model is asked");
                progress.open.push(next);
                self.journal(progress).await?;
                Ok(Next::Continue)
            }
            None => self.fail(progress, fallback::last_word(&step.kind, failure)).await,
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

    fn request(&self, step: &Step, progress: &Progress) -> ModelRequest {
        let plan = &self.start.plan;
        let mut entries = self.transcript.clone();
        entries.extend(progress.entries.iter().cloned());
        ModelRequest {
            endpoint: fallback::asked(plan, &step.kind).clone(),
            system: plan.prompt.clone(),
            messages: messages(&entries),
            tools: plan.tools.iter().map(offer).collect(),
            output_schema: plan.rules.output_schema.clone(),
            request_id: format!("{}.{}", self.start.run.id, step.id.index),
        }
    }

    fn bound_reached(&self, request: &ModelRequest) -> Option<Failure> {
        let limits = &self.start.plan.limits;
        if self.model_calls >= limits.max_steps {
            return Some(self.out_of_calls());
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

    /// Of a run with a contract, what it did not come to is what matters.
    fn out_of_calls(&self) -> Failure {
        let rules = &self.start.plan.rules;
        let message = format!("stopped after {} model calls without a final answer", self.model_calls);
        match output::lacking(rules, &self.past(&Progress::default()), "") {
            Some(lacking) if rules.on_violation == OnViolation::Fail => {
                output::violated(&format!("{message}; {lacking}"))
            }
            _ => limit("max_steps", message),
        }
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
            let may_try = failure.is_retryable() && delay <= LONGEST_WAIT && !self.port.is_stopping();
            if !may_try || tries >= fallback::tries(&self.start.plan, &step.kind, failure) {
                return Ok(answer);
            }
            tracing::debug!(step = %step.id, %failure, tries, "the model call is tried again");
            runtime.sleep(delay).await;
            tries += 1;
        }
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

pub(super) fn text_of(blocks: &[Block]) -> String {
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
