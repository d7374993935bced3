//! One task: what it is, and its steps.

use ostler_client::{
    StepView,
    view::{StepKind, StepOutcome, StepState},
};
use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    text::Line,
    widgets::{Cell, Row as TableRow, Table, Widget},
};

use super::{draw::Look, picture::amount, state::Detail};
use crate::{clock, paint::Tone, text, words, words::full_name};

pub fn draw(detail: &Detail, now_ms: i64, look: Look, area: Rect, buffer: &mut Buffer) {
    let [head, about, steps] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let row = &detail.row;
    let spent = words::tokens(&row.usage);
    let head_line = format!("{}/{}  {}  {}  {spent}", row.namespace, row.name, row.doer, row.state);
    Line::styled(head_line, look.style(Tone::Strong)).render(head, buffer);
    Line::styled(row.about.as_str(), look.style(Tone::Quiet)).render(about, buffer);
    match &detail.steps {
        None => Line::raw("...").render(steps, buffer),
        Some(all) => draw_steps(all, now_ms, look, steps, buffer),
    }
}

/// The last ones, if there is no room for all.
fn draw_steps(all: &[StepView], now_ms: i64, look: Look, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.height.saturating_sub(1));
    let shown = all.get(all.len().saturating_sub(room)..).unwrap_or_default();
    let rows = shown.iter().map(|step| step_row(step, now_ms, look));
    let head =
        TableRow::new(["STEP", "KIND", "NAME", "STATE", "TOOK", "TOKENS"]).style(look.style(Tone::Strong));
    let widths = [
        Constraint::Length(5),
        Constraint::Length(6),
        Constraint::Fill(1),
        Constraint::Length(22),
        Constraint::Length(8),
        Constraint::Length(8),
    ];
    Widget::render(Table::new(rows, widths).header(head), area, buffer);
}

fn step_row(step: &StepView, now_ms: i64, look: Look) -> TableRow<'static> {
    let (kind, name, tone) = match &step.kind {
        StepKind::Model { .. } => ("model", full_name(&step.kind), Tone::Model),
        StepKind::Tool { .. } => ("tool", full_name(&step.kind), Tone::Tool),
        StepKind::Wait => ("wait", String::new(), Tone::Plain),
        StepKind::Other => ("", String::new(), Tone::Plain),
    };
    let (state, took, tokens, state_tone) = match &step.state {
        StepState::Open => {
            let since = clock::took_ms(now_ms.saturating_sub(step.opened_at_ms));
            ("under way".to_owned(), since, String::new(), Tone::Pending)
        }
        StepState::Done { outcome, took_ms, usage, .. } => {
            let (state, tone) = match outcome {
                StepOutcome::Ok => ("ok".to_owned(), Tone::Good),
                StepOutcome::Failed { failure } => (failure.code.clone(), Tone::Bad),
                StepOutcome::Interrupted => ("interrupted".to_owned(), Tone::Quiet),
                StepOutcome::Other => (String::new(), Tone::Plain),
            };
            let tokens = if usage.total() > 0 { amount(usage.total()) } else { String::new() };
            (state, clock::took_ms(i64::try_from(*took_ms).unwrap_or(i64::MAX)), tokens, tone)
        }
    };
    TableRow::new([
        Cell::new(step.id.index.to_string()),
        Cell::new(kind).style(look.style(tone)),
        Cell::new(text::one_line(&name)),
        Cell::new(state).style(look.style(state_tone)),
        Cell::new(took),
        Cell::new(tokens),
    ])
}
