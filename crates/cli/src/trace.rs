//! A task's trace: its log folded into attempts and the steps in them, each with its place in time.

pub mod document;
pub mod waterfall;

use ostler_client::{
    EventBody, EventView, StepView,
    view::{StepFinished, StepKind, StepOutcome, StepState, UsageView},
};

use crate::{clock, words};

#[derive(Debug, PartialEq)]
pub struct Trace {
    /// When the first attempt began; all of it is measured from here.
    pub start_ms: i64,
    /// The last thing that happened, or now.
    pub end_ms: i64,
    pub attempts: Vec<Attempt>,
}

#[derive(Debug, PartialEq)]
pub struct Attempt {
    pub run: String,
    /// Who works in that run, where the log says so.
    pub agent: Option<String>,
    pub number: u32,
    pub worker: String,
    pub rows: Vec<Row>,
    /// How it ended, unless its task ended with it.
    pub end: Option<String>,
}

/// One step.
#[derive(Debug, PartialEq)]
pub struct Row {
    pub step: u32,
    /// `model`, `tool` or nothing.
    pub kind: &'static str,
    pub name: String,
    pub start_ms: i64,
    pub end_ms: i64,
    pub usage: UsageView,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Ok,
    Failed(String),
    Interrupted,
    /// Under way.
    Open,
}

impl Trace {
    /// None if nobody has begun to work on it. `now_ms` is where open steps end.
    pub fn new(events: &[EventView], steps: &[StepView], now_ms: i64) -> Option<Self> {
        let mut attempts = Vec::new();
        for event in events {
            take(&mut attempts, event);
        }
        name_agents(&mut attempts, events);
        let started = |event: &&EventView| matches!(event.body, EventBody::AttemptStarted { .. });
        let start_ms = events.iter().find(started)?.at_ms;
        let last = events.last()?;
        let end_ms = if last.is_last() { last.at_ms } else { now_ms.max(last.at_ms) };
        let is_open = |step: &&StepView| matches!(step.state, StepState::Open) && !last.is_last();
        for step in steps.iter().filter(is_open) {
            let current = attempts.iter_mut().rev().find(|attempt| attempt.run == step.id.run);
            if let Some(attempt) = current.filter(|attempt| attempt.end.is_none()) {
                attempt.rows.push(under_way(step, end_ms));
            }
        }
        Some(Self { start_ms, end_ms, attempts })
    }

    /// Several agents have worked on it, or one of them several times.
    pub fn has_lanes(&self) -> bool {
        self.attempts.windows(2).any(|pair| pair[0].run != pair[1].run)
    }
}

fn take(attempts: &mut Vec<Attempt>, event: &EventView) {
    match &event.body {
        EventBody::AttemptStarted { run, attempt, worker, .. } => attempts.push(Attempt {
            run: run.clone(),
            agent: None,
            number: *attempt,
            worker: worker.clone(),
            rows: Vec::new(),
            end: None,
        }),
        EventBody::StepFinished(step) => {
            let is_its = |attempt: &&mut Attempt| attempt.run == step.run && attempt.number == step.attempt;
            if let Some(attempt) = attempts.iter_mut().rev().find(is_its) {
                attempt.rows.push(finished(step, event.at_ms));
            }
        }
        EventBody::AttemptEnded { run, end, .. } => note(attempts, run, words::attempt_end(end)),
        EventBody::RunRetrying { run, failure, not_before_ms, .. } => {
            let delay = clock::took_ms(not_before_ms.saturating_sub(event.at_ms));
            note(attempts, run, format!("tried again after {delay}: {}", words::failure(failure)));
        }
        EventBody::RunWaiting { run, .. } | EventBody::RunSleeping { run, .. } => {
            note(attempts, run, words::event(event));
        }
        EventBody::TaskAccepted { .. }
        | EventBody::RunReady { .. }
        | EventBody::InputAccepted { .. }
        | EventBody::MessageSent { .. }
        | EventBody::RunEnded { .. }
        | EventBody::TaskEnded { .. }
        | EventBody::Other => {}
    }
}

fn note(attempts: &mut [Attempt], run: &str, words: String) {
    if let Some(attempt) = attempts.iter_mut().rev().find(|attempt| attempt.run == run) {
        attempt.end = Some(words);
    }
}

/// Any event that names a run and an agent tells who works in that run.
fn name_agents(attempts: &mut [Attempt], events: &[EventView]) {
    for attempt in attempts {
        let of_run = |event: &&EventView| event.run() == Some(attempt.run.as_str());
        attempt.agent = events.iter().filter(of_run).find_map(EventView::agent).map(str::to_owned);
    }
}

fn finished(step: &StepFinished, at_ms: i64) -> Row {
    let took = i64::try_from(step.took_ms).unwrap_or(i64::MAX);
    let (outcome, start_ms) = match &step.outcome {
        // Opened by an earlier attempt, perhaps; what counts is the one that finished it.
        StepOutcome::Ok | StepOutcome::Other => (Outcome::Ok, at_ms.saturating_sub(took)),
        StepOutcome::Failed { failure } => {
            (Outcome::Failed(words::failure(failure)), at_ms.saturating_sub(took))
        }
        StepOutcome::Interrupted => (Outcome::Interrupted, step.started_at_ms),
    };
    row(step.step, &step.kind, (start_ms, at_ms), step.usage, outcome)
}

fn under_way(step: &StepView, now_ms: i64) -> Row {
    row(step.id.index, &step.kind, (step.opened_at_ms, now_ms), UsageView::default(), Outcome::Open)
}

fn row(
    step: u32,
    kind: &StepKind,
    (start_ms, end_ms): (i64, i64),
    usage: UsageView,
    outcome: Outcome,
) -> Row {
    let name = words::full_name(kind);
    Row { step, kind: words::kind_word(kind), name, start_ms, end_ms, usage, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(bodies: &[(i64, &str)]) -> Vec<EventView> {
        let event = |(place, (at, body)): (usize, &(i64, &str))| {
            let seq = place + 1;
            let json = format!(r#"{{"seq":{seq},"position":{seq},"task":"t","at":{at},"body":{body}}}"#);
            serde_json::from_str(&json).unwrap()
        };
        bodies.iter().enumerate().map(event).collect()
    }

    const ACCEPTED: &str = r#"{"type":"task_accepted","agent":"a","run":"r"}"#;
    const FIRST: &str = r#"{"type":"attempt_started","run":"r","attempt":1,"worker":"w","step":0}"#;
    const SECOND: &str = r#"{"type":"attempt_started","run":"r","attempt":2,"worker":"w","step":1}"#;
    const LOST: &str = r#"{"type":"attempt_ended","run":"r","attempt":1,"end":{"end":"lost"}}"#;
    const STEP: &str = r#"{"type":"step_finished","run":"r","step":0,"attempt":1,"kind":{"type":"model","model":"m"},
        "outcome":"ok","started_at":110,"took_ms":40,"usage":{"input_tokens":3,"output_tokens":4}}"#;
    const OPEN: &str = r#"{"id":{"run":"r","index":1},"kind":{"type":"model","model":"m"},
        "state":{"state":"open"},"attempt":1,"opened_at":160}"#;

    #[test]
    fn steps_stand_under_the_attempt_that_finished_them() {
        let log = events(&[(0, ACCEPTED), (100, FIRST), (150, STEP), (900, LOST), (1000, SECOND)]);
        let steps = [serde_json::from_str(OPEN).unwrap()];
        let trace = Trace::new(&log, &steps, 1500).unwrap();
        assert_eq!((trace.start_ms, trace.end_ms), (100, 1500));
        let [first, second] = &trace.attempts[..] else { panic!("{trace:?}") };
        assert_eq!(first.end.as_deref(), Some("lost: its worker was gone"));
        let row = &first.rows[0];
        assert_eq!((row.start_ms, row.end_ms, row.usage.total()), (110, 150, 7));
        assert_eq!((second.rows[0].step, &second.rows[0].outcome), (1, &Outcome::Open));
    }

    #[test]
    fn agents_that_work_at_once_have_lanes_of_their_own() {
        let other = |text: &str| text.replace("\"run\":\"r\"", "\"run\":\"s\"");
        let second = other(FIRST).replace("\"attempt\":1", "\"attempt\":1,\"agent\":\"writer\"");
        let log = events(&[
            (0, ACCEPTED),
            (100, FIRST),
            (120, &second),
            (150, STEP),
            (160, &other(STEP)),
            (170, LOST),
        ]);
        let trace = Trace::new(&log, &[], 200).unwrap();
        let [first, second] = &trace.attempts[..] else { panic!("{trace:?}") };
        assert!(trace.has_lanes());
        assert_eq!((first.rows.len(), first.agent.as_deref(), first.end.is_some()), (1, Some("a"), true));
        assert_eq!(
            (second.rows.len(), second.agent.as_deref(), second.end.is_some()),
            (1, Some("writer"), false)
        );
    }

    #[test]
    fn a_task_nobody_began_has_no_trace() {
        assert_eq!(Trace::new(&events(&[(0, ACCEPTED)]), &[], 9), None);
        assert_eq!(Trace::new(&[], &[], 9), None);
    }
}
