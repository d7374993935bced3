//! A trace for programs: what the waterfall draws, in times and numbers.

use ostler_client::{TaskView, view::UsageView};
use serde::Serialize;

use super::{Attempt, Outcome, Row, Trace};
use crate::clock;

#[derive(Debug, Serialize)]
pub struct Document<'a> {
    name: &'a str,
    namespace: &'a str,
    uid: &'a str,
    /// `hello`, or `system/report`.
    subject: String,
    state: &'a str,
    accepted_at: &'a str,
    /// When the first attempt began.
    started_at: Option<String>,
    /// From then to its end, or to now.
    took_ms: i64,
    usage: UsageView,
    attempts: Vec<AttemptDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct AttemptDocument<'a> {
    run: &'a str,
    agent: Option<&'a str>,
    attempt: u32,
    worker: &'a str,
    /// How it ended, unless its task ended with it.
    end: Option<&'a str>,
    steps: Vec<StepDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct StepDocument<'a> {
    step: u32,
    kind: &'static str,
    name: &'a str,
    started_at: String,
    took_ms: i64,
    tokens: u64,
    /// In millionths of a US dollar, if a price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_micro_usd: Option<u64>,
    /// Some of its tokens have no known price: it was more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cost_incomplete: bool,
    /// `ok`, `failed`, `interrupted`, or `open` while it is under way.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> Document<'a> {
    /// Without a trace nobody has begun to work on it.
    pub fn new(task: &'a TaskView, trace: Option<&'a Trace>) -> Self {
        let TaskView { metadata, status, .. } = task;
        Self {
            name: &metadata.name,
            namespace: &metadata.namespace,
            uid: &metadata.uid,
            subject: task.subject(),
            state: &status.state,
            accepted_at: &metadata.created_at,
            started_at: trace.map(|trace| clock::print(trace.start_ms)),
            took_ms: trace.map_or(0, |trace| trace.end_ms.saturating_sub(trace.start_ms)),
            usage: status.usage,
            attempts: trace.iter().flat_map(|trace| &trace.attempts).map(attempt).collect(),
        }
    }
}

fn attempt(attempt: &Attempt) -> AttemptDocument<'_> {
    let Attempt { run, agent, number, worker, rows, end } = attempt;
    AttemptDocument {
        run,
        agent: agent.as_deref(),
        attempt: *number,
        worker,
        end: end.as_deref(),
        steps: rows.iter().map(step).collect(),
    }
}

fn step(row: &Row) -> StepDocument<'_> {
    let Row { step, kind, name, start_ms, end_ms, usage, outcome } = row;
    let (outcome, error) = match outcome {
        Outcome::Ok => ("ok", None),
        Outcome::Failed(why) => ("failed", Some(why.as_str())),
        Outcome::Interrupted => ("interrupted", None),
        Outcome::Open => ("open", None),
    };
    StepDocument {
        step: *step,
        kind,
        name,
        started_at: clock::print(*start_ms),
        took_ms: end_ms.saturating_sub(*start_ms),
        tokens: usage.total(),
        cost_micro_usd: usage.cost_micro_usd,
        cost_incomplete: usage.cost_incomplete,
        outcome,
        error,
    }
}
