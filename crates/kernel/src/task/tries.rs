//! How often a task is tried: the work of each agent, and the whole. Where the agent's tries are used up, that was one try at
//! the whole. Another goes on from what is done, after a pause of its own; nothing is done twice. A failure that the task names
//! is not tried again at all.

use std::time::Duration;

use super::Task;
use crate::{Failure, Run};

impl Task {
    /// Whether a failure that may pass is final for this task: its request names something in the code or the message. What
    /// is blank stands in every text, and names nothing.
    pub(crate) fn gives_up_on(&self, failure: &Failure) -> bool {
        let text = failure.to_string().to_lowercase();
        let named = self.request.non_retryable.iter().map(|part| part.trim().to_lowercase());
        failure.is_retryable() && named.filter(|part| !part.is_empty()).any(|part| text.contains(&part))
    }

    /// How long after its last failure the run is tried again; none if that was the last try. What the other side asked for
    /// is the least.
    pub(crate) fn pause(&self, run: &Run, asked: Option<Duration>, random: u64) -> Option<Duration> {
        let Some(whole) = &self.request.whole_retry else {
            return run.retry.allows(run.failures).then(|| run.retry.delay(run.failures, asked, random));
        };
        let failures = run.failures % tries_at_once(run);
        if failures > 0 {
            return Some(run.retry.delay(failures, asked, random));
        }
        let before: u32 = self.past.iter().map(|past| past.tries).sum();
        let tries = before.saturating_add(self.used_up(run));
        whole.allows(tries).then(|| whole.delay(tries, asked, random))
    }

    /// How many tries at the whole the run has used up.
    pub(super) fn used_up(&self, run: &Run) -> u32 {
        match &self.request.whole_retry {
            Some(_) => run.failures / tries_at_once(run),
            None => 0,
        }
    }

    /// How often the run is tried at most, if nobody before it needs more than one try.
    pub fn most_attempts(&self, run: &Run) -> u32 {
        let wholes = self.request.whole_retry.as_ref().map_or(1, |whole| whole.max_attempts);
        run.retry.max_attempts.saturating_mul(wholes)
    }
}

/// Of one try at the whole.
fn tries_at_once(run: &Run) -> u32 {
    run.retry.max_attempts.max(1)
}
