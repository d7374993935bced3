//! Steps: the journaled effects inside a run. A step is open from its intent on, which rides in the commit
//! before it, until its outcome is committed.

use serde::{Deserialize, Serialize};

use crate::{Failure, StepId, Timestamp, conversation::ToolCallRef};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub id: StepId,
    pub kind: StepKind,
    pub state: StepState,
    /// The attempt that opened it.
    pub attempt: u32,
    pub opened_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StepKind {
    Model {
        model: String,
        /// Which of the agent's fallbacks is asked; its own model if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fallback: Option<Fallback>,
    },
    Tool {
        call: ToolCallRef,
        arguments: String,
        idempotent: bool,
        /// What it gets without a call; decided when it was opened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instead: Option<Instead>,
    },
    Wait,
}

/// A model that is asked because those before it could not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fallback {
    /// The first is 1.
    pub place: u32,
    /// The ModelEndpoint's name, for people.
    pub endpoint: String,
    /// A model before it failed in a way that may pass: whatever becomes of this one, the run is worth another try.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_pass: bool,
}

/// How a tool call is answered without being made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "instead", rename_all = "snake_case")]
pub enum Instead {
    /// By what an equal call gave: the step of this run that made it.
    Reuse { step: u32 },
    /// By a refusal.
    Refused { failure: Failure },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StepState {
    Open,
    Done {
        outcome: StepOutcome,
        at: Timestamp,
        /// Milliseconds the effect itself took, as the worker measured it.
        took_ms: u64,
        usage: Usage,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum StepOutcome {
    Ok,
    Failed {
        failure: Failure,
    },
    /// Its run ended while it was under way.
    Interrupted,
}

/// Tokens, as the vendor counted them, or as we estimated. What is beside the first two is part of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Everything the model read, from a cache or not.
    pub input_tokens: u64,
    /// Everything it wrote, its thinking included.
    pub output_tokens: u64,
    /// The vendor reported nothing, so these were estimated.
    #[serde(default)]
    pub estimated: bool,
    /// Of the input: read from the vendor's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read_tokens: u64,
    /// Of the input: put into the vendor's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Of the output: thinking.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// What they cost, in millionths of a US dollar. Absent where no price is known, and then it is not nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// Of a sum: some of the tokens have no known price, or a call was stopped and nobody knows what it used; so it was more
    /// than the cost says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_incomplete: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    pub fn add(&mut self, other: &Usage) {
        let has_unpriced = self.is_unpriced() || other.is_unpriced();
        self.cost_micro_usd = match (self.cost_micro_usd, other.cost_micro_usd) {
            (Some(cost), Some(more)) => Some(cost.saturating_add(more)),
            (cost, more) => cost.or(more),
        };
        let lacks_price = self.cost_micro_usd.is_some() && has_unpriced;
        self.cost_incomplete |= other.cost_incomplete || lacks_price;
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.cache_read_tokens, other.cache_read_tokens);
        add(&mut self.cache_write_tokens, other.cache_write_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
        self.estimated |= other.estimated;
    }

    /// Something was used, and nothing is known of what it cost.
    fn is_unpriced(&self) -> bool {
        self.total() > 0 && self.cost_micro_usd.is_none()
    }
}

impl Step {
    pub fn open(id: StepId, kind: StepKind, attempt: u32, now: Timestamp) -> Self {
        Self { id, kind, state: StepState::Open, attempt, opened_at: now }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.state, StepState::Open)
    }
}

impl StepKind {
    /// A call of the agent's own model.
    pub fn model(model: impl Into<String>) -> Self {
        StepKind::Model { model: model.into(), fallback: None }
    }

    /// A tool call that is made.
    pub fn tool(call: ToolCallRef, arguments: impl Into<String>, idempotent: bool) -> Self {
        StepKind::Tool { call, arguments: arguments.into(), idempotent, instead: None }
    }

    /// What people read in a list: the model's or the tool's name.
    pub fn name(&self) -> &str {
        match self {
            StepKind::Model { model, .. } => model,
            StepKind::Tool { call, .. } => &call.name,
            StepKind::Wait => "wait",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_before_there_were_caches_is_read_and_written_alike() {
        let old = r#"{"input_tokens":7,"output_tokens":2,"estimated":false}"#;
        let usage: Usage = serde_json::from_str(old).unwrap();
        assert_eq!((usage.total(), usage.cache_read_tokens, usage.reasoning_tokens), (9, 0, 0));
        assert_eq!(serde_json::to_string(&usage).unwrap(), old);
    }

    #[test]
    fn a_step_of_a_version_without_fallbacks_is_read_and_written_alike() {
        let model = r#"{"type":"model","model":"m"}"#;
        let tool = r#"{"type":"tool","call":{"id":"c","name":"t"},"arguments":"{}","idempotent":true}"#;
        for old in [model, tool] {
            let kind: StepKind = serde_json::from_str(old).unwrap();
            assert_eq!(serde_json::to_string(&kind).unwrap(), old);
        }
    }

    #[test]
    fn every_count_adds_up_and_none_overflows() {
        let mut sum = Usage { cache_read_tokens: u64::MAX, ..Usage::default() };
        let one = Usage {
            input_tokens: 1,
            output_tokens: 2,
            estimated: true,
            cache_read_tokens: 3,
            cache_write_tokens: 4,
            reasoning_tokens: 5,
            cost_micro_usd: Some(6),
            cost_incomplete: false,
        };
        sum.add(&one);
        assert_eq!(sum, Usage { cache_read_tokens: u64::MAX, ..one });
    }

    #[test]
    fn a_sum_says_where_a_price_was_lacking_in_whatever_order_it_is_made() {
        let unpriced = Usage { input_tokens: 1, ..Usage::default() };
        let priced = |cost| Usage { input_tokens: 1, cost_micro_usd: Some(cost), ..Usage::default() };
        let sum = |parts: &[Usage]| {
            let mut sum = Usage::default();
            parts.iter().for_each(|part| sum.add(part));
            (sum.cost_micro_usd, sum.cost_incomplete)
        };
        assert_eq!(
            sum(&[priced(2), Usage::default(), priced(3)]),
            (Some(5), false),
            "a tool's step used nothing"
        );
        assert_eq!(sum(&[unpriced, unpriced]), (None, false));
        for parts in [
            [unpriced, unpriced, priced(2)],
            [priced(2), unpriced, unpriced],
            [unpriced, priced(2), unpriced],
        ] {
            assert_eq!(sum(&parts), (Some(2), true));
        }
        let stopped = Usage { cost_incomplete: true, ..Usage::default() };
        for parts in [[stopped, priced(2)], [priced(2), stopped]] {
            assert_eq!(sum(&parts), (Some(2), true), "a call of which nothing is known");
        }
        let mut halves = unpriced;
        halves.add(&priced(2));
        assert_eq!(sum(&[priced(1), halves]), (Some(3), true));
    }
}
