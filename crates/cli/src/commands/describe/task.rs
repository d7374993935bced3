//! A task: what was asked, what came of it, and what to do where nothing did.

use ostler_client::{
    Client, MessageView, TaskView,
    view::{StepOutcome, StepState},
};
use serde_json::Value;

use super::page::Page;
use crate::{app::App, clock, paint::Tone, text, words};

/// Of a long text so much is told; the whole is in `ostler get -o yaml`.
const LETTERS: usize = 2000;
const MESSAGES: usize = 20;
const STEPS: usize = 30;

pub async fn describe(page: &mut Page, app: &App, client: &Client, object: &Value) {
    let Ok(task) = serde_json::from_value::<TaskView>(object.clone()) else {
        page.section("spec");
        page.fields(object.get("spec"), &[]);
        return;
    };
    let home = client.clone().in_namespace(&task.metadata.namespace);
    request(page, &task);
    course(page, app, &task);
    end(page, &task);
    let messages = home.messages(&task.metadata.uid).await.unwrap_or_default();
    tell_messages(page, &messages);
    tell_steps(page, &home, &task).await;
}

fn request(page: &mut Page, task: &TaskView) {
    page.section("request");
    page.titles(task.spec.input.keys());
    page.line("for", &task.subject());
    page.line("priority", &task.spec.priority);
    page.line("session", task.spec.session.as_deref().unwrap_or_default());
    page.line("deadline", task.spec.deadline.as_deref().unwrap_or_default());
    let attempts = task.spec.attempts();
    page.line("attempts", &if attempts > 1 { attempts.to_string() } else { String::new() });
    if let Some(required) = &task.spec.requirements {
        let waits = if task.status.state == "queued" { "waits for a worker with " } else { "" };
        page.line("worker", &format!("{waits}{}", required.words()));
    }
    for (key, value) in &task.spec.input {
        page.line(key, &start_of(value));
    }
}

fn course(page: &mut Page, app: &App, task: &TaskView) {
    page.section("course");
    let status = &task.status;
    let at = |time: &Option<String>| time.as_deref().and_then(clock::parse);
    let created = clock::parse(&task.metadata.created_at);
    if let (Some(created), Some(started)) = (created, at(&status.started_at)) {
        page.line("queued for", &clock::took_ms(started.saturating_sub(created)));
        let until = at(&status.completed_at).unwrap_or_else(|| app.now_ms());
        let title = if status.completed_at.is_some() { "worked for" } else { "at work for" };
        page.line(title, &clock::took_ms(until.saturating_sub(started)));
    }
    page.line("tokens", &words::tokens(&status.usage));
    page.line("archived", status.archived_at.as_deref().unwrap_or_default());
}

fn end(page: &mut Page, task: &TaskView) {
    let (name, status) = (&task.metadata.name, &task.status);
    if let Some(waiting) = &status.waiting_for {
        page.section("waits");
        page.toned(&waiting.kind, &waiting.summary, Tone::Pending);
        if waiting.kind == "quarantine" {
            page.line(
                "remedy",
                &format!("`ostler release {name}` lets it go on, `ostler cancel {name}` ends it"),
            );
        }
    }
    if let Some(sleeping) = &status.sleeping {
        page.section("sleeps");
        page.toned("until", &sleeping.until, Tone::Pending);
        page.toned("why", &sleeping.error.as_ref().map(words::failure).unwrap_or_default(), Tone::Pending);
    }
    let failure = status.error.as_ref().map(|why| words::end(&status.state, why));
    let failure = failure.or_else(|| status.last_error.clone());
    if let Some(failure) = failure {
        page.section(if status.state == "cancelled" { "cancelled" } else { "error" });
        page.toned("what", &failure, Tone::Bad);
        page.line("remedy", &remedy(task));
    }
    if let Some(output) = task.output().filter(|output| !output.is_empty()) {
        page.section("output");
        page.remark(Tone::Plain, &start_of(output));
    }
}

/// What a person can do about it, by what failed.
fn remedy(task: &TaskView) -> String {
    let name = &task.metadata.name;
    let class = task.status.error.as_ref().map(|error| error.class.as_str()).unwrap_or_default();
    let first = match class {
        "transient" => "it may have passed by now",
        "limit" => "raise the limit in the agent's `spec.limits`",
        "timeout" => "give it longer: `spec.limits.timeout` of the agent, or the task's deadline",
        "cancelled" => return format!("`ostler retry {name}` asks for the same again"),
        "outcome_unknown" => "look whether the call had its effect before you ask again",
        _ => "put right what the message names",
    };
    format!("{first}; then `ostler retry {name}`. `ostler trace {name}` shows where it was")
}

fn tell_messages(page: &mut Page, messages: &[MessageView]) {
    if messages.is_empty() {
        return;
    }
    page.section("messages");
    let title = |message: &MessageView| format!("{} to {}", message.from_agent, message.to_agent);
    page.titles(messages.iter().take(MESSAGES).map(title));
    for message in messages.iter().take(MESSAGES) {
        let MessageView { phase, attempts, .. } = message;
        let tries = if *attempts > 1 { format!(", {attempts} attempts") } else { String::new() };
        let tone = match phase.as_str() {
            "Succeeded" => Tone::Good,
            "DeadLetter" => Tone::Bad,
            _ => Tone::Pending,
        };
        page.toned(&title(message), &format!("{phase}{tries}"), tone);
        let said = text::one_line(&message.content);
        if !said.is_empty() {
            page.line("", &text::cut(&said, 200, "..."));
        }
        page.toned("", &message.last_error, Tone::Bad);
    }
    more(page, messages.len(), MESSAGES);
}

async fn tell_steps(page: &mut Page, client: &Client, task: &TaskView) {
    let Ok(steps) = client.steps(&task.metadata.uid).await else { return };
    if steps.is_empty() {
        return;
    }
    page.section("steps");
    page.titles(steps.iter().take(STEPS).map(|step| words::step_title(step.id.index, &step.kind)));
    let mut run = None;
    for step in steps.iter().take(STEPS) {
        // Each agent of a system counts its steps from 0.
        if task.spec.system.is_some() && run.replace(&step.id.run) != Some(&step.id.run) {
            page.remark(
                Tone::Quiet,
                &step.agent.as_ref().map(|agent| format!("agent {agent}")).unwrap_or_default(),
            );
        }
        let title = words::step_title(step.id.index, &step.kind);
        match &step.state {
            StepState::Open => page.toned(&title, "under way", Tone::Pending),
            StepState::Done { outcome, took_ms, usage, .. } => {
                let took = clock::took(std::time::Duration::from_millis(*took_ms));
                let tokens =
                    if usage.total() > 0 { format!("  {}", words::tokens(usage)) } else { String::new() };
                let failure = match outcome {
                    StepOutcome::Failed { failure } => format!("  {}", words::failure(failure)),
                    StepOutcome::Ok | StepOutcome::Interrupted | StepOutcome::Other => String::new(),
                };
                let line = format!("{}  {took}{tokens}{failure}", words::outcome(outcome));
                page.toned(&title, &line, words::outcome_tone(outcome));
            }
        }
    }
    more(page, steps.len(), STEPS);
}

fn more(page: &mut Page, count: usize, told: usize) {
    if count > told {
        page.remark(Tone::Quiet, &format!("and {} more", count - told));
    }
}

fn start_of(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{} [...]", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
