//! Events in words: one line each, for logs, for pipes and for the live view.

use ostler_client::{
    EventBody, EventView,
    view::{AttemptEnd, FailureView, StateName, StepFinished, StepKind, StepOutcome, UsageView},
};

use crate::{clock, paint::Tone, text};

/// As much of a message as of what a step gave.
const PREVIEW: usize = 200;

/// What happened, in one line.
pub fn event(event: &EventView) -> String {
    match &event.body {
        EventBody::TaskAccepted { system: Some(system), .. } => format!("accepted for system {system}"),
        EventBody::TaskAccepted { agent, .. } => format!("accepted for agent {agent}"),
        EventBody::AttemptStarted { attempt, worker, step, .. } => {
            format!("attempt {attempt} started on {worker} at step {step}")
        }
        EventBody::StepFinished(step) => step_with_preview(step),
        EventBody::AttemptEnded { attempt, end, .. } => format!("attempt {attempt} {}", attempt_end(end)),
        EventBody::RunRetrying { failure: why, failures, not_before_ms, .. } => {
            let delay = clock::took_ms(not_before_ms.saturating_sub(event.at_ms));
            format!("failure {failures}, trying again in {delay}: {}", failure(why))
        }
        EventBody::RunWaiting { summary, .. } => format!("waiting: {}", text::one_line(summary)),
        EventBody::RunSleeping { until_ms, failure: why, .. } => {
            let why = why.as_ref().map(|why| format!(": {}", failure(why))).unwrap_or_default();
            format!("sleeping until {}{why}", clock::print(*until_ms))
        }
        EventBody::RunReady { reason, .. } => format!("ready: {}", ready_reason(reason)),
        EventBody::InputAccepted { input, .. } => format!("input {input} accepted"),
        EventBody::MessageSent { message, .. } => {
            let content = text::cut(&text::one_line(&message.content), PREVIEW, "…");
            format!("{} to {}  {content}", message.from, message.to)
        }
        EventBody::RunEnded { usage, .. } => format!("done, and handed on  {}", tokens(usage)),
        EventBody::TaskEnded { state, failure, usage, .. } => ended(state, failure.as_ref(), usage),
        EventBody::Other => text::one_line(&event.json["body"].to_string()),
    }
}

/// The same for somebody who waits for the answer, which is about to be printed whole.
pub fn progress(view: &EventView) -> String {
    match &view.body {
        EventBody::StepFinished(step) if is_answer(step) => step_line(step),
        _ => event(view),
    }
}

/// Nothing follows from it: what it said is what its run says.
pub fn is_answer(step: &StepFinished) -> bool {
    step.opened.is_empty() && matches!(step.kind, StepKind::Model { .. })
}

/// How loud an event is.
pub fn tone(body: &EventBody) -> Tone {
    match body {
        EventBody::StepFinished(step) => outcome_tone(&step.outcome),
        EventBody::TaskEnded { state, .. } => Tone::of_state(&state.name),
        EventBody::RunRetrying { .. } => Tone::Bad,
        EventBody::AttemptEnded { end: AttemptEnd::Error { .. } | AttemptEnd::Lost, .. } => Tone::Bad,
        EventBody::RunWaiting { .. } | EventBody::RunSleeping { .. } => Tone::Pending,
        EventBody::TaskAccepted { .. }
        | EventBody::AttemptStarted { .. }
        | EventBody::AttemptEnded { .. }
        | EventBody::RunReady { .. }
        | EventBody::InputAccepted { .. }
        | EventBody::MessageSent { .. }
        | EventBody::RunEnded { .. }
        | EventBody::Other => Tone::Quiet,
    }
}

pub fn outcome_tone(outcome: &StepOutcome) -> Tone {
    match outcome {
        StepOutcome::Ok | StepOutcome::Other => Tone::Plain,
        StepOutcome::Failed { .. } => Tone::Bad,
        StepOutcome::Interrupted => Tone::Pending,
    }
}

/// `step 3  tool lookup  ok  12ms`
pub fn step_line(step: &StepFinished) -> String {
    let mut line = format!("{}  {}", step_title(step.step, &step.kind), outcome(&step.outcome));
    if !matches!(step.outcome, StepOutcome::Interrupted) {
        line = format!("{line}  {}", clock::took(std::time::Duration::from_millis(step.took_ms)));
    }
    if step.usage.total() > 0 {
        line = format!("{line}  {}", tokens(&step.usage));
    }
    if let Some(violation) = &step.contract_violation {
        line = format!("{line}  contract violated: {}", text::one_line(violation));
    }
    match &step.outcome {
        StepOutcome::Failed { failure: why } => format!("{line}  {}", failure(why)),
        StepOutcome::Ok | StepOutcome::Interrupted | StepOutcome::Other => line,
    }
}

/// `step 3  tool lookup`
pub fn step_title(index: u32, kind: &StepKind) -> String {
    // A model may call a tool by any name it likes.
    let name = text::one_line(&full_name(kind));
    match kind_word(kind) {
        "" => format!("step {index}  {name}"),
        word => format!("step {index}  {word} {name}"),
    }
}

/// Its name, with what is special about it.
pub fn full_name(kind: &StepKind) -> String {
    match kind.remark() {
        Some(remark) => format!("{} ({remark})", kind.name()),
        None => kind.name().to_owned(),
    }
}

/// What is in front of its name, if that doesn't say it all.
pub fn kind_word(kind: &StepKind) -> &'static str {
    match kind {
        StepKind::Model { .. } => "model",
        StepKind::Tool { .. } => "tool",
        StepKind::Wait | StepKind::Other => "",
    }
}

/// `120 tokens $0.0012`, or `~120 tokens ~$0.0012` if they were estimated. What has no known price shows none, and what has
/// one only in part shows `>`.
pub fn tokens(usage: &UsageView) -> String {
    let about = if usage.estimated { "~" } else { "" };
    let cost = cost(usage).map(|cost| format!(" {cost}"));
    format!("{about}{} tokens{}", usage.total(), cost.unwrap_or_default())
}

/// `$0.0012`, with the signs of [`tokens`].
pub fn cost(usage: &UsageView) -> Option<String> {
    let about = if usage.estimated { "~" } else { "" };
    let more = if usage.cost_incomplete { ">" } else { "" };
    Some(format!("{more}{about}{}", dollars(usage.cost_micro_usd?)))
}

/// With two digits behind the point, or as many as it takes.
pub fn dollars(micros: u64) -> String {
    let (whole, fraction) = (micros / 1_000_000, format!("{:06}", micros % 1_000_000));
    let kept = fraction.trim_end_matches('0').len().max(2);
    format!("${whole}.{}", &fraction[..kept])
}

pub fn failure(failure: &FailureView) -> String {
    format!("{}: {}", failure.code, text::one_line(&failure.message))
}

fn step_with_preview(step: &StepFinished) -> String {
    let preview = match step.outcome {
        StepOutcome::Ok => text::one_line(&step.preview),
        // The failure says it.
        StepOutcome::Failed { .. } | StepOutcome::Interrupted | StepOutcome::Other => String::new(),
    };
    let line = step_line(step);
    if preview.is_empty() { line } else { format!("{line}  {preview}") }
}

pub fn outcome(outcome: &StepOutcome) -> &'static str {
    match outcome {
        StepOutcome::Ok => "ok",
        StepOutcome::Failed { .. } => "failed",
        StepOutcome::Interrupted => "interrupted",
        StepOutcome::Other => "ended",
    }
}

pub fn attempt_end(end: &AttemptEnd) -> String {
    match end {
        AttemptEnd::Yielded => "gave its slot back".to_owned(),
        AttemptEnd::Error { failure: why } => format!("failed: {}", failure(why)),
        AttemptEnd::Lost => "lost: its worker was gone".to_owned(),
        AttemptEnd::Other => "ended".to_owned(),
    }
}

fn ready_reason(reason: &str) -> &str {
    match reason {
        "due" => "its time has come",
        "session_free" => "the task before it in its session has ended",
        "answered" => "what it waited for was answered",
        "input" => "an input came",
        other => other,
    }
}

fn ended(state: &StateName, why: Option<&FailureView>, usage: &UsageView) -> String {
    let mut line = state.name.replace('_', " ");
    if usage.total() > 0 {
        line = format!("{line}  {}", tokens(usage));
    }
    let why = why.map(|why| end(&state.name, why)).or_else(|| state.reason.as_deref().map(text::one_line));
    why.map_or(line.clone(), |why| format!("{line}  {why}"))
}

/// Why a task ended in this state. What the state says already is not said again.
pub fn end(state: &str, why: &FailureView) -> String {
    if why.code != state {
        return failure(why);
    }
    let message = text::one_line(&why.message);
    let rest = message.strip_prefix(state).map(|rest| rest.trim_start_matches([':', ' ']).to_owned());
    rest.filter(|rest| !rest.is_empty()).unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: &str) {
        let json = format!(r#"{{"seq":1,"position":1,"task":"task_x","at":1000,"body":{body}}}"#);
        let view: EventView = serde_json::from_str(&json).unwrap();
        assert_eq!(event(&view), expected);
    }

    #[test]
    fn money_is_shown_with_what_is_not_known_of_it() {
        let usage = |json: &str| serde_json::from_str::<UsageView>(json).unwrap();
        let shown =
            |rest: &str| tokens(&usage(&format!("{{\"input_tokens\":100,\"output_tokens\":20{rest}}}")));
        assert_eq!(shown(""), "120 tokens");
        assert_eq!(shown(r#","cost_micro_usd":1200"#), "120 tokens $0.0012");
        assert_eq!(shown(r#","cost_micro_usd":12500000,"cost_incomplete":true"#), "120 tokens >$12.50");
        assert_eq!(shown(r#","cost_micro_usd":0,"estimated":true"#), "~120 tokens ~$0.00");
        assert_eq!(dollars(1), "$0.000001");
    }

    #[test]
    fn every_event_reads_as_a_line() {
        let step = r#""type":"step_finished","run":"r","step":2,"attempt":1,"started_at":0,"took_ms":12"#;
        let tool =
            r#""kind":{"type":"tool","call":{"id":"c","name":"lookup"},"arguments":"{}","idempotent":true}"#;
        let none = r#""usage":{"input_tokens":0,"output_tokens":0}"#;
        let some = r#""usage":{"input_tokens":100,"output_tokens":20,"estimated":true}"#;
        let why = r#""failure":{"code":"tool_timeout","class":"timeout","message":"too\nslow"}"#;
        check(r#"{"type":"task_accepted","agent":"hello","run":"r"}"#, "accepted for agent hello");
        check(
            r#"{"type":"attempt_started","run":"r","attempt":1,"worker":"local","step":0}"#,
            "attempt 1 started on local at step 0",
        );
        check(
            &format!(r#"{{{step},{tool},"outcome":"ok",{none},"preview":"a\u001b[2J\nb"}}"#),
            "step 2  tool lookup  ok  12ms  a [2J b",
        );
        check(
            &format!(r#"{{{step},"kind":{{"type":"model","model":"m"}},"outcome":"failed",{why},{some}}}"#),
            "step 2  model m  failed  12ms  ~120 tokens  tool_timeout: too slow",
        );
        check(
            &format!(r#"{{{step},"kind":{{"type":"wait"}},"outcome":"interrupted",{none}}}"#),
            "step 2  wait  interrupted",
        );
        check(
            &format!(r#"{{"type":"run_retrying","run":"r",{why},"failures":1,"not_before":3500}}"#),
            "failure 1, trying again in 2.50s: tool_timeout: too slow",
        );
        check(
            &format!(r#"{{"type":"run_sleeping","run":"r","until":4102444800000,{why}}}"#),
            "sleeping until 2100-01-01T00:00:00.000Z: tool_timeout: too slow",
        );
        check(
            r#"{"type":"attempt_ended","run":"r","attempt":2,"end":{"end":"lost"}}"#,
            "attempt 2 lost: its worker was gone",
        );
        check(
            &format!(r#"{{"type":"task_ended","state":{{"state":"dead_letter"}},{why},{some}}}"#),
            "dead letter  ~120 tokens  tool_timeout: too slow",
        );
        check(
            r#"{"type":"message_sent","run":"r","message":{"hop":2,"from":"a","to":"b","type":"task_handoff","branch":"b001","content":"x\ny"}}"#,
            "a to b  x y",
        );
        check(&format!(r#"{{"type":"run_ended","run":"r",{some}}}"#), "done, and handed on  ~120 tokens");
        for (message, shown) in [("cancelled by request", "by request"), ("wrong customer", "wrong customer")]
        {
            let why =
                format!(r#""failure":{{"code":"cancelled","class":"cancelled","message":"{message}"}}"#);
            check(
                &format!(r#"{{"type":"task_ended","state":{{"state":"cancelled"}},{why},{none}}}"#),
                &format!("cancelled  {shown}"),
            );
        }
        check(r#"{"type":"run_ready","run":"r","reason":"due"}"#, "ready: its time has come");
        check(r#"{"type":"from_the_future","x":1}"#, r#"{"type":"from_the_future","x":1}"#);
    }
}
