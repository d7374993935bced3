//! What is known of a task while it is watched: what is under way, for how long, and the text as it comes.
//! A fold over the log and the deltas beside it; knows nothing of terminals but how wide one is.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ostler_client::{
    DeltaView, EventBody, EventView, StepView,
    view::{StepFinished, StepKind, StepOutcome, StepState},
};
use ostler_worker::Runtime;

use super::screen::Look;
use crate::{clock, paint::Tone, text, words};

/// What is kept of a text that is shown only at its end.
const TEXT_KEPT: usize = 8 << 10;

/// Lines of it that are shown.
const TEXT_LINES: usize = 8;

pub struct Board {
    runtime: Arc<dyn Runtime>,
    started: Duration,
    open: BTreeMap<u32, Open>,
    /// What goes on while no step is under way.
    pause: String,
    tokens: u64,
    /// Set while there is no connection.
    trouble: Option<String>,
}

/// A step under way.
struct Open {
    kind: Option<StepKind>,
    since: Duration,
    text: String,
    /// The text is the model's thinking, and no part of its answer.
    is_thinking: bool,
    /// Where the next delta belongs.
    next_offset: u64,
}

impl Board {
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        let started = runtime.monotonic();
        Self { runtime, started, open: BTreeMap::new(), pause: "queued".into(), tokens: 0, trouble: None }
    }

    /// Takes an event in, and gives the lines of it that stay.
    pub fn event(&mut self, event: &EventView, look: Look) -> Vec<String> {
        self.trouble = None;
        match &event.body {
            EventBody::StepFinished(step) => return self.step_finished(step, look),
            EventBody::AttemptStarted { attempt, .. } => {
                "starting".clone_into(&mut self.pause);
                // The first one goes without saying.
                if *attempt == 1 {
                    return Vec::new();
                }
            }
            EventBody::TaskAccepted { .. } | EventBody::RunReady { .. } | EventBody::InputAccepted { .. } => {
                return Vec::new();
            }
            EventBody::RunRetrying { .. }
            | EventBody::RunWaiting { .. }
            | EventBody::RunSleeping { .. }
            | EventBody::AttemptEnded { .. } => {
                self.open.clear();
                self.pause = words::event(event);
            }
            EventBody::RunEnded { .. } => {
                self.open.clear();
                return Vec::new();
            }
            EventBody::MessageSent { .. } => "queued".clone_into(&mut self.pause),
            EventBody::TaskEnded { .. } | EventBody::Other => {}
        }
        let mark = if look.is_utf8 { "· " } else { "- " };
        vec![painted(look, words::tone(&event.body), &format!("{mark}{}", words::event(event)))]
    }

    /// An attempt began; `steps` are those of its run, as far as they are known.
    pub fn attempt(&mut self, first: u32, steps: &[StepView]) {
        self.open.clear();
        for step in steps.iter().filter(|step| matches!(step.state, StepState::Open)) {
            self.begin(step.id.index, Some(step.kind.clone()));
        }
        if steps.is_empty() {
            self.begin(first, None);
        }
    }

    pub fn delta(&mut self, delta: &DeltaView) {
        self.trouble = None;
        let Some(open) = self.open.get_mut(&delta.step) else { return };
        if delta.offset < open.next_offset || delta.thinking != open.is_thinking {
            // The call was made again, or the model has thought enough.
            open.text.clear();
            open.is_thinking = delta.thinking;
        } else if delta.offset > open.next_offset {
            open.text.push_str(if open.text.is_empty() { "[...] " } else { " [...] " });
        }
        open.text.push_str(&delta.text);
        open.next_offset = delta.offset + delta.text.len() as u64;
        if open.text.len() > 2 * TEXT_KEPT {
            let cut = open.text.ceil_char_boundary(open.text.len() - TEXT_KEPT);
            open.text.drain(..cut);
        }
    }

    pub fn reconnecting(&mut self, attempt: u32, why: &str) {
        self.trouble = Some(format!("{why}; trying again (try {attempt})"));
    }

    /// The moving part, as it looks now.
    pub fn lines(&self, look: Look) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for (index, open) in &self.open {
            let title = match &open.kind {
                Some(kind) => words::step_title(*index, kind),
                None => format!("step {index}"),
            };
            lines.push(self.status(&title, open.since, look));
        }
        if self.open.is_empty() {
            lines.push(self.status(&self.pause, self.started, look));
        }
        if let Some(trouble) = &self.trouble {
            lines.push(painted(look, Tone::Bad, trouble));
        }
        let room = look.size.rows.saturating_sub(lines.len() + 2).min(TEXT_LINES);
        let talking = self.open.values().find(|open| !open.text.is_empty());
        let wrapped = text::wrap(talking.map_or("", |open| &open.text), look.size.columns - 4);
        let hidden = wrapped.len().saturating_sub(room);
        let tone = talking.is_some_and(|open| open.is_thinking).then_some(Tone::Quiet);
        lines.extend(wrapped[hidden..].iter().map(|line| match tone {
            Some(tone) => painted(look, tone, &format!("  {line}")),
            None => format!("  {line}"),
        }));
        lines.truncate(look.size.rows.saturating_sub(1));
        lines
    }

    fn step_finished(&mut self, step: &StepFinished, look: Look) -> Vec<String> {
        self.tokens = self.tokens.saturating_add(step.usage.total());
        self.open.remove(&step.step);
        for opened in &step.opened {
            self.begin(opened.step, Some(opened.kind.clone()));
        }
        "working".clone_into(&mut self.pause);
        let mark = mark(&step.outcome, look.is_utf8);
        let line = text::cut(&words::step_line(step), look.size.columns - 3, ellipsis(look));
        let mut lines = vec![format!("{} {line}", look.paint.tone(mark.1, mark.0))];
        let preview = text::one_line(&step.preview);
        let is_worth_it = matches!(step.outcome, StepOutcome::Ok) && !words::is_answer(step);
        if is_worth_it && !preview.is_empty() {
            lines.push(painted(look, Tone::Quiet, &format!("  {preview}")));
        }
        lines
    }

    fn begin(&mut self, index: u32, kind: Option<StepKind>) {
        let open = Open {
            kind,
            since: self.runtime.monotonic(),
            text: String::new(),
            is_thinking: false,
            next_offset: 0,
        };
        self.open.insert(index, open);
    }

    /// `⠋ step 1  tool lookup  231 tokens  3.2s`
    fn status(&self, title: &str, since: Duration, look: Look) -> String {
        let now = self.runtime.monotonic();
        let mut line = title.to_owned();
        if self.tokens > 0 {
            line = format!("{line}  {} tokens so far", self.tokens);
        }
        let elapsed = now.saturating_sub(since);
        // Below a second the figures only flicker.
        if elapsed >= Duration::from_secs(1) {
            line = format!("{line}  {}", clock::elapsed(elapsed));
        }
        let spinner = spinner(now.saturating_sub(self.started), look.is_utf8);
        let line = text::cut(&line, look.size.columns - 3, ellipsis(look));
        format!("{} {line}", look.paint.tone(Tone::Model, spinner))
    }
}

fn painted(look: Look, tone: Tone, line: &str) -> String {
    look.paint.tone(tone, &text::cut(line, look.size.columns - 1, ellipsis(look)))
}

fn mark(outcome: &StepOutcome, is_utf8: bool) -> (&'static str, Tone) {
    match (outcome, is_utf8) {
        (StepOutcome::Ok | StepOutcome::Other, true) => ("✓", Tone::Good),
        (StepOutcome::Ok | StepOutcome::Other, false) => ("+", Tone::Good),
        (StepOutcome::Failed { .. }, true) => ("✗", Tone::Bad),
        (StepOutcome::Failed { .. }, false) => ("x", Tone::Bad),
        (StepOutcome::Interrupted, _) => ("-", Tone::Pending),
    }
}

fn ellipsis(look: Look) -> &'static str {
    if look.is_utf8 { "…" } else { "..." }
}

fn spinner(elapsed: Duration, is_utf8: bool) -> &'static str {
    const DOTS: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
    const BARS: [&str; 4] = ["-", "\\", "|", "/"];
    let frame = usize::try_from(elapsed.as_millis() / super::FRAME.as_millis()).unwrap_or(0);
    if is_utf8 { DOTS[frame % DOTS.len()] } else { BARS[frame % BARS.len()] }
}

#[cfg(test)]
mod tests;
