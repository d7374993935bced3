//! Draws a trace for a terminal: one row per step, its bar at its place in time.

use super::{Attempt, Outcome, Row, Trace};
use crate::{
    clock,
    paint::{Paint, Tone},
    text, words,
};

/// What the drawing is for.
#[derive(Debug, Clone, Copy)]
pub struct Canvas {
    pub columns: usize,
    pub paint: Paint,
    pub is_utf8: bool,
}

/// Room for `1m05s`, and for `123456`.
const TIME_COLUMNS: usize = 7;
const TOKEN_COLUMNS: usize = 7;

/// Costs are shown where at least so much is left for the bars.
const BARS_BESIDE_COSTS: usize = 24;

/// The widest name that is shown whole, and what is left of it where there is little room.
const LONGEST_NAME: usize = 32;
const SHORTEST_NAME: usize = 12;

const INDENT: usize = 2;

pub fn lines(trace: &Trace, canvas: Canvas) -> Vec<String> {
    let plan = Plan::new(trace, canvas);
    let mut lines = vec![plan.head()];
    for attempt in &trace.attempts {
        if trace.attempts.len() > 1 {
            lines.push(plan.attempt(attempt, trace.has_lanes()));
        }
        for row in &attempt.rows {
            lines.push(plan.row(row));
            if let Outcome::Failed(why) = &row.outcome {
                lines.push(plan.remark(Tone::Bad, why));
            }
        }
        if let Some(end) = &attempt.end {
            lines.push(plan.remark(Tone::Pending, end));
        }
    }
    lines
}

/// Where things stand: the index, what the step is, the bars, the figures.
struct Plan {
    canvas: Canvas,
    index: usize,
    title: usize,
    bars: usize,
    /// How wide the costs stand: 0 if there are none, or no room for them.
    costs: usize,
    start_ms: i64,
    span_ms: i64,
}

impl Plan {
    fn new(trace: &Trace, canvas: Canvas) -> Self {
        let rows = || trace.attempts.iter().flat_map(|attempt| &attempt.rows);
        let index = rows().map(|row| row.step.to_string().len()).max().unwrap_or(1);
        let names = rows().map(|row| text::width(&title(row))).max().unwrap_or(0);
        let longest = (canvas.columns / 4).clamp(SHORTEST_NAME, LONGEST_NAME);
        let title = names.clamp(4, longest);
        let taken = INDENT + index + 2 + title + 2 + TIME_COLUMNS + TOKEN_COLUMNS + 1;
        let bars = canvas.columns.saturating_sub(taken).max(4);
        let widest = rows().filter_map(|row| words::cost(&row.usage)).map(|cost| cost.len() + 2).max();
        let costs = widest.filter(|costs| bars >= costs + BARS_BESIDE_COSTS).unwrap_or(0);
        Self {
            canvas,
            index,
            title,
            bars: bars - costs,
            costs,
            start_ms: trace.start_ms,
            span_ms: trace.end_ms.saturating_sub(trace.start_ms).max(1),
        }
    }

    fn head(&self) -> String {
        let (time, tokens, costs) = (TIME_COLUMNS, TOKEN_COLUMNS, self.costs);
        let cost = if costs > 0 { "COST" } else { "" };
        let front = format!("{:>width$}  {:<title$}  ", "#", "STEP", width = self.index, title = self.title);
        let figures = format!("{:>time$}{:>tokens$}{cost:>costs$}", "TIME", "TOKENS");
        let line = format!("{}{front}{}{figures}", " ".repeat(INDENT), self.axis());
        self.canvas.paint.tone(Tone::Strong, line.trim_end())
    }

    /// Round times at their places, as many as fit.
    fn axis(&self) -> String {
        let mut axis = String::new();
        for mark_ms in (0..=self.span_ms).step_by(usize::try_from(self.tick()).unwrap_or(1).max(1)) {
            let column = self.column(self.start_ms.saturating_add(mark_ms));
            let label = round(mark_ms);
            if column + label.len() > self.bars {
                break;
            }
            axis.push_str(&" ".repeat(column.saturating_sub(axis.len())));
            axis.push_str(&label);
        }
        format!("{axis:<width$}", width = self.bars)
    }

    /// The smallest of 1, 2, 5, 10 and so on that leaves eight columns between two marks.
    fn tick(&self) -> i64 {
        let wanted = self.span_ms.saturating_mul(8) / i64::try_from(self.bars).unwrap_or(1).max(1);
        let mut tick: i64 = 1;
        for factor in [2, 5, 2].into_iter().cycle() {
            let next = if factor == 5 { tick / 2 * 5 } else { tick.saturating_mul(2) };
            if tick > wanted || next <= tick {
                break;
            }
            tick = next;
        }
        tick
    }

    fn attempt(&self, attempt: &Attempt, has_lanes: bool) -> String {
        let mut line = format!("attempt {} on {}", attempt.number, text::one_line(&attempt.worker));
        if let Some(agent) = attempt.agent.as_ref().filter(|_| has_lanes) {
            line = format!("agent {}, {line}", text::one_line(agent));
        }
        self.canvas.paint.tone(Tone::Quiet, &text::cut(&line, self.canvas.columns, self.ellipsis()))
    }

    fn remark(&self, tone: Tone, words: &str) -> String {
        let indent = INDENT + self.index + 2;
        let arrow = if self.canvas.is_utf8 { "└ " } else { "` " };
        let room = self.canvas.columns.saturating_sub(indent + 2);
        let words = text::cut(&text::one_line(words), room, self.ellipsis());
        format!("{}{}", " ".repeat(indent), self.canvas.paint.tone(tone, &format!("{arrow}{words}")))
    }

    fn row(&self, row: &Row) -> String {
        let title = text::cut(&title(row), self.title, self.ellipsis());
        let gap = " ".repeat(self.title - text::width(&title));
        let took = clock::took_ms(row.end_ms.saturating_sub(row.start_ms));
        let tokens = if row.usage.total() > 0 { row.usage.total().to_string() } else { String::new() };
        let cost = words::cost(&row.usage).filter(|_| self.costs > 0).unwrap_or_default();
        let line = format!(
            "{}{:>index$}  {title}{gap}  {}{took:>TIME_COLUMNS$}{tokens:>TOKEN_COLUMNS$}{cost:>costs$}",
            " ".repeat(INDENT),
            row.step,
            self.bar(row),
            index = self.index,
            costs = self.costs,
        );
        line.trim_end().to_owned()
    }

    fn bar(&self, row: &Row) -> String {
        let from = self.column(row.start_ms).min(self.bars - 1);
        let to = self.column(row.end_ms).clamp(from, self.bars);
        let (brick, sliver) = self.bricks(&row.outcome);
        let bar = if to == from { sliver.to_owned() } else { brick.repeat(to - from) };
        let behind = " ".repeat(self.bars - from - text::width(&bar));
        format!("{}{}{behind}", " ".repeat(from), self.canvas.paint.tone(tone(row), &bar))
    }

    /// What a bar is made of, and how one too short to see is shown.
    fn bricks(&self, outcome: &Outcome) -> (&'static str, &'static str) {
        match (self.canvas.is_utf8, outcome) {
            (true, Outcome::Ok) => ("█", "▏"),
            (true, Outcome::Failed(_)) => ("▓", "▏"),
            (true, Outcome::Interrupted | Outcome::Open) => ("░", "░"),
            (false, Outcome::Ok) => ("#", "|"),
            (false, Outcome::Failed(_)) => ("x", "x"),
            (false, Outcome::Interrupted | Outcome::Open) => (".", "."),
        }
    }

    fn column(&self, at_ms: i64) -> usize {
        let offset = i128::from(at_ms.saturating_sub(self.start_ms).max(0));
        let columns = i128::try_from(self.bars).unwrap_or(0);
        usize::try_from(offset * columns / i128::from(self.span_ms)).unwrap_or(self.bars).min(self.bars)
    }

    fn ellipsis(&self) -> &'static str {
        if self.canvas.is_utf8 { "…" } else { "..." }
    }
}

fn title(row: &Row) -> String {
    let name = text::one_line(&row.name);
    if row.kind.is_empty() { name } else { format!("{:<5} {name}", row.kind) }
}

fn tone(row: &Row) -> Tone {
    match (&row.outcome, row.kind) {
        (Outcome::Failed(_), _) => Tone::Bad,
        (Outcome::Interrupted, _) => Tone::Pending,
        (Outcome::Ok | Outcome::Open, "tool") => Tone::Tool,
        (Outcome::Ok | Outcome::Open, _) => Tone::Model,
    }
}

/// `0`, `500ms`, `1.5s`, `2m`: ticks are round, so little is cut off.
fn round(ms: i64) -> String {
    match ms {
        0 => "0".to_owned(),
        1..1_000 => format!("{ms}ms"),
        1_000..120_000 if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
        1_000..120_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        _ => clock::took_ms(ms),
    }
}

#[cfg(test)]
mod tests {
    use ostler_client::view::UsageView;

    use super::*;

    fn canvas(columns: usize, is_utf8: bool) -> Canvas {
        Canvas { columns, paint: Paint::new(false), is_utf8 }
    }

    fn row(
        step: u32,
        kind: &'static str,
        name: &str,
        (start_ms, end_ms): (i64, i64),
        outcome: Outcome,
    ) -> Row {
        let usage = UsageView { input_tokens: 5, output_tokens: 7, ..UsageView::default() };
        Row { step, kind, name: name.into(), start_ms, end_ms, usage, outcome }
    }

    fn attempt(number: u32, worker: &str, rows: Vec<Row>) -> Attempt {
        Attempt { run: "r".into(), agent: None, number, worker: worker.into(), rows, end: None }
    }

    fn trace() -> Trace {
        let failed = Outcome::Failed("tool_timeout: no answer".into());
        let rows = vec![
            row(0, "model", "mock-1", (0, 500), Outcome::Ok),
            row(1, "tool", "lookup", (500, 510), failed),
            row(2, "model", "mock-1", (510, 1000), Outcome::Open),
        ];
        let attempt = attempt(1, "local", rows);
        Trace { start_ms: 0, end_ms: 1000, attempts: vec![attempt] }
    }

    #[test]
    fn bars_stand_where_the_time_was_spent() {
        let drawn = lines(&trace(), canvas(60, false));
        assert_eq!(
            drawn,
            [
                "  #  STEP          0            500ms           TIME TOKENS",
                "  0  model mock-1  #############               500ms     12",
                "  1  tool  lookup               x               10ms     12",
                "     ` tool_timeout: no answer",
                "  2  model mock-1               .............  490ms     12",
            ]
        );
    }

    #[test]
    fn what_each_step_cost_is_shown_where_there_is_room() {
        let mut trace = trace();
        trace.attempts[0].rows[0].usage.cost_micro_usd = Some(1200);
        let wide = lines(&trace, canvas(80, false));
        let ends = ["  TIME TOKENS     COST", " 500ms     12  $0.0012", " 10ms     12"];
        for (line, end) in wide.iter().zip(ends) {
            assert!(line.ends_with(end), "{wide:#?}");
        }
        let narrow = lines(&trace, canvas(60, false));
        assert!(narrow[0].ends_with("TOKENS") && !narrow[1].contains('$'), "{narrow:#?}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut trace = trace();
        trace.attempts[0].rows[0].usage.cost_micro_usd = Some(1_234_567);
        trace.attempts[0].rows[1].name = "a-very-long-tool-name-日本語-that-never-ends-at-all".into();
        trace.attempts[0].end = Some("lost ".repeat(40));
        trace.attempts.push(attempt(2, &"w".repeat(300), Vec::new()));
        for columns in [40, 80, 81, 120, 200, 500] {
            for is_utf8 in [true, false] {
                for line in lines(&trace, canvas(columns, is_utf8)) {
                    assert!(text::width(&line) <= columns, "{columns}: {line}");
                    assert!(is_utf8 || line.replace(['日', '本', '語'], "").is_ascii(), "{line}");
                }
            }
        }
    }

    #[test]
    fn absurd_times_are_drawn_all_the_same() {
        let ends = [(0, 0), (0, 1), (0, 86_400_000 * 365), (500, 100), (i64::MIN, i64::MAX)];
        for (start_ms, end_ms) in ends {
            let rows = vec![row(0, "model", "m", (i64::MIN, i64::MAX), Outcome::Interrupted)];
            let attempt = attempt(1, "w", rows);
            let trace = Trace { start_ms, end_ms, attempts: vec![attempt] };
            assert_eq!(lines(&trace, canvas(80, true)).len(), 2);
        }
    }
}
