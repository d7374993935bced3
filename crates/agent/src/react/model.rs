//! The loop's model calls: limits before, retries around, another model where one can't answer.

use std::{sync::Arc, time::Duration};

use ostler_kernel::{
    Block, Entry, Failure, Runtime, Step, StepOutcome, Usage,
    plan::OnViolation,
    retry::{Jitter, RetryPolicy},
    run::{
        end::Leave,
        journal::{Progress, StepDone},
    },
};
use ostler_llm::{Completion, Finish, ModelRequest, Shown, ToolOffer, complete, estimate};

use super::{
    Loop, Next,
    answer::Answered,
    done, fallback, limit, output,
    tally::{Tally, Try},
};
use crate::{context::messages, port::Stopped};

/// Between tries of one call, before the run's own retries are touched.
const BACKOFF: RetryPolicy =
    RetryPolicy { max_attempts: u32::MAX, backoff_ms: 250, max_backoff_ms: 8_000, jitter: Jitter::Equal };

/// Longer than this nobody holds a slot to wait: the run sleeps.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Whatever a vendor asks for, it is asked again after this.
const LONGEST_SLEEP: Duration = Duration::from_secs(60 * 60);

/// So often in a row a run sleeps without a finished step; then it has failed. Waiting is not failing, and yet nothing waits
/// for ever.
const MOST_SLEEPS: u32 = 500;

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
        self.tally = Tally { began, ..Tally::default() };
        let answer = self.call_model(&step, &Arc::new(request)).await?;
        let took = self.port.runtime().monotonic().saturating_sub(began);
        // What the tries took that gave no answer is in it.
        let usage = self.tally.spent;
        match answer {
            Ok(completion) => self.take_answer(progress, Answered { step, completion, usage, took }).await,
            Err(failure) => self.take_failure(progress, Failed { step, failure, usage, took }).await,
        }
    }

    /// Another model is asked, or the run waits, or it fails.
    async fn take_failure(&mut self, mut progress: Progress, mut failed: Failed) -> Result<Next, Stopped> {
        // The run's own retries obey no longer wait either.
        let asked = failed.failure.retry_after().map(|asked| asked.min(LONGEST_SLEEP));
        failed.failure = failed.failure.with_retry_after(asked);
        let next = fallback::next(&self.start.plan, &failed.step.kind, &failed.failure);
        if let (None, Some(asked)) = (&next, self.sleep_asked(&failed.failure)) {
            return self.sleep(failed, asked).await;
        }
        let Failed { step, failure, .. } = failed.clone();
        progress.done.push(failed.done(self.port.runtime()));
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

    /// How long the run is to sleep on this failure, if it is.
    fn sleep_asked(&self, failure: &Failure) -> Option<Duration> {
        let asked = failure.retry_after().filter(|asked| *asked > LONGEST_WAIT)?;
        let may_sleep = failure.is_retryable() && self.slept < MOST_SLEEPS;
        may_sleep.then_some(asked)
    }

    /// The call is made again afterwards: its step stays open, unless there is something to be kept of it.
    async fn sleep(&mut self, failed: Failed, asked: Duration) -> Result<Next, Stopped> {
        let runtime = self.port.runtime();
        let why = Some(failed.failure.clone());
        let delay_ms = Some(u64::try_from(asked.as_millis()).unwrap_or(u64::MAX));
        let leave = Leave::Sleep { until: runtime.now().after(asked), delay_ms, why };
        let mut progress = Progress::default();
        if failed.usage.total() > 0 {
            progress.open.push(failed.step.kind.clone());
            progress.done.push(failed.done(runtime));
        }
        self.leave(progress, leave).await
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
        if self.model_calls >= self.start.plan.limits.max_steps {
            return Some(self.out_of_calls());
        }
        self.budget_reached(request, &Usage::default())
    }

    /// Whether the token budget can't bear the call, where its tries have wasted so much.
    fn budget_reached(&self, request: &ModelRequest, wasted: &Usage) -> Option<Failure> {
        let budget = self.start.plan.limits.token_budget?;
        let used = self.usage.total().saturating_add(wasted.total());
        let next = estimate::estimate(request, &[]).total();
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

    /// Calls it until it answers, or trying again is of no use. What the tries took is tallied.
    async fn call_model(
        &mut self,
        step: &Step,
        request: &Arc<ModelRequest>,
    ) -> Result<Result<Completion, Failure>, Stopped> {
        let mut tries = 1;
        loop {
            self.port.check_held()?;
            let failure = match self.try_once(step, request).await {
                Ok(completion) => return Ok(Ok(completion)),
                Err(failure) => failure,
            };
            let runtime = self.port.runtime();
            let delay = BACKOFF.delay(tries, failure.retry_after(), runtime.random());
            let may_try = failure.is_retryable() && delay <= LONGEST_WAIT && !self.port.is_stopping();
            if !may_try || tries >= fallback::tries(&self.start.plan, &step.kind, &failure) {
                return Ok(Err(failure));
            }
            if let Some(reached) = self.budget_reached(request, &self.tally.spent) {
                return Ok(Err(reached));
            }
            tracing::debug!(step = %step.id, %failure, tries, "the model call is tried again");
            runtime.sleep(delay).await;
            tries += 1;
        }
    }

    /// One try. What it took is tallied: as the provider told, or else by what was shown of an answer.
    async fn try_once(&mut self, step: &Step, request: &Arc<ModelRequest>) -> Result<Completion, Failure> {
        let port = self.port;
        let trying = self.tally.trying.insert(Try::new(request));
        let watch = |shown: Shown<'_>| {
            let offset = trying.add(shown);
            port.emit(step.id.index, offset, shown);
        };
        let mut answer = complete(port.gateway(), ModelRequest::clone(request), watch).await;
        let spent = match &mut answer {
            Ok(completion) => completion.usage.or_else(|| Some(self.counted(request, &completion.blocks))),
            Err(failure) => failure.spent.take().map(|told| *told).or_else(|| {
                let shown = self.tally.trying.as_ref().and_then(Try::shown)?;
                Some(self.counted(request, &shown))
            }),
        };
        self.tally.over(&spent.unwrap_or_default());
        answer.and_then(checked)
    }

    /// Of a call whose vendor told nothing, what it used and cost.
    pub(super) fn counted(&self, request: &ModelRequest, answer: &[Block]) -> Usage {
        let mut usage = estimate::count(request, answer);
        let price = self.port.gateway().price(&request.endpoint);
        usage.cost_micro_usd = price.map(|price| price.of(&usage));
        usage
    }
}

/// A model call that no try of gave an answer.
#[derive(Debug, Clone)]
struct Failed {
    step: Step,
    failure: Failure,
    usage: Usage,
    took: Duration,
}

impl Failed {
    fn done(self, runtime: &dyn Runtime) -> StepDone {
        let Failed { step, failure, usage, took } = self;
        let message = failure.message.clone();
        done(runtime, step, StepOutcome::Failed { failure }, took, usage, &message)
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
