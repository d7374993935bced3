//! An event as a line for people. Programs read the events themselves.

use ostler_kernel::{
    EventBody, Failure, StepKind, StepOutcome, Usage,
    event::{ReadyReason, ResourceChanged, StepFinished},
    run::AttemptEnd,
    step::Instead,
};

/// What happened, without when.
pub fn what(body: &EventBody) -> String {
    match body {
        EventBody::TaskAccepted { system: Some(system), .. } => format!("task accepted for system {system}"),
        EventBody::TaskAccepted { agent, .. } => format!("task accepted for agent {agent}"),
        EventBody::AttemptStarted { attempt, worker, step, .. } => {
            format!("attempt {attempt} started at step {step} by {worker}")
        }
        EventBody::StepFinished(step) => step_finished(step),
        EventBody::AttemptEnded { attempt, end, .. } => {
            let end = match end {
                AttemptEnd::Yielded => "yielded".to_owned(),
                AttemptEnd::Error { failure } => one_line(failure),
                AttemptEnd::Lost => "lost: its worker is gone".to_owned(),
            };
            format!("attempt {attempt} ended: {end}")
        }
        EventBody::RunRetrying { failure, failures, not_before, .. } => {
            let times = if *failures == 1 { "once".to_owned() } else { format!("{failures} times") };
            format!("failed {times}, tried again at {not_before}: {}", one_line(failure))
        }
        EventBody::RunWaiting { summary, .. } => format!("waiting: {}", flat(summary)),
        EventBody::RunSleeping { until, failure, .. } => {
            let why = failure.as_ref().map(|failure| format!(": {}", one_line(failure)));
            format!("sleeping until {until}{}", why.unwrap_or_default())
        }
        EventBody::RunReady { reason, .. } => format!("ready: {}", ready(*reason)),
        EventBody::InputAccepted { input, .. } => format!("input {input} accepted"),
        EventBody::MessageSent { message, .. } => {
            format!("{} to {}: {}", message.from, message.to, flat(&message.content))
        }
        EventBody::RunEnded { .. } => "done, and handed on".to_owned(),
        EventBody::TaskEnded { state, failure, usage, .. } => {
            let error =
                failure.as_ref().map(|failure| format!(": {}", one_line(failure))).unwrap_or_default();
            format!("task {}{error}{}", state.name(), tokens(usage))
        }
        EventBody::ResourceChanged(ResourceChanged { kind, namespace, name, change, .. }) => {
            format!("{kind} {namespace}/{name} {}", change.name())
        }
        EventBody::Unknown(unknown) => format!("{}, of a newer version", unknown.written_as()),
    }
}

fn step_finished(finished: &StepFinished) -> String {
    let StepFinished { step, kind, outcome, took_ms, usage, contract_violation, .. } = finished;
    let kind = match kind {
        StepKind::Model { model, fallback: None } => format!("model {model}"),
        StepKind::Model { model, fallback: Some(fallback) } => {
            format!("model {model} (fallback {})", fallback.endpoint)
        }
        StepKind::Tool { call, instead: Some(Instead::Reuse { step }), .. } => {
            format!("tool {} (as step {step})", call.name)
        }
        StepKind::Tool { call, .. } => format!("tool {}", call.name),
        StepKind::Wait => "wait".to_owned(),
    };
    let outcome = match outcome {
        StepOutcome::Ok => "ok".to_owned(),
        StepOutcome::Failed { failure } => format!("failed ({})", one_line(failure)),
        StepOutcome::Interrupted => "interrupted".to_owned(),
    };
    let violation = contract_violation.as_deref().map(|what| format!(", contract violated: {}", flat(what)));
    format!("step {step} {kind} {outcome} {took_ms}ms{}{}", tokens(usage), violation.unwrap_or_default())
}

fn tokens(usage: &Usage) -> String {
    match usage.total() {
        0 => String::new(),
        total => match usage.cost_micro_usd {
            Some(cost) => format!(" {total} tokens, {}.{:06} USD", cost / 1_000_000, cost % 1_000_000),
            None => format!(" {total} tokens"),
        },
    }
}

fn ready(reason: ReadyReason) -> &'static str {
    match reason {
        ReadyReason::Due => "its time has come",
        ReadyReason::SessionFree => "the session is free",
        ReadyReason::Answered => "answered",
        ReadyReason::Input => "an input came",
    }
}

fn one_line(failure: &Failure) -> String {
    flat(&failure.to_string())
}

fn flat(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use ostler_kernel::{RunId, TaskState, Timestamp, conversation::ToolCallRef, step::Fallback};

    use super::*;

    fn check(body: EventBody, expected: &str) {
        assert_eq!(what(&body), expected);
    }

    #[test]
    fn says_what_happened_in_one_line() {
        let step = StepFinished {
            run: RunId::from_bytes([0; 16]),
            step: 3,
            attempt: 1,
            kind: StepKind::tool(ToolCallRef { id: "c".into(), name: "lookup".into() }, "{}", true),
            outcome: StepOutcome::Ok,
            started_at: Timestamp::from_millis(0),
            took_ms: 12,
            usage: Usage::default(),
            preview: String::new(),
            contract_violation: None,
            opened: Vec::new(),
        };
        check(EventBody::StepFinished(Box::new(step.clone())), "step 3 tool lookup ok 12ms");
        let failure = Failure::permanent("tool_failed", "two\nlines");
        let outcome = StepOutcome::Failed { failure: failure.clone() };
        let violation = Some("no search\nwas made".to_owned());
        let broken = StepFinished { contract_violation: violation, ..step.clone() };
        check(
            EventBody::StepFinished(Box::new(broken)),
            "step 3 tool lookup ok 12ms, contract violated: no search was made",
        );
        let fallback = Some(Fallback { place: 1, endpoint: "spare".into(), may_pass: true });
        let kind = StepKind::Model { model: "m".into(), fallback };
        let spare = StepFinished { kind, ..step.clone() };
        check(EventBody::StepFinished(Box::new(spare)), "step 3 model m (fallback spare) ok 12ms");
        let failed = StepFinished { outcome, kind: StepKind::model("m"), ..step };
        check(
            EventBody::StepFinished(Box::new(failed)),
            "step 3 model m failed (tool_failed: two lines) 12ms",
        );
        let usage = Usage { input_tokens: 3, output_tokens: 4, estimated: false, ..Usage::default() };
        let ended =
            EventBody::TaskEnded { state: TaskState::Failed, output: None, failure: Some(failure), usage };
        check(ended, "task failed: tool_failed: two lines 7 tokens");
    }
}
