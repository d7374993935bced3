//! The loop's model calls: limits before, retries around, another model where one can't answer.

use std::time::Duration;

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

use super::{Loop, Next, answer::Answered, done, fallback, limit, output};
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

/// How a call ended, all its tries together.
struct Called {
    answer: Result<Completion, Failure>,
    /// What the tries took that gave no answer.
    wasted: Usage,
}

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
        let Called { answer, wasted } = self.call_model(&step, &request).await?;
        let took = self.port.runtime().monotonic().saturating_sub(began);
        match answer {
            Ok(completion) => {
                let mut usage = used(&request, &completion);
                usage.add(&wasted);
                self.take_answer(progress, Answered { step, completion, usage, took }).await
            }
            Err(failure) => self.take_failure(progress, Failed { step, failure, wasted, took }).await,
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
        if failed.wasted.total() > 0 {
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

    async fn call_model(&self, step: &Step, request: &ModelRequest) -> Result<Called, Stopped> {
        let (mut tries, mut wasted) = (1, Usage::default());
        loop {
            self.port.check_held()?;
            let mut failure = match self.try_once(step, request).await {
                Ok(completion) => return Ok(Called { answer: Ok(completion), wasted }),
                Err(failure) => failure,
            };
            wasted.add(&failure.spent.take().map(|spent| *spent).unwrap_or_default());
            let runtime = self.port.runtime();
            let delay = BACKOFF.delay(tries, failure.retry_after(), runtime.random());
            let may_try = failure.is_retryable() && delay <= LONGEST_WAIT && !self.port.is_stopping();
            if !may_try || tries >= fallback::tries(&self.start.plan, &step.kind, &failure) {
                return Ok(Called { answer: Err(failure), wasted });
            }
            if let Some(reached) = self.budget_reached(request, &wasted) {
                return Ok(Called { answer: Err(reached), wasted });
            }
            tracing::debug!(step = %step.id, %failure, tries, "the model call is tried again");
            runtime.sleep(delay).await;
            tries += 1;
        }
    }

    /// One try. Its failure says what it took: as the provider told, or else by what was shown of an answer.
    async fn try_once(&self, step: &Step, request: &ModelRequest) -> Result<Completion, Failure> {
        let (mut said, mut thought) = (String::new(), String::new());
        let watch = |shown: Shown<'_>| {
            let (before, text) = match shown {
                Shown::Text(text) => (&mut said, text),
                Shown::Thinking(text) => (&mut thought, text),
            };
            self.port.emit(step.id.index, before.len() as u64, shown);
            before.push_str(text);
        };
        let answer = complete(self.port.gateway(), request.clone(), watch).await;
        match answer.and_then(|completion| checked(request, completion)) {
            Err(failure) if failure.spent.is_none() && !(said.is_empty() && thought.is_empty()) => {
                let shown = [thought, said].map(|text| Block::Text { text });
                Err(failure.with_spent(estimate::count(request, &shown)))
            }
            answer => answer,
        }
    }
}

/// A model call that no try of gave an answer.
#[derive(Debug, Clone)]
struct Failed {
    step: Step,
    failure: Failure,
    wasted: Usage,
    took: Duration,
}

impl Failed {
    fn done(self, runtime: &dyn Runtime) -> StepDone {
        let Failed { step, failure, wasted, took } = self;
        let message = failure.message.clone();
        done(runtime, step, StepOutcome::Failed { failure }, took, wasted, &message)
    }
}

fn used(request: &ModelRequest, completion: &Completion) -> Usage {
    completion.usage.unwrap_or_else(|| estimate::count(request, &completion.blocks))
}

/// Nothing at all is no answer.
fn checked(request: &ModelRequest, completion: Completion) -> Result<Completion, Failure> {
    let says = |block: &Block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::ToolCall { .. } => true,
        Block::ToolResult { .. } | Block::Image(_) | Block::Native { .. } => false,
    };
    match completion.finish {
        Finish::Stop | Finish::ToolCalls if !completion.blocks.iter().any(says) => {
            let failure = Failure::transient("model_empty_answer", "the model answered with nothing");
            Err(failure.with_spent(used(request, &completion)))
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
