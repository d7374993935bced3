//! Draws the state: three lines of sums, the workers, the tasks, and a line of keys. Eighty columns are enough.

use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Cell, Row as TableRow, StatefulWidget, Table, TableState, Widget},
};

use super::{
    detail,
    picture::{Row, amount},
    state::{Link, State},
};
use crate::{clock, paint::Tone, text, words};

#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub has_colour: bool,
    /// Whether somebody can press keys.
    pub has_keys: bool,
    /// There is room for everything, so that nothing is cut off.
    pub is_whole: bool,
}

impl Look {
    /// Words say the same without it.
    pub fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        match tone {
            Tone::Strong => plain.add_modifier(Modifier::BOLD),
            _ if !self.has_colour => plain,
            Tone::Plain => plain,
            Tone::Quiet => plain.fg(Color::DarkGray),
            Tone::Good => plain.fg(Color::Green),
            Tone::Bad => plain.fg(Color::Red),
            Tone::Pending => plain.fg(Color::Yellow),
            Tone::Model => plain.fg(Color::Cyan),
            Tone::Tool => plain.fg(Color::Magenta),
        }
    }
}

/// Workers that are shown; the rest is counted.
const MOST_WORKERS: usize = 4;

pub fn picture(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let workers = u16::try_from(state.picture.workers.len().min(MOST_WORKERS)).unwrap_or_default();
    let of_workers = if workers == 0 { 0 } else { workers + 2 };
    let keys = u16::from(look.has_keys);
    let parts = Layout::vertical([
        Constraint::Length(4),
        Constraint::Length(of_workers),
        Constraint::Min(3),
        Constraint::Length(keys),
    ]);
    let [sums, workers, body, keys] = parts.areas(area);
    draw_sums(state, look, sums, buffer);
    draw_workers(state, look, workers, buffer);
    match &state.detail {
        Some(detail) => detail::draw(detail, state.now_ms, look, body, buffer),
        None => draw_tasks(state, look, body, buffer),
    }
    if look.has_keys {
        draw_keys(state, look, keys, buffer);
    }
}

/// The picture as plain text.
pub fn lines(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let line = |y| {
        let cells = (area.left()..area.right()).filter_map(|x| buffer.cell((x, y)));
        cells.map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
    };
    (area.top()..area.bottom()).map(line).collect()
}

fn draw_sums(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let (standing, tone) = match &state.link {
        Link::Lost { tries, .. } => (format!("reconnecting ({tries})"), Tone::Bad),
        Link::Live if state.is_paused => ("paused".to_owned(), Tone::Pending),
        Link::Live => ("live".to_owned(), Tone::Good),
    };
    let head = Line::from(vec![
        Span::styled("ostler top", look.style(Tone::Strong)),
        Span::raw(format!("  {}  ", text::one_line(&state.title))),
        Span::styled(standing, look.style(tone)),
    ]);
    let picture = &state.picture;
    let more = if picture.has_more { "+" } else { "" };
    let count = |name: &str| format!("{name} {}{more}   ", picture.count(name));
    let queue: String = ["queued", "running", "waiting", "sleeping"].map(count).concat();
    let usage = picture.usage();
    let rate = state.rate.map_or_else(String::new, |rate| format!("   {} a minute", amount(rate)));
    let cost = words::cost(&usage).map_or_else(String::new, |cost| format!("   cost {cost}"));
    let tokens = format!(
        "tokens  {} in   {} out{rate}{cost}",
        amount(usage.input_tokens),
        amount(usage.output_tokens)
    );
    let why = match &state.link {
        Link::Lost { why, .. } => text::one_line(why),
        Link::Live => String::new(),
    };
    let lines = [
        head,
        Line::raw(format!("tasks   {queue}")),
        Line::raw(tokens),
        Line::styled(why, look.style(Tone::Bad)),
    ];
    for (line, row) in lines.into_iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}

fn draw_workers(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let workers = &state.picture.workers;
    if workers.is_empty() || area.height == 0 {
        return;
    }
    let rows = workers.iter().take(MOST_WORKERS).map(|worker| {
        let tone = if worker.status.phase == "Ready" { Tone::Good } else { Tone::Bad };
        let status = match worker.status.standing.as_str() {
            "open" => worker.status.phase.clone(),
            standing => format!("{},{standing}", worker.status.phase),
        };
        let runs = format!("{}/{}", worker.status.current_tasks, worker.spec.max_concurrent_tasks);
        let seen = worker.status.last_heartbeat.as_deref().and_then(clock::parse);
        let seen = seen.map_or_else(String::new, |seen| clock::age(seen, state.now_ms));
        TableRow::new([
            Cell::new(text::one_line(&worker.metadata.name)),
            Cell::new(status).style(look.style(tone)),
            Cell::new(runs),
            Cell::new(seen),
        ])
    });
    let left_out = workers.len().saturating_sub(MOST_WORKERS);
    let title = if left_out > 0 { format!("WORKER ({left_out} more)") } else { "WORKER".to_owned() };
    let head = TableRow::new([title, "STATUS".to_owned(), "RUNS".to_owned(), "SEEN".to_owned()]);
    let widths = [Constraint::Min(20), Constraint::Length(18), Constraint::Length(12), Constraint::Length(8)];
    Widget::render(Table::new(rows, widths).header(head.style(look.style(Tone::Strong))), area, buffer);
}

fn draw_tasks(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let rows = state.rows();
    let has_namespaces = has_namespaces(&rows);
    let head = TableRow::new(["TASK", "AGENT", "STATE", "AGE", "TOKENS", "COST", "ABOUT"])
        .style(look.style(Tone::Strong));
    let (name, doer, about) = match look.is_whole {
        true => {
            let [name, doer, _] = longest(&rows).map(|longest| u16::try_from(longest).unwrap_or(u16::MAX));
            (Constraint::Length(name), Constraint::Length(doer), Constraint::Fill(1))
        }
        false => (Constraint::Fill(3), Constraint::Fill(2), Constraint::Fill(1)),
    };
    let [state_width, age, tokens, cost] = FIXED.map(Constraint::Length);
    let widths = [name, doer, state_width, age, tokens, cost, about];
    // A table cuts off without a word.
    let columns = Layout::horizontal(widths).spacing(1).split(area);
    let columns: Vec<usize> = columns.iter().map(|column| usize::from(column.width)).collect();
    let shown = rows.iter().map(|row| task_row(row, has_namespaces, &columns, look));
    let table = Table::new(shown, widths)
        .column_spacing(1)
        .header(head)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut place = TableState::new().with_selected(state.selected.filter(|_| !rows.is_empty()));
    StatefulWidget::render(table, area, buffer, &mut place);
    if rows.is_empty() && area.height > 1 {
        let what = if state.filter.is_empty() { "no tasks" } else { "no task matches the filter" };
        Line::styled(what, look.style(Tone::Quiet)).render(Rect { y: area.y + 1, height: 1, ..area }, buffer);
    }
}

/// State, age, tokens and cost.
const FIXED: [u16; 4] = [11, 5, 8, 10];

/// How wide the picture is if nothing of its tasks is cut off.
pub fn columns_needed(state: &State) -> usize {
    let fixed: usize = FIXED.iter().map(|width| usize::from(*width)).sum();
    longest(&state.rows()).iter().sum::<usize>() + fixed + 6
}

/// The widest name, doer and remark, each as wide as its title at least.
fn longest(rows: &[Row]) -> [usize; 3] {
    let has_namespaces = has_namespaces(rows);
    let widest = |title: &str, of: &dyn Fn(&Row) -> String| {
        rows.iter().map(|row| text::width(&of(row))).max().unwrap_or_default().max(title.len())
    };
    [
        widest("TASK", &|row| task_name(row, has_namespaces)),
        widest("AGENT", &|row| row.doer.clone()),
        widest("ABOUT", &|row| row.about.clone()),
    ]
}

fn has_namespaces(rows: &[Row]) -> bool {
    rows.iter().any(|row| rows.first().is_some_and(|first| first.namespace != row.namespace))
}

fn task_name(row: &Row, has_namespaces: bool) -> String {
    if has_namespaces { format!("{}/{}", row.namespace, row.name) } else { row.name.clone() }
}

fn task_row(row: &Row, has_namespaces: bool, columns: &[usize], look: Look) -> TableRow<'static> {
    let name = task_name(row, has_namespaces);
    let cells = [
        (name, Style::new()),
        (row.doer.clone(), Style::new()),
        (row.state.clone(), look.style(Tone::of_state(&row.state))),
        (clock::age(0, row.age_ms), Style::new()),
        (amount(row.usage.total()), Style::new()),
        (words::cost(&row.usage).unwrap_or_default(), Style::new()),
        (row.about.clone(), look.style(Tone::Quiet)),
    ];
    let fitted = cells.into_iter().zip(columns);
    TableRow::new(fitted.map(|((text, style), width)| Cell::new(text::cut(&text, *width, "…")).style(style)))
}

fn draw_keys(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let words = match (state.is_filtering, &state.detail) {
        (true, _) => format!("filter: {}_   enter keeps it, esc clears it", text::one_line(&state.filter)),
        (false, Some(_)) => "esc back   p pause   q quit".to_owned(),
        (false, None) => {
            let filter = match state.filter.as_str() {
                "" => "/ filter".to_owned(),
                filter => format!("/ filter: {}", text::one_line(filter)),
            };
            format!("↑↓ choose   enter steps   s sort: {}   {filter}   p pause   q quit", state.sort.name())
        }
    };
    Line::styled(words, look.style(Tone::Quiet)).render(area, buffer);
}

#[cfg(test)]
mod tests;
